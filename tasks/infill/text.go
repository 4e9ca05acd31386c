package infill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/tasks/internal/language"
	"github.com/gradhop/gradhop/tokenize"
)

// TextOptions say which words may fill the blanks. The zero value allows every whole word
// and punctuation.
type TextOptions struct {
	// Pieces also allows pieces such as "##ing", which continue the word before them.
	Pieces bool
	// NoPunctuation forbids tokens without a letter or digit.
	NoPunctuation bool
	// NoRepeat forbids a word twice in the blanks, and one that stands right before or
	// behind its blank.
	NoRepeat bool
	// Allow, if not empty, lists the words that are allowed; each must be one token.
	Allow []string
	// Block lists words that are not allowed; each must be one token.
	Block []string
	// Guides add terms to the log-density of the fillings.
	Guides []*Guide `json:"-"`
	// GuidesOnly makes the log-density that of the guides alone: the masked model only proposes words. With a causal
	// language model of weight 1 as guide, draws are from its posterior of the blanks.
	GuidesOnly bool `json:",omitempty"`
}

// Blank is a mask token in a text.
type Blank struct {
	// Start and End are the bytes [Start, End) where it stands.
	Start int `json:"start"`
	End   int `json:"end"`
	// Token is its position among the model's tokens, those before the text included.
	Token int `json:"token"`
}

// Problem is a text with blanks, and the energy of its fillings.
type Problem struct {
	// Text is the text as it was given, without a byte order mark.
	Text string
	// Blanks are its blanks, in order: blank i is site i of the energy's space.
	Blanks []Blank
	// Tokens is the number of tokens, those around the text included.
	Tokens int
	// Energy is the log-density of the fillings by the masked model. It does not know of NoRepeat and Guides.
	Energy *mlm.Infill

	m        *Model
	words    TextOptions
	tokens   []tokenize.Token
	noRepeat bool
	beside   [][]int32 // words right before and behind each blank, for noRepeat
	terms    []*term   // of the guides

	foundX energies.Batch // see found
	foundU []float64
}

