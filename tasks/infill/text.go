package infill

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/tokenize"
)

// TextOptions say how a text is read; the zero value has the defaults.
type TextOptions struct {
	// Pieces also proposes pieces "##x" that continue the word before them.
	Pieces bool
}

// Blank is a [MASK] of a text.
type Blank struct {
	// Start and End are the bytes [Start, End) where it stands.
	Start int `json:"start"`
	End   int `json:"end"`
	// Token is its position among the model's tokens, [CLS] included.
	Token int `json:"token"`
}

// Problem is a text with blanks, and the energy of its fillings.
type Problem struct {
	// Text is the text as it was given.
	Text string
	// Blanks are its blanks, in order: blank i is site i of the energy's space.
	Blanks []Blank
	// Tokens is the number of tokens, those around the text included.
	Tokens int
	// Energy is the log-density of the fillings.
	Energy *mlm.Infill

	m *Model
}

// Text reads a text with blanks. Errors about the text are of type InputError:
// *EncodingError, *EmptyError, *NoBlankError, *TooLongError.
func (m *Model) Text(text string, o TextOptions) (*Problem, error) {
	p := &Problem{Text: text, m: m}
	t, err := p.tokens()
	if err != nil {
		return nil, err
	}
	t.Allowed = [][]int32{m.words}
	if o.Pieces {
		t.Allowed = [][]int32{m.pieces}
		if p.Blanks[0].Token == 1 { // there is no word to continue
			t.Allowed = [][]int32{m.words}
			for range t.Blanks[1:] {
				t.Allowed = append(t.Allowed, m.pieces)
			}
		}
	}
	if p.Energy, err = m.mlm.Infill(t); err != nil {
		return nil, err
	}
	return p, nil
}

// tokens splits the text and finds its blanks.
func (p *Problem) tokens() (t mlm.Text, err error) {
	tok := p.m.tok
	list, err := tok.Encode(p.Text)
	var encoding *tokenize.EncodingError
	switch {
	case errors.As(err, &encoding):
		return t, &EncodingError{Offset: encoding.Offset, Err: err}
	case err != nil:
		return t, err
	case strings.TrimSpace(p.Text) == "":
		return t, &EmptyError{}
	}
	t.IDs = append(t.IDs, tok.Begin...)
	for _, k := range list {
		if k.Special && k.ID == tok.Mask {
			p.Blanks = append(p.Blanks, Blank{Start: k.Start, End: k.End, Token: len(t.IDs)})
			t.Blanks = append(t.Blanks, len(t.IDs))
		}
		t.IDs = append(t.IDs, k.ID)
	}
	t.IDs = append(t.IDs, tok.End...)
	p.Tokens = len(t.IDs)
	switch {
	case len(p.Blanks) == 0:
		return t, &NoBlankError{Mask: p.m.Mask()}
	case tok.MaxLen > 0 && p.Tokens > tok.MaxLen:
		return t, &TooLongError{Tokens: p.Tokens, Limit: tok.MaxLen}
	}
	return t, nil
}

// Fills returns the words of a state, one a blank, pieces with their "##".
func (p *Problem) Fills(codes []int32) []string {
	fills := make([]string, len(codes))
	for i, id := range codes {
		fills[i] = p.m.tok.Piece(id)
	}
	return fills
}

// Render returns the text with its blanks filled; see the package documentation.
func (p *Problem) Render(codes []int32) string {
	var out []byte
	from := 0
	for i, b := range p.Blanks {
		out = append(out, p.Text[from:b.Start]...)
		fill := p.m.tok.Piece(codes[i])
		if p.m.tok.IsContinuation(codes[i]) {
			out = trimRightSpace(out)
			// Only the tokenizer knows how its continuations are marked: let it join one
			// to some word, and take that word off again.
			word := p.m.words[0]
			fill = strings.TrimPrefix(p.m.tok.Decode([]int32{word, codes[i]}), p.m.tok.Piece(word))
		}
		out = append(out, fill...)
		from = b.End
	}
	return string(append(out, p.Text[from:]...))
}

// trimRightSpace cuts white space off the end.
func trimRightSpace(b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeLastRune(b)
		if !unicode.IsSpace(r) {
			break
		}
		b = b[:len(b)-n]
	}
	return b
}
