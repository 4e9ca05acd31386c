package clip

import (
	"fmt"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// wordEnd is the suffix of a piece that ends a word.
const wordEnd = "</w>"

// bpe merges the bytes of a word to pieces.
type bpe struct {
	inner, last [256]int32       // id of a byte's piece inside a word and at its end
	merges      map[uint64]merge // by the ids of both sides
}

// merge makes the piece id of two neighbours; the lowest rank goes first.
type merge struct {
	rank, id int32
}

func pairOf(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// newBPE checks the merges, which come from file, against the vocabulary. Bytes without a piece become unk.
func newBPE(v *files.Vocabulary, rules [][2]string, file string, unk int32) (bpe, error) {
	b := bpe{merges: make(map[uint64]merge, len(rules))}
	for i := range 256 {
		for _, end := range []string{"", wordEnd} {
			id, ok := v.IDs[string(byteToRune[i])+end]
			switch {
			case ok:
			case unk < 0:
				return b, &tokenize.UnsupportedError{File: v.File, What: fmt.Sprintf("no unk_token, and byte 0x%02X has no piece %q", i, string(byteToRune[i])+end)}
			default:
				id = unk
			}
			if end == "" {
				b.inner[i] = id
			} else {
				b.last[i] = id
			}
		}
	}
	for rank, rule := range rules {
		var ids [3]int32
		for i, p := range []string{rule[0], rule[1], rule[0] + rule[1]} {
			id, ok := v.IDs[p]
			if !ok {
				return b, &tokenize.FormatError{File: file, Err: fmt.Errorf("merge %q %q: vocabulary has no %q", rule[0], rule[1], p)}
			}
			ids[i] = id
		}
		pair := pairOf(ids[0], ids[1])
		if _, ok := b.merges[pair]; ok {
			return b, &tokenize.FormatError{File: file, Err: fmt.Errorf("merge %q %q is listed twice", rule[0], rule[1])}
		}
		b.merges[pair] = merge{int32(rank), ids[2]}
	}
	return b, nil
}

// bpeBuffer is the memory that splitting words reuses.
type bpeBuffer struct {
	word    []byte
	owner   []int // byte of the word -> character of the word
	symbols []symbol
	queue   mergeQueue
	out     []piece
}

// symbol is a run of bytes [start, end) that is one piece so far, in a list linked by index. A symbol
// that was merged into its left neighbour is empty.
type symbol struct {
	id         int32
	start, end int
	prev, next int
}

// setWord spells out the characters of a word, which are at least one.
func (b *bpeBuffer) setWord(word []aligned.Char) {
	b.word, b.owner = b.word[:0], b.owner[:0]
	for i, c := range word {
		b.word = utf8.AppendRune(b.word, c.R)
		for len(b.owner) < len(b.word) {
			b.owner = append(b.owner, i)
		}
	}
}

// split returns the pieces of the word in buf, valid until the next call with it.
//
// The queue holds every pair of neighbours that can merge, so that a long word takes n log n steps.
// A pair whose sides have changed since it was queued is passed over: pieces only grow, so the same
// two neighbours never merge to the same piece again.
func (b *bpe) split(buf *bpeBuffer) []piece {
	n := len(buf.word)
	buf.symbols, buf.queue, buf.out = buf.symbols[:0], buf.queue[:0], buf.out[:0]
	for i, c := range buf.word {
		s := symbol{b.inner[c], i, i + 1, i - 1, i + 1}
		if i == n-1 {
			s.id, s.next = b.last[c], -1
		}
		buf.symbols = append(buf.symbols, s)
	}
	for i := range n - 1 {
		b.offer(buf, i)
	}
	for len(buf.queue) > 0 {
		top := buf.queue.pop()
		left := &buf.symbols[top.left]
		if left.start == left.end || left.next < 0 {
			continue
		}
		right := &buf.symbols[left.next]
		if m, ok := b.merges[pairOf(left.id, right.id)]; !ok || m != top.merge {
			continue
		}
		left.id, left.end, left.next = top.id, right.end, right.next
		right.start = right.end
		if left.next >= 0 {
			buf.symbols[left.next].prev = top.left
			b.offer(buf, top.left)
		}
		if left.prev >= 0 {
			b.offer(buf, left.prev)
		}
	}
	for i := 0; i >= 0; i = buf.symbols[i].next {
		s := buf.symbols[i]
		buf.out = append(buf.out, piece{s.id, s.start, s.end})
	}
	return buf.out
}

// offer queues the pair that begins with symbol left, if it can merge.
func (b *bpe) offer(buf *bpeBuffer, left int) {
	s := buf.symbols[left]
	if m, ok := b.merges[pairOf(s.id, buf.symbols[s.next].id)]; ok {
		buf.queue.push(candidate{m, left})
	}
}

// candidate is a pair that can merge.
type candidate struct {
	merge
	left int // index of its left symbol
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.left < d.left
}

// mergeQueue is a binary heap with the first candidate on top.
type mergeQueue []candidate

func (q *mergeQueue) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for i > 0 && c.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = c
	*q = h
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top, c := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		k := 2*i + 1
		if k+1 < len(h) && h[k+1].before(h[k]) {
			k++
		}
		if k >= len(h) || !h[k].before(c) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = c
	return top
}

// piece is the vocabulary id of the bytes [start, end) of a word.
type piece struct {
	id         int32
	start, end int
}
