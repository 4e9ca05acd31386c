package infill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/samplers/diag"
)

// Text is a text to score.
type Text struct {
	Text string `json:"text"`
	// Words are the words whose terms are added up, split at white space and counted
	// from 1; none means all.
	Words []int `json:"words"`
}

// Score is the log-density of a text.
type Score struct {
	Text string `json:"text"`
	// LogP is the sum of the terms, in nats, not normalised: under pll the
	// pseudo-log-likelihood of Salazar et al. (2020).
	LogP diag.Number `json:"logp"`
	// PerToken is LogP divided by the number of tokens.
	PerToken diag.Number `json:"logp_per_token"`
	// Tokens are those that were scored.
	Tokens []TokenScore `json:"tokens"`
}

// TokenScore is the term of one token.
type TokenScore struct {
	Token string      `json:"token"` // as the vocabulary spells it
	LogP  diag.Number `json:"logp"`
}

// Score computes the log-density of texts. All texts run through the model together, so
// that one call for many texts is faster than many calls. Equal texts are computed once.
//
// The scores have the order of the texts. Where a text cannot be scored, its error, an
// *InputError, stands in errs at its index. err is that of the runtime or of ctx.
func (m *Model) Score(ctx context.Context, texts []Text) (scores []Score, errs []error, err error) {
	scores, errs = make([]Score, len(texts)), make([]error, len(texts))
	var positions []mlm.Position
	counts, first := make([]int, len(texts)), map[string]int{}
	for k, t := range texts {
		scores[k].Text = t.Text
		if _, again := first[t.key()]; again {
			continue
		}
		first[t.key()] = k
		list, err := m.positions(t)
		if err != nil {
			errs[k] = err
			continue
		}
		positions, counts[k] = append(positions, list...), len(list)
	}
	terms := make([]float64, len(positions))
	if err := m.mlm.Terms(ctx, terms, positions); err != nil {
		return nil, nil, err
	}
	for k := range scores {
		s := &scores[k]
		for i := range counts[k] {
			s.Tokens = append(s.Tokens, TokenScore{m.tok.Piece(positions[i].IDs[positions[i].At]), diag.Number(terms[i])})
			s.LogP += diag.Number(terms[i])
		}
		positions, terms = positions[counts[k]:], terms[counts[k]:]
		s.PerToken = s.LogP / diag.Number(counts[k])
	}
	for k, t := range texts {
		scores[k], errs[k] = scores[first[t.key()]], errs[first[t.key()]]
	}
	return scores, errs, nil
}

func (t Text) key() string { return fmt.Sprint(t.Words, t.Text) }

// positions returns the tokens of a text that are scored.
func (m *Model) positions(t Text) ([]mlm.Position, error) {
	text := strings.TrimPrefix(t.Text, "\ufeff")
	tokens, ids, err := m.encode(text)
	if err != nil {
		return nil, err
	}
	spans := words(text)
	for _, w := range t.Words {
		if w < 1 || w > len(spans) {
			return nil, badText("word %d: the text has %d words", w, len(spans))
		}
	}
	var out []mlm.Position
	for i, k := range tokens {
		in := func(w int) bool { return k.Start < spans[w-1][1] && k.End > spans[w-1][0] }
		if len(t.Words) == 0 || slices.ContainsFunc(t.Words, in) {
			out = append(out, mlm.Position{IDs: ids, At: len(m.tok.Begin) + i})
		}
	}
	if len(out) == 0 {
		return nil, badText("the text has no token to score")
	}
	return out, nil
}

// words returns the bytes [start, end) of each word of a text.
func words(text string) (spans [][2]int) {
	start := -1
	for i, r := range text + " " {
		switch {
		case unicode.IsSpace(r) && start >= 0:
			spans = append(spans, [2]int{start, i})
			start = -1
		case !unicode.IsSpace(r) && start < 0:
			start = i
		}
	}
	return spans
}
