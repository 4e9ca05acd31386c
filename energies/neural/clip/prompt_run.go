package clip

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx/ort"
)

// LogDensity writes U of each filling; see [energies.Energy].
func (e *Prompt) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	c, n := e.c, x.Chains()
	unit := make([]float32, n*c.text.width)
	texts := make([][]int32, n)
	for k := range texts {
		texts[k] = e.IDs(x.Chain(k))
	}
	if err := c.encode(ctx, unit, n, c.text.tokens(len(e.text.IDs)), func(k int) []int32 { return texts[k] }); err != nil {
		return err
	}
	e.score(u, unit, e.whole)
	return nil
}

// LogDensityGrad writes U and its gradient; see [energies.Differentiable].
func (e *Prompt) LogDensityGrad(ctx context.Context, u []float64, g []float32, x energies.Batch) error {
	return e.gradient(ctx, u, g, x, e.whole)
}

// Terms implements energies.Minibatch; the terms are the targets.
func (e *Prompt) Terms() int { return len(e.terms) }

// LogDensityTilt writes U and the softmax of half its gradient; see [energies.Tilter].
func (e *Prompt) LogDensityTilt(ctx context.Context, u []float64, p []float32, x energies.Batch) error {
	d := make([]float32, len(x.Codes)*e.c.text.embed)
	if err := e.slopes(ctx, u, d, x, e.whole); err != nil {
		return err
	}
	s, err := e.head(ctx, "tilt", e.tiltGraph)
	if err != nil {
		return err
	}
	return e.runHead(ctx, s, nil, d, e.c.text.embed, p)
}

// Temper writes the softmax of ½β·g; see [energies.Temperer].
func (e *Prompt) Temper(ctx context.Context, p, g []float32, beta []float64) error {
	s, err := e.head(ctx, "temper", e.temperGraph)
	if err != nil {
		return err
	}
	half := make([]float32, 0, len(g)/e.space.Values)
	for _, b := range beta {
		half = append(half, slices.Repeat([]float32{float32(b / 2)}, e.space.Sites)...)
	}
	if len(half) == 1 { // a single row is doubled, see runHead
		half = append(half, half...)
	}
	in := map[string]*ort.Tensor{inScale: {Shape: []int64{int64(len(half)), 1}, Data: half}}
	return e.runHead(ctx, s, in, g, e.space.Values, p)
}

// EstimateGrad writes U and its gradient, estimated from some of the targets of each
// chain; see [energies.Minibatch].
func (e *Prompt) EstimateGrad(ctx context.Context, u []float64, g []float32, x energies.Batch, batch [][]int32) error {
	goal, err := e.some(x, batch)
	if err != nil {
		return err
	}
	return e.gradient(ctx, u, g, x, goal)
}

// some returns the goal of each chain where it sees the targets of its list only.
func (e *Prompt) some(x energies.Batch, batch [][]int32) (func(c int) []float64, error) {
	goals := make([][]float64, x.Chains())
	if len(batch) != len(goals) {
		return nil, neural.BadOption("batch", fmt.Sprintf("%d lists for %d chains", len(batch), len(goals)), "one a chain")
	}
	for c, list := range batch {
		goals[c] = make([]float64, e.c.text.width)
		if len(list) == 0 {
			return nil, neural.BadOption("batch", "no target", "at least one a chain")
		}
		for _, j := range list {
			if j < 0 || int(j) >= len(e.terms) {
				return nil, neural.BadOption("batch", fmt.Sprint(j), fmt.Sprintf("targets below %d", len(e.terms)))
			}
			w := e.omega[j] * float64(len(e.terms)) / float64(len(list))
			for k, v := range e.terms[j] {
				goals[c][k] += w * float64(v)
			}
		}
	}
	return func(c int) []float64 { return goals[c] }, nil
}

// whole is the goal of every chain where no target is left out.
func (e *Prompt) whole(int) []float64 { return e.goal }

// score writes the product of each unit vector with its goal.
func (e *Prompt) score(u []float64, unit []float32, goal func(c int) []float64) {
	width := e.c.text.width
	for c := range u {
		to := goal(c)
		sum := 0.0
		for k, v := range unit[c*width : (c+1)*width] {
			sum += float64(v) * to[k]
		}
		u[c] = sum
	}
}