// Text reads a text with blanks. Errors are of type *InputError.
func (m *Model) Text(text string, o TextOptions) (*Problem, error) {
	if m.causal != nil {
		return nil, badOption("model", "%s: %v; it can be a guide of a masked one, or the only one that counts", m.Source.Name, language.ErrCausal)
	}
	p := &Problem{Text: strings.TrimPrefix(text, "\ufeff"), m: m, words: o, noRepeat: o.NoRepeat}
	t, err := p.read()
	if err != nil {
		return nil, err
	}
	if len(p.Blanks) == 0 {
		return nil, badText("the text has no %s: nothing to fill", m.Mask())
	}
	if t.Allowed, err = p.allowed(o); err != nil {
		return nil, err
	}
	for _, at := range t.Blanks {
		var beside []int32
		for _, k := range []int{at - 1, at + 1} {
			if id := t.IDs[k]; id != m.tok.Mask {
				beside = append(beside, id)
			}
		}
		p.beside = append(p.beside, beside)
	}
	if p.Energy, err = m.mlm.Infill(t); err != nil {
		return nil, err
	}
	if o.GuidesOnly && len(o.Guides) == 0 {
		return nil, badOption("guides", "none, and the log-density is to be that of guides alone")
	}
	for _, g := range o.Guides {
		if err := p.guideBy(g); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// read splits the text and finds its blanks.
func (p *Problem) read() (t mlm.Text, err error) {
	tok := p.m.tok
	if p.tokens, t.IDs, err = p.m.encode(p.Text); err != nil {
		return t, err
	}
	for i, k := range p.tokens {
		if k.Special && k.ID == tok.Mask {
			at := len(tok.Begin) + i
			p.Blanks = append(p.Blanks, Blank{Start: k.Start, End: k.End, Token: at})
			t.Blanks = append(t.Blanks, at)
		}
	}
	p.Tokens = len(t.IDs)
	return t, nil
}

// ids returns the ids of the text's tokens, blanks masked, with those that stand around it.
func (p *Problem) ids() []int32 {
	ids := slices.Clone(p.m.tok.Begin)
	for _, k := range p.tokens {
		ids = append(ids, k.ID)
	}
	return append(ids, p.m.tok.End...)
}

// encode returns the tokens of a text, and their ids with those that stand around it.
func (m *Model) encode(text string) ([]tokenize.Token, []int32, error) {
	list, err := m.tok.Encode(text)
	var encoding *tokenize.Error
	switch {
	case errors.As(err, &encoding):
		return nil, nil, &InputError{Reason: fmt.Sprintf("the text is not UTF-8 at byte %d", encoding.Offset), Err: err}
	case err != nil:
		return nil, nil, &InputError{Reason: err.Error(), Err: err}
	case strings.TrimSpace(text) == "":
		return nil, nil, badText("the text is empty")
	}
	if u := m.tok.Unknown(text, list); u != nil {
		if u.Most() {
			return nil, nil, &InputError{Reason: u.Error(), Err: u}
		}
		if m.Warn != nil {
			m.Warn(u.Error())
		}
	}
	ids := slices.Clone(m.tok.Begin)
	for _, k := range list {
		ids = append(ids, k.ID)
	}
	ids = append(ids, m.tok.End...)
	if m.tok.MaxLen > 0 && len(ids) > m.tok.MaxLen {
		return nil, nil, badText("the text has %d tokens, the model takes %d", len(ids), m.tok.MaxLen)
	}
	return list, ids, nil
}

// allowed returns the words that each blank may take: one list for all blanks, or one for
// each.
func (p *Problem) allowed(o TextOptions) ([][]int32, error) {
	m := p.m
	for _, w := range o.Block {
		if !slices.ContainsFunc(m.pieces, func(id int32) bool { return m.tok.Text(id) == m.spelled(w) }) {
			return nil, badOption("blocked word", "%q is not one token of the model", w)
		}
	}
	inside := m.inside
	if o.Pieces {
		inside = m.pieces
	}
	list, err := m.restrict(inside, o)
	if err != nil {
		return nil, err
	}
	if p.Blanks[0].Token != len(m.tok.Begin) {
		return [][]int32{list}, nil
	}
	first, err := m.restrict(m.first, o)
	if err != nil {
		return nil, err
	}
	if slices.Equal(first, list) {
		return [][]int32{list}, nil
	}
	out := [][]int32{first}
	for range p.Blanks[1:] {
		out = append(out, list)
	}
	return out, nil
}

// spelled returns a word as the vocabulary prints it.
func (m *Model) spelled(word string) string {
	if m.lowers {
		word = strings.ToLower(word)
	}
	return strings.TrimSpace(word)
}

func (m *Model) restrict(list []int32, o TextOptions) ([]int32, error) {
	block := map[string]bool{}
	for _, w := range o.Block {
		block[m.spelled(w)] = true
	}
	allow := map[string]bool{}
	for _, w := range o.Allow {
		allow[m.spelled(w)] = false // until it is found
	}
	var out []int32
	for _, id := range list {
		text := m.tok.Text(id)
		if _, found := allow[text]; found {
			allow[text] = true
		} else if len(allow) > 0 {
			continue
		}
		if block[text] || o.NoPunctuation && !strings.ContainsFunc(text, isWord) {
			continue
		}
		out = append(out, id)
	}
	for _, w := range o.Allow {
		if !allow[m.spelled(w)] {
			return nil, badOption("allowed word", "%q is not one token of the model", w)
		}
	}
	if len(out) == 0 {
		return nil, badOption("allowed words", "none is left")
	}
	return out, nil
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Masked is the state whose blanks are all masked, [site]. It is no state of the space, but Energy.Predict takes it.
func (p *Problem) Masked() []int32 {
	out := make([]int32, len(p.Blanks))
	for i := range out {
		out[i] = p.m.tok.Mask
	}
	return out
}

// admits reports whether NoRepeat permits word at a blank of a state, the other blanks of
// which may be masked.
func (p *Problem) admits(codes []int32, site int, word int32) bool {
	if !p.noRepeat {
		return true
	}
	for i, w := range codes {
		if i != site && w == word {
			return false
		}
	}
	return !slices.Contains(p.beside[site], word)
}

// wordsFilled is the number of words that a state fills in: pieces count with the word
// that they continue.
func (p *Problem) wordsFilled(codes []int32) int {
	n := 0
	for i, id := range codes {
		if i == 0 || !p.m.tok.IsContinuation(id) {
			n++
		}
	}
	return n
}
