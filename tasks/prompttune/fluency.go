package prompttune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/tasks/internal/language"
	"github.com/gradhop/gradhop/tasks/prompttune/search"
	"github.com/gradhop/gradhop/tokenize/hf"
)

// languageModel is a masked language model that judges how fluent prompts are.
type languageModel struct {
	// Source is where it was read from.
	Source models.Model
	// Warn takes a warning of words of a template that the vocabulary lacks. It may be nil.
	Warn func(format string, args ...any)

	tok *hf.Tokenizer
	mlm *mlm.Model
}

// loadLanguage reads a masked language model. o.MaskID is taken from the model. Errors are
// *onnx.ArgumentError for an option and *neural.ModelError.
func loadLanguage(src models.Model, o mlm.Options) (*languageModel, error) {
	tok, m, _, err := language.Load(src, o)
	if err != nil {
		return nil, err
	}
	return &languageModel{Source: src, tok: tok, mlm: m}, nil
}

// Close frees the runtime's sessions.
func (l *languageModel) Close() error { return l.mlm.Close() }

// addFluency adds weight·F to U, where F is the pseudo-log-likelihood of the blanks of the
// prompt's text under a masked language model l, in nats (Salazar et al. 2020):
//
//	F = Σ_i log f(word i | the text with word i masked).
//
// The text is encoded again by the tokenizer of l. Only words that are one token of l are
// proposed from now on, so that a blank is one token of both models, and a prompt whose text
// encodes to other tokens is no result. Gradients go through both models. Errors:
// *onnx.ArgumentError for the weight or where too few words are left.
func (p *Problem) addFluency(l *languageModel, weight float64) error {
	if !(weight > 0) || math.IsInf(weight, 1) {
		return badInput("fluency", "%g; want a weight above zero", weight)
	}
	f := &fluency{}
	var tokens []int32
	for _, token := range p.Tokens {
		ids, err := l.encode(p.v.Text(token))
		if err == nil && len(ids) == 1 && ids[0] != l.tok.Unk && !l.tok.IsSpecial(ids[0]) && p.v.proposable(token, false) {
			tokens, f.words = append(tokens, token), append(f.words, ids[0])
		}
	}
	if len(tokens) < 2 {
		return badInput("fluency", "%d of %d tokens to propose are words of %s; at least two are needed", len(tokens), len(p.Tokens), l.Source.Name)
	}
	p.Tokens = tokens
	if err := p.build(); err != nil {
		return err
	}
	f.space = p.Energy.Space()
	text := mlm.Text{IDs: slices.Clone(l.tok.Begin)}
	for k, between := range p.Template.between {
		if k > 0 {
			text.Blanks, text.IDs = append(text.Blanks, len(text.IDs)), append(text.IDs, l.tok.Mask)
		}
		ids, err := l.encode(strings.TrimSpace(between))
		if err != nil {
			return badInput(fmt.Sprintf("template %q", p.Template), "%w", err)
		}
		text.IDs = append(text.IDs, ids...)
	}
	if err := l.warn(strings.Join(p.Template.between, " ")); err != nil {
		return badInput(fmt.Sprintf("template %q", p.Template), "%s: %w", l.Source.Name, err)
	}
	text.IDs = append(text.IDs, l.tok.End...)
	if n := l.tok.MaxLen; n > 0 && len(text.IDs) > n {
		return tooLong("the prompt", len(text.IDs), n, len(text.Blanks))
	}
	if err := p.checkWords(l, f.words, text); err != nil {
		return err
	}
	var err error
	if f.infill, err = l.mlm.Infill(text); err != nil {
		return err
	}
	sum, err := energies.NewSum(energies.Term{Weight: 1, Energy: p.Energy}, energies.Term{Weight: weight, Energy: f})
	if err != nil {
		return err
	}
	if e, ok := p.Energy.(search.Embedded); ok {
		p.Energy = &fluentEmbedded{Sum: sum, Embedded: e, f: f, weight: weight}
	} else {
		p.Energy = sum
	}
	p.fluency = weight
	return nil
}