// gradient writes U and ∂U/∂onehot for a goal of each chain.
func (e *Prompt) gradient(ctx context.Context, u []float64, g []float32, x energies.Batch, goal func(c int) []float64) error {
	d := make([]float32, len(x.Codes)*e.c.text.embed)
	if err := e.slopes(ctx, u, d, x, goal); err != nil {
		return err
	}
	s, err := e.head(ctx, "gradient", e.gradientGraph)
	if err != nil {
		return err
	}
	return e.runHead(ctx, s, nil, d, e.c.text.embed, g)
}

// slopes writes U and ∂U/∂embedding, [chain, site, embed].
func (e *Prompt) slopes(ctx context.Context, u []float64, d []float32, x energies.Batch, goal func(c int) []float64) error {
	t := e.c.text
	s, err := e.c.session(ctx, graphKey{name: "slopes"}, t.slopes)
	if err != nil {
		return err
	}
	each := e.space.Sites * t.embed
	return e.c.parts(x.Chains(), t.tokens(len(e.text.IDs)), func(lo, hi, rows int) error {
		in := e.inputs(x, lo, hi, rows, goal)
		unit, slope := make([]float32, rows*t.width), d[lo*each:hi*each]
		if rows > hi-lo {
			slope = make([]float32, rows*each)
		}
		n := int64(rows)
		out := []*ort.Tensor{{Shape: []int64{n, int64(t.width)}, Data: unit}, {Shape: []int64{n, int64(e.space.Sites), int64(t.embed)}, Data: slope}}
		if err := s.Run(ctx, in, out); err != nil {
			return err
		}
		copy(d[lo*each:hi*each], slope)
		e.score(u[lo:hi], unit, func(c int) []float64 { return goal(lo + c) })
		return nil
	})
}

// inputs lays out the chains [lo, hi), the last one again in rows that are left over.
func (e *Prompt) inputs(x energies.Batch, lo, hi, rows int, goal func(c int) []float64) map[string]*ort.Tensor {
	t := e.c.text
	tokens := t.tokens(len(e.text.IDs))
	embedded := make([]float32, 0, rows*tokens*t.embed)
	target := make([]float32, 0, rows*t.width)
	texts := make([][]int32, rows)
	for r := range rows {
		c := min(lo+r, hi-1)
		codes := x.Chain(c)
		texts[r] = e.IDs(codes)
		from := len(embedded)
		embedded = append(embedded, e.fixed...)
		for i, p := range e.text.Blanks {
			copy(embedded[from+p*t.embed:], e.row(codes[i]))
		}
		for _, v := range goal(c) {
			target = append(target, float32(v))
		}
	}
	in := t.feed(rows, tokens, func(r int) []int32 { return texts[r] })
	blanks := make([]int64, len(e.text.Blanks))
	for i, p := range e.text.Blanks {
		blanks[i] = int64(p)
	}
	shape := []int64{int64(rows), int64(tokens), int64(t.embed)}
	if t.flat {
		shape = []int64{int64(rows * tokens), int64(t.embed)}
	}
	in[t.embedded] = &ort.Tensor{Shape: shape, Data: embedded}
	in[inTarget] = &ort.Tensor{Shape: []int64{int64(rows), int64(t.width)}, Data: target}
	in[inBlanks] = &ort.Tensor{Shape: []int64{int64(len(blanks))}, Data: blanks}
	return in
}

// row is the embedding of a value.
func (e *Prompt) row(code int32) []float32 {
	n := e.c.text.embed
	return e.table[int(code)*n : (int(code)+1)*n]
}

// runHead evaluates one of the prompt's own graphs on rows of a site each, from and to.
func (e *Prompt) runHead(ctx context.Context, s *session.Session, in map[string]*ort.Tensor, from []float32, width int, to []float32) error {
	rows := len(from) / width
	if rows == 0 {
		return nil
	}
	sites := int64(e.space.Sites)
	if rows == 1 { // which has a kernel of its own, see doubleRows
		twice := make([]float32, 2*len(to))
		err := e.runHead(ctx, s, in, append(from[:width:width], from...), width, twice)
		copy(to, twice)
		return err
	}
	if in == nil {
		in = map[string]*ort.Tensor{}
	}
	in[inHead] = &ort.Tensor{Shape: []int64{int64(rows), int64(width)}, Data: from}
	return s.Run(ctx, in, []*ort.Tensor{{Shape: []int64{int64(rows) / sites, sites, int64(e.space.Values)}, Data: to}})
}
