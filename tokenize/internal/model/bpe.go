package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// bpe repeatedly merges a pair of neighbouring symbols of a word: the pair with the lowest rank in the
// merge list, the leftmost of equals.
type bpe struct {
	ids            files.PieceIDs
	merges         map[uint64]merge // keyed by the ids of both sides
	prefix, suffix string           // of pieces that do not start a word, and of pieces that end one
	unk            int32            // -1: unknown characters are dropped
	fuseUnk        bool
	bytes          bool // an unknown character becomes the pieces "<0x41>" of its bytes
	whole          bool // a word that is in the vocabulary is not split
	buffers        sync.Pool
}

// merge replaces two neighbours by the piece id; the lowest rank goes first.
type merge struct {
	rank, id int32
}

func pairOf(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// NewBPE returns the model of s. It checks the merges against the vocabulary.
func NewBPE(s Spec, v *files.Vocabulary, rules []MergeRule) (Model, error) {
	b := &bpe{ids: v.IDs, merges: make(map[uint64]merge, len(rules)), suffix: s.Suffix, unk: -1,
		fuseUnk: s.FuseUnk, bytes: s.ByteFallback, whole: s.IgnoreMerges}
	b.buffers.New = func() any { return new(bpeBuffer) }
	if s.Prefix != nil {
		b.prefix = *s.Prefix
	}
	if s.Dropout != nil && *s.Dropout != 0 {
		return nil, files.Unsupported("BPE with dropout")
	}
	if v.Unk != "" {
		id, ok := v.IDs[v.Unk]
		if !ok {
			return nil, v.Lacks(v.Unk)
		}
		b.unk = id
	}
	for rank, rule := range rules {
		var ids [3]int32
		for i, p := range []string{rule[0], rule[1], rule[0] + strings.TrimPrefix(rule[1], b.prefix)} {
			id, ok := v.IDs[p]
			if !ok {
				return nil, fmt.Errorf("merge %q %q: vocabulary has no %q", rule[0], rule[1], p)
			}
			ids[i] = id
		}
		pair := pairOf(ids[0], ids[1])
		if _, ok := b.merges[pair]; ok {
			return nil, fmt.Errorf("merge %q %q is listed twice", rule[0], rule[1])
		}
		b.merges[pair] = merge{int32(rank), ids[2]}
	}
	return b, nil
}

// bpeBuffer holds buffers that are reused between words.
type bpeBuffer struct {
	symbols []symbol
	queue   mergeQueue
}

// symbol is one piece: characters [start, end) of the word. Symbols form a list linked by index. A
// symbol merged into its left neighbour is dead.
type symbol struct {
	id         int32
	start, end int
	prev, next int
	gone       bool
}

// add appends a symbol.
func (b *bpeBuffer) add(id int32, start, end int) {
	n := len(b.symbols)
	b.symbols = append(b.symbols, symbol{id: id, start: start, end: end, prev: n - 1, next: n + 1})
}

// spell makes every character a symbol.
func (b *bpe) spell(buf *bpeBuffer, word []aligned.Char) {
	unknown := -1 // start of the pending unknown characters
	flush := func(end int) {
		if unknown >= 0 {
			buf.add(b.unk, unknown, end)
			unknown = -1
		}
	}
	for i, c := range word {
		piece := string(c.R)
		if i > 0 {
			piece = b.prefix + piece
		}
		if i == len(word)-1 {
			piece += b.suffix
		}
		id, ok := b.ids[piece]
		if ok {
			flush(i)
			buf.add(id, i, i+1)
			continue
		}
		if list := byteIDs(b.ids, piece); b.bytes && list != nil {
			flush(i)
			for _, id := range list {
				buf.add(id, i, i+1)
			}
			continue
		}
		if b.unk >= 0 {
			if !b.fuseUnk {
				flush(i)
			}
			if unknown < 0 {
				unknown = i
			}
		}
	}
	flush(len(word))
	if n := len(buf.symbols); n > 0 {
		buf.symbols[n-1].next = -1
	}
}

// Split keeps a queue of the neighbouring pairs that can merge, so that a word of n characters takes
// O(n log n) steps. A queued pair whose sides have changed is skipped: pieces only grow, so the same
// two neighbours never merge into the same piece again.
func (b *bpe) Split(out []Piece, word []aligned.Char) ([]Piece, error) {
	if b.whole {
		if id, ok := b.ids[aligned.String(word)]; ok {
			return append(out, Piece{id, 0, len(word)}), nil
		}
	}
	buf := b.buffers.Get().(*bpeBuffer)
	defer b.buffers.Put(buf)
	buf.symbols, buf.queue = buf.symbols[:0], buf.queue[:0]
	b.spell(buf, word)
	if len(buf.symbols) == 0 {
		return out, nil
	}
	for i := range len(buf.symbols) - 1 {
		b.offer(buf, i)
	}
	for len(buf.queue) > 0 {
		top := buf.queue.pop()
		left := &buf.symbols[top.left]
		if left.gone || left.next < 0 {
			continue
		}
		right := &buf.symbols[left.next]
		if m, ok := b.merges[pairOf(left.id, right.id)]; !ok || m != top.merge {
			continue
		}
		left.id, left.end, left.next = top.id, right.end, right.next
		right.gone = true
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
		out = append(out, Piece{s.id, s.start, s.end})
	}
	return out, nil
}

// offer queues the pair that starts at symbol left, if it can merge.
func (b *bpe) offer(buf *bpeBuffer, left int) {
	s := buf.symbols[left]
	if m, ok := b.merges[pairOf(s.id, buf.symbols[s.next].id)]; ok {
		buf.queue.push(candidate{m, left})
	}
}

// MergeRule is a merge in JSON: "a b" in older files, ["a", "b"] in newer ones.
type MergeRule [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *MergeRule) UnmarshalJSON(data []byte) (err error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err = json.Unmarshal(data, &text); err == nil {
			*m, err = ParseMerge(text)
		}
		return err
	}
	var pair []string
	if err = json.Unmarshal(data, &pair); err == nil && (len(pair) != 2 || pair[0] == "" || pair[1] == "") {
		err = fmt.Errorf("merge %q is not two pieces", pair)
	}
	if err == nil {
		*m = MergeRule(pair)
	}
	return err
}

// ParseMerge parses a merge written as one string, "a b".
func ParseMerge(text string) (m MergeRule, err error) {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return m, fmt.Errorf("merge %q is not two pieces", text)
	}
	return MergeRule{left, right}, nil
}
