package hf

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// surface is how a piece is printed after other text, with the blank before it if it has one.
func (t *Tokenizer) surface(id int32) string {
	return strings.TrimPrefix(t.decode.Text([]string{"a", t.Piece(id)}), "a")
}

// Text is how id is printed, without a blank before it. Bytes that are not UTF-8 are U+FFFD.
func (t *Tokenizer) Text(id int32) string { return strings.TrimPrefix(t.surface(id), " ") }

// IsContinuation reports whether id attaches to the text before it: no blank stands between.
func (t *Tokenizer) IsContinuation(id int32) bool { return !strings.HasPrefix(t.surface(id), " ") }

var unused = regexp.MustCompile(`^(\[unused\d+\]|<unused\d+>|<extra_id_\d+>|<null_\d+>|madeupword\d+|<.*>NOTUSED|<0x[0-9A-F]{2}>)$`)

// IsUnused reports whether id is a spare entry such as [unused0], or a single byte.
func (t *Tokenizer) IsUnused(id int32) bool { return unused.MatchString(t.Piece(id)) }

// Printable returns the ids that print as visible text, in order. It leaves out special and unused ids,
// Unk, and pieces with control characters, inner blanks or parts of characters.
func (t *Tokenizer) Printable() (ids []int32) {
	for id := range int32(len(t.list)) {
		text := t.Text(id)
		if text == "" || t.special[id] || id == t.Unk || t.IsUnused(id) {
			continue
		}
		visible := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != utf8.RuneError }
		if strings.IndexFunc(text, func(r rune) bool { return !visible(r) }) < 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Words returns the printable ids that begin a word: attached to the text before them, or behind a
// blank. The two differ where a piece carries its blank, as in byte-level BPE and SentencePiece: the
// attached ones carry none. Where no piece carries a blank, as with letters, all printable ids are words.
func (t *Tokenizer) Words(attached bool) []int32 {
	all := t.Printable()
	words := slices.DeleteFunc(slices.Clone(all), func(id int32) bool { return t.IsContinuation(id) != (attached && t.marked) })
	if len(words) == 0 {
		return all
	}
	return words
}

// Attached reports whether what fills token i, a mask, stands behind other text without a blank, as in
// "(<mask>)" and, where the tokenizer adds no blank before a text, at its beginning. A mask behind a
// mask is not attached.
func (t *Tokenizer) Attached(text string, tokens []tokenize.Token, i int) bool {
	before, within := text[:tokens[i].Start], text[tokens[i].Start:tokens[i].End]
	if strings.TrimLeftFunc(within, unicode.IsSpace) != within || i > 0 && t.isMask(tokens[i-1]) {
		return false
	}
	if before == "" {
		return !t.prefix
	}
	return trimRight(before) == before
}

// Fill prints text with its masks replaced by ids, one a mask in order; tokens are those of text.
// Exact reports whether the printed text has the tokens of text with ids for masks, so that a model
// that reads it sees what was scored.
//
// The text between masks stays as it is. Around a mask, blanks are added and removed as the pieces
// say: a continuation attaches to the word before it, and what fills a mask that is glued to a word
// ("the[MASK]sat") is a word of its own ("the cat sat").
func (t *Tokenizer) Fill(text string, tokens []tokenize.Token, ids []int32) (filled string, exact bool) {
	out := make([]byte, 0, len(text)+8*len(ids))
	want := make([]int32, len(tokens))
	pos, used := 0, 0
	for i, k := range tokens {
		want[i] = k.ID
		if !t.isMask(k) {
			continue
		}
		want[i] = ids[used]
		used++
		out = append(out, text[pos:k.Start]...)
		covered := i > 0 && !t.isMask(tokens[i-1]) && tokens[i-1].End > len(trimRight(text[:k.Start]))
		out = t.appendFill(out, want[i], covered, strings.TrimLeftFunc(text[k.Start:k.End], unicode.IsSpace) != text[k.Start:k.End])
		pos = k.End
		if i+1 < len(tokens) && !t.isMask(tokens[i+1]) && t.needsBlank(string(out), text[pos:], tokens[i+1].ID) {
			out = append(out, ' ')
		}
	}
	filled = string(append(out, text[pos:]...))
	made, err := t.Encode(filled)
	return filled, err == nil && slices.EqualFunc(made, want, func(k tokenize.Token, id int32) bool { return k.ID == id })
}

func (t *Tokenizer) isMask(k tokenize.Token) bool { return k.Special && k.ID == t.Mask }

func trimRight(text string) string { return strings.TrimRightFunc(text, unicode.IsSpace) }

// appendFill appends id to out with the blank before it, which replaces white space that belongs to no
// token. Covered says that the white space before the mask belongs to a token, taken that the mask
// took in white space.
func (t *Tokenizer) appendFill(out []byte, id int32, covered, taken bool) []byte {
	bare := trimRight(string(out))
	spaced := taken || len(bare) < len(out)
	text := t.surface(id)
	switch {
	case covered && t.marked:
	case t.marked:
		out = out[:len(bare)]
		if len(bare) == 0 && t.prefix {
			text = strings.TrimPrefix(text, " ") // a blank is added when the text is read
		}
	case t.IsContinuation(id):
		out = out[:len(bare)]
	default: // a word, whose blank is not its own
		text = strings.TrimPrefix(text, " ")
		if taken || !spaced && t.needsBlank(bare, text, id) {
			out = append(out, ' ')
		}
	}
	return append(out, text...)
}

// needsBlank reports whether a blank has to stand between two texts, of which right begins with token
// id: the token has a blank that the text lacks, or both sides would become one word.
func (t *Tokenizer) needsBlank(left, right string, id int32) bool {
	l, _ := utf8.DecodeLastRuneInString(left)
	r, _ := utf8.DecodeRuneInString(right)
	if left == "" || unicode.IsSpace(l) || unicode.IsSpace(r) || t.IsContinuation(id) {
		return false
	}
	alone := func(r rune) bool { return unicode.In(r, aligned.Punctuation, aligned.Ideograph) }
	return t.marked || !alone(l) && !alone(r)
}
