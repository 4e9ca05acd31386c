package ebm

import (
	"math"
	"testing"

	"github.com/gradhop/gradhop/onnx/ort"
)

// Gradients of +1 and then -1 make steps that are known by hand: V is 1 throughout, and
// M is 1 and then (0.9·0.1 - 0.1)/(1 - 0.9²) with momentum, -1 without.
func TestAscend(t *testing.T) {
	const rate = 0.01
	momentum := rate * (0.09 - 0.1) / (1 - 0.81)
	for _, c := range []struct {
		name          string
		o             Optimizer
		first, second float64
	}{
		{"momentum", Optimizer{}, rate, momentum},
		{"no momentum", Optimizer{NoMomentum: true}, rate, -rate},
		{"half-life", Optimizer{HalfLife: 2}, rate / math.Sqrt2, momentum / 2},
		{"warm-up", Optimizer{Warmup: 2}, rate / 2, momentum},
	} {
		c.o.LearningRate = rate
		w := &Weights{Names: []string{"w"}, Tensors: []*ort.Tensor{{Shape: []int64{1}, Data: []float32{0}}}}
		m := newMoments(w, false)
		m.ascend(&c.o, w, [][]float32{{1}})
		first := float64(w.Data(0)[0])
		m.ascend(&c.o, w, [][]float32{{-1}})
		second := float64(w.Data(0)[0]) - first
		if math.Abs(first-c.first) > 1e-6 || math.Abs(second-c.second) > 1e-6 {
			t.Errorf("%s: steps %.6f and %.6f, want %.6f and %.6f", c.name, first, second, c.first, c.second)
		}
	}
}
