package ebm

import (
	"context"
	"maps"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// objective is a session that computes U of a batch and, by the weights, the gradient of
//
//	Σ_b c_b·U_b - λ Σ_b |c_b|·U_b²
//
// With c = 1/n for data and -1/n for samples this is the gradient of the log-likelihood
// by persistent contrastive divergence (Tieleman 2008), less the magnitude penalty.
type objective struct {
	session *neural.Session
	state   string
	grads   [][]float32
	shapes  [][]int64
	weights *ort.Weights
}

const coefficients = "objective/c"

// newObjective appends the objective and its gradient to m, whose weights are inputs. Where o names a
// plug-in, the objective runs on the provider cpu: plug-ins want constant weights, and opening a session
// for one run of the objective costs more than it saves.
func newObjective(ctx context.Context, m *onnx.Model, input, output string, negate bool, magnitude float64, w *Weights, o ort.Options) (*objective, error) {
	if o.Plugin() {
		o = o.CPU()
	}
	m = m.Clone()
	b, err := build.New(m, "objective/", nil)
	if err != nil {
		return nil, err
	}
	c := b.Input(coefficients, onnx.Float, shape.Sym("objective_batch"))
	u := b.Reshape(output, b.Ints(-1))
	if negate {
		u = b.Neg(u)
	}
	total := b.ReduceSum(b.Mul(c, u), []int64{0}, false)
	if magnitude > 0 {
		square := b.Mul(b.Op("Abs", []build.Value{c}), b.Mul(u, u))
		total = b.Sub(total, b.Scale(b.ReduceSum(square, []int64{0}, false), magnitude))
	}
	b.Output("objective/U", u)
	b.Output("objective/total", total)
	if err := b.Err(); err != nil {
		return nil, err
	}
	r, err := grad.Append(m, grad.Options{Of: "objective/total", Wrt: w.Names, Reduce: grad.ReduceSum})
	if err != nil {
		return nil, err
	}
	outputs := append([]string{"objective/U"}, r.Grads...)
	g := r.Model.Graph
	g.Outputs = nil
	for _, name := range outputs {
		g.Outputs = append(g.Outputs, &onnx.ValueInfo{Name: name, Type: onnx.Type{Elem: onnx.Float}})
	}
	rewrite.Prune(g)
	j := &objective{state: input}
	for _, t := range w.Tensors {
		j.grads = append(j.grads, make([]float32, len(t.Data.([]float32))))
		j.shapes = append(j.shapes, t.Shape)
	}
	if m, j.weights, err = ort.Arrange(ctx, r.Model, w.inputs(), o); err != nil {
		return nil, err
	}
	j.session, err = neural.OpenSession(ctx, m, o)
	return j, err
}

// run evaluates the objective at states laid out by encode. The gradients, [weight][number],
// are valid until the next call; u is [chain].
func (j *objective) run(ctx context.Context, x *ort.Tensor, c []float32) (u []float32, g [][]float32, err error) {
	j.weights.Update()
	all := maps.Clone(j.weights.Inputs)
	all[j.state] = x
	all[coefficients] = &ort.Tensor{Shape: []int64{int64(len(c))}, Data: c}
	u = make([]float32, len(c))
	out := []*ort.Tensor{{Shape: []int64{int64(len(c))}, Data: u}}
	for k := range j.grads {
		out = append(out, &ort.Tensor{Shape: j.shapes[k], Data: j.grads[k]})
	}
	err = j.session.Run(ctx, all, out)
	return u, j.grads, err
}

// joined returns the two batches as one.
func joined(a, b energies.Batch) energies.Batch {
	codes := append(append(make([]int32, 0, len(a.Codes)+len(b.Codes)), a.Codes...), b.Codes...)
	return energies.Batch{Space: a.Space, Codes: codes}
}