// warn warns of tokens that the vocabulary lacks, or returns an error where it lacks most of the text.
func (l *languageModel) warn(text string) error {
	tokens, err := l.tok.Encode(text)
	if err != nil {
		return err
	}
	u := l.tok.Unknown(text, tokens)
	switch {
	case u == nil:
	case u.Most():
		return u
	case l.Warn != nil:
		l.Warn("template: %s: %v", l.Source.Name, u)
	}
	return nil
}

// encode returns the ids of a text, without those around it.
func (l *languageModel) encode(text string) ([]int32, error) {
	tokens, err := l.tok.Encode(text)
	ids := make([]int32, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	return ids, err
}

// checkWords makes sure that the text of a state encodes to the tokens of l that stand for it.
func (p *Problem) checkWords(l *languageModel, words []int32, text mlm.Text) error {
	codes, want := make([]int32, len(text.Blanks)), slices.Clone(text.IDs)
	for i, at := range text.Blanks {
		codes[i] = int32(i % len(words))
		want[at] = words[codes[i]]
	}
	ids, err := l.encode(p.render(codes))
	if err != nil || !slices.Equal(want, slices.Concat(l.tok.Begin, ids, l.tok.End)) {
		return badInput(fmt.Sprintf("template %q", p.Template), "fluency needs blanks that %s reads as words of their own, as in \"a photo of _ _\"", l.Source.Name)
	}
	return nil
}

func (p *Problem) fluencies(ctx context.Context, list []Prompt) error {
	if p.fluency == 0 {
		return nil
	}
	ids := make([][]int32, len(list))
	for i, x := range list {
		ids[i] = x.IDs
	}
	scores, err := p.scoreIDs(ctx, ids)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Fluency = (list[i].U - scores[i]) / p.fluency
	}
	return nil
}

// fluency is F on the states of a problem.
type fluency struct {
	infill *mlm.Infill
	space  *energies.Space
	words  []int32 // ids of the codes
}

var _ energies.Differentiable = (*fluency)(nil)

func (f *fluency) Space() *energies.Space { return f.space }

// translate returns the states as the language model has them.
func (f *fluency) translate(x energies.Batch) energies.Batch {
	y := energies.Batch{Space: f.infill.Space(), Codes: make([]int32, len(x.Codes)), IDs: x.IDs}
	for k, code := range x.Codes {
		y.Codes[k] = f.words[code]
	}
	return y
}

func (f *fluency) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return f.infill.LogDensity(ctx, u, f.translate(x))
}

func (f *fluency) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	all := f.infill.Space().Values
	own := make([]float32, len(x.Codes)*all)
	if err := f.infill.LogDensityGrad(ctx, u, own, f.translate(x)); err != nil {
		return err
	}
	for r := range x.Codes {
		for v, id := range f.words {
			g[r*len(f.words)+v] = own[r*all+int(id)]
		}
	}
	return nil
}

// fluentEmbedded is the sum for optimisers on embeddings. U is that of both models, the
// gradient by embeddings that of the first, since the second has other embeddings.
type fluentEmbedded struct {
	*energies.Sum
	search.Embedded
	f      *fluency
	weight float64
}

var _ search.Embedded = (*fluentEmbedded)(nil)

func (e *fluentEmbedded) Terms() int { return e.Embedded.Terms() }

func (e *fluentEmbedded) EmbeddingGrad(ctx context.Context, u []float64, g []float32, x energies.Batch, terms [][]int32) error {
	if err := e.Embedded.EmbeddingGrad(ctx, u, g, x, terms); err != nil {
		return err
	}
	f := make([]float64, len(u))
	if err := e.f.LogDensity(ctx, f, x); err != nil {
		return err
	}
	for c := range u {
		u[c] += e.weight * f[c]
	}
	return nil
}
