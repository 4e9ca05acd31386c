package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

// twoLayers returns the outputs, [chain, row, output], of networks w₂·tanh(W₁x + b₁) + b₂ with weights w, [chain, number],
// in the order W₁, b₁, w₂, b₂, at the rows of x.
func twoLayers(b *build.Builder, w, x build.Value, features, hidden, outputs int64) build.Value {
	at := int64(0)
	part := func(size int64, to ...int64) build.Value {
		at += size
		return b.Reshape(b.Op("Slice", []build.Value{w, b.Ints(at - size), b.Ints(at), b.Ints(1)}), b.Ints(to...))
	}
	unit := b.Add(b.MatMul(x, part(features*hidden, -1, features, hidden)), part(hidden, -1, 1, hidden))
	unit = b.Op("Tanh", []build.Value{unit})
	return b.Add(b.MatMul(unit, part(hidden*outputs, -1, hidden, outputs)), part(outputs, -1, 1, outputs))
}

// classifier is a network with two layers and a normal prior of its weights, given training rows.
type classifier struct {
	features, hidden, classes int
	x                         []float64 // [row, feature]
	y                         []int     // [row]
	prior                     float64   // standard deviation of a weight
}

// weights is the number of weights.
func (n *classifier) weights() int { return (n.features+1+n.classes)*n.hidden + n.classes }

// model builds a model of the weights: out adds outputs to it, given the log-probabilities of classes, [chain, row, class],
// and the logarithm of the prior, up to a constant.
func (n *classifier) model(s Settings, out func(b *build.Builder, logp, prior build.Value) build.Value) (*neural.Model, error) {
	b, err := build.New(&onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "network"}}, "n/", nil)
	if err != nil {
		return nil, err
	}
	rows := int64(len(n.y))
	w := b.Input("weights", onnx.Float, shape.Sym("chain"), shape.D(int64(n.weights())))
	logp := b.Op("LogSoftmax", []build.Value{twoLayers(b, w, b.Const(onnx.NewFloat("", []int64{rows, int64(n.features)}, narrow(n.x))), int64(n.features), int64(n.hidden), int64(n.classes))}, onnx.IntAttr("axis", -1))
	prior := b.Scale(b.ReduceSum(b.Mul(w, w), []int64{1}, false), -1/(2*n.prior*n.prior))
	b.Output("value", out(b, logp, prior))
	if err := b.Err(); err != nil {
		return nil, err
	}
	return neural.NewModel(b.Model(), neural.ModelOptions{Space: energies.Space{Kind: energies.Real, Sites: n.weights(), Values: 1}, Runtime: s.Runtime})
}

// likelihood is Σ log p(y | x) over the rows, [chain].
func (n *classifier) likelihood(b *build.Builder, logp build.Value) build.Value {
	hot := make([]float32, len(n.y)*n.classes)
	for k, y := range n.y {
		hot[k*n.classes+y] = 1
	}
	return b.ReduceSum(b.Mul(logp, b.Const(onnx.NewFloat("", []int64{int64(len(n.y)), int64(n.classes)}, hot))), []int64{1, 2}, false)
}

// predict returns the mean probabilities of classes of the chains of x at rows, [row, class].
func (n *classifier) predict(x energies.Batch, rows []float64) []float64 {
	count := len(rows) / n.features
	mean := make([]float64, count*n.classes)
	energies.Parallel(count, count*len(x.Codes), func(_, lo, hi int) {
		unit, logit := make([]float64, n.hidden), make([]float64, n.classes)
		for c := range x.Chains() {
			w := numbersOf(x, c)
			first, second := w[:(n.features+1)*n.hidden], w[(n.features+1)*n.hidden:]
			for k := lo; k < hi; k++ {
				copy(unit, first[n.features*n.hidden:])
				for i, v := range rows[k*n.features : (k+1)*n.features] {
					for j := range unit {
						unit[j] += v * first[i*n.hidden+j]
					}
				}
				copy(logit, second[n.hidden*n.classes:])
				for j, v := range unit {
					for y := range logit {
						logit[y] += math.Tanh(v) * second[j*n.classes+y]
					}
				}
				total := 0.0
				for _, v := range logit {
					total += math.Exp(v)
				}
				for y, v := range logit {
					mean[k*n.classes+y] += math.Exp(v) / total / float64(x.Chains())
				}
			}
		}
	})
	return mean
}

// sample draws weights from small ones, and calls each after every so many steps and at the end.
func (n *classifier) sample(ctx context.Context, e energies.Energy, sampler string, set samplers.Settings, chains, steps, every int, seed uint64, each func(step int, x energies.Batch)) error {
	kernel, err := samplers.New(sampler, e, set)
	if err != nil {
		return err
	}
	var r rng.Stream
	r.Reset(seed, 0, 0, useWeights)
	start := make([]int32, chains*n.weights())
	for k := range start {
		start[k] = energies.RealCode(0.1 * r.Normal())
	}
	_, err = samplers.Run(ctx, samplers.Config{Kernel: kernel, Init: start, Steps: steps, Seed: seed, Observers: []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
		if s.Step%int64(every) == 0 || s.Step == int64(steps) {
			each(int(s.Step), s.X)
		}
		return nil
	})}})
	var bad *samplers.NonFiniteError
	if errors.As(err, &bad) {
		return fmt.Errorf("%s diverged in step %d: %s; choose a smaller step size", sampler, bad.Step, bad.What)
	}
	return err
}

// useWeights is a use of random numbers.
const useWeights uint32 = 50

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for k, v := range x {
		out[k] = float32(v)
	}
	return out
}
