package infill

import (
	"context"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/energies/neural/text"
	"github.com/gradhop/gradhop/tasks/internal/language"
)

// Causal is what [Model.Form] returns for a causal language model: U is log p of the text, by the chain rule, which is
// normalised, as pll is not.
const Causal mlm.Form = "causal"

// loadCausal makes m a causal language model. Of the options it has the size of batches and the runtime.
func (m *Model) loadCausal(o mlm.Options) (*Model, error) {
	if o.Form != "" && o.Form != mlm.PLL || o.MaskEmbedding != "" && o.MaskEmbedding != mlm.MaskToken {
		return nil, badOption("energy", "%s is a causal language model, whose energy is log p of the text", m.Source.Name)
	}
	var err error
	m.tok, m.causal, err = language.LoadCausal(m.Source, text.Options{MaxBatch: o.MaxBatch, Runtime: o.Runtime})
	m.options, m.lowers = o, err == nil && lowerCases(m.tok)
	return m, err
}

// terms sets terms[k] to the log-probability of the token at positions[k]: given those before it for a causal model, given
// all others for a masked one.
func (m *Model) terms(ctx context.Context, terms []float64, positions []mlm.Position) error {
	if m.causal == nil {
		return m.mlm.Terms(ctx, terms, positions)
	}
	var texts [][]int32
	var at [][]int // the positions in each text
	for k, p := range positions {
		if n := len(texts); n == 0 || &texts[n-1][0] != &p.IDs[0] {
			texts, at = append(texts, p.IDs), append(at, nil)
		}
		at[len(at)-1] = append(at[len(at)-1], k)
	}
	return m.causal.Terms(ctx, texts, func(i int, lp []float32) {
		for _, k := range at[i] {
			terms[k] = float64(lp[positions[k].At-1])
		}
	})
}
