package mlm

import (
	"context"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// Predicted returns the same energy for samplers that ask for predictions
// ([energies.ModelConditional]). Under pll, U is a sum of predictions, so each is computed
// once and kept, up to Options.Remember, for the next state and for the next site: a sampler
// that proposes a word from the prediction at its site has that term of U already. The
// numbers are those of the Infill.
func (e *Infill) Predicted() energies.Oracle {
	if e.m.opts.Form != PLL || e.m.opts.Remember < 0 {
		return e
	}
	return energies.NewMemo(predicted{e, energies.NewMemo(masked{e}, e.m.opts.Remember)}, e.m.opts.Remember)
}

// predicted computes U from predictions.
type predicted struct {
	*Infill
	rows *energies.Memo // of a masked
}

// LogDensity implements energies.Energy.
func (p predicted) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	return p.Answer(ctx, energies.Query{Want: energies.Density, X: x, U: u})
}

// Answer implements energies.Oracle.
func (p predicted) Answer(ctx context.Context, q energies.Query) error {
	k, v, n := p.space.Sites, p.space.Values, q.X.Chains()
	switch q.Want {
	case energies.Density:
		x := energies.Batch{Space: p.space, Codes: make([]int32, 0, n*k*k)}
		for c := range n {
			for site := range k {
				x.Codes = append(x.Codes, q.X.Chain(c)...)
				x.Codes[len(x.Codes)-k+site] = -1
			}
		}
		rows, err := p.predictions(ctx, x)
		if err != nil {
			return err
		}
		for c := range n {
			sum := 0.0
			for site, word := range q.X.Chain(c) {
				sum += float64(rows[(c*k+site)*v+int(word)])
			}
			q.U[c] = sum / p.m.opts.Temperature
		}
		return nil
	case energies.ModelConditional:
		x := energies.Batch{Space: p.space, Codes: slices.Clone(q.X.Codes)}
		for c := range n {
			x.Chain(c)[q.Site] = -1
		}
		rows, err := p.predictions(ctx, x)
		for c := range n {
			if err == nil {
				p.conditional(q.LogP[c*v:(c+1)*v], q.Site, rows[c*v:(c+1)*v])
			}
		}
		return err
	}
	return p.Infill.Answer(ctx, q)
}

// predictions returns the log-probabilities at the masked site of each state, [state, value].
func (p predicted) predictions(ctx context.Context, x energies.Batch) ([]float32, error) {
	n := x.Chains()
	rows := make([]float32, n*p.space.Values)
	return rows, p.rows.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: make([]float64, n), Grad: rows})
}

// masked answers, as a gradient, with the log-probabilities at the one site of each state
// whose code is -1, so that a Memo can keep them.
type masked struct{ *Infill }

// Answer implements energies.Oracle.
func (m masked) Answer(ctx context.Context, q energies.Query) error {
	sites := make([]int, q.X.Chains())
	for c := range sites {
		sites[c] = slices.Index(q.X.Chain(c), -1)
	}
	v := m.space.Values
	return m.Predict(ctx, sites, q.X, func(c int, lp []float32) { copy(q.Grad[c*v:(c+1)*v], lp) })
}
