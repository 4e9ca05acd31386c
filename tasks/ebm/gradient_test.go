package ebm

import (
	"context"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers/rng"
	"github.com/gradhop/gradhop/tasks/ebm/dataset"
	"github.com/gradhop/gradhop/tasks/ebm/network"
)

// The gradient by every weight of every network equals central differences of the
// objective, computed from U alone, along random directions.
func TestWeightGradient(t *testing.T) {
	names, _ := network.Kinds()
	for _, kind := range names {
		t.Run(kind, func(t *testing.T) {
			space := energies.Space{Sites: 25, Values: 2, Kind: energies.Binary}
			m, err := network.New(kind, network.Options{Space: space, Width: 8, Depth: 3, Seed: 2})
			if err != nil {
				t.Fatal(err)
			}
			numbers := make([]float64, 25*6)
			var r rng.Stream
			r.Reset(1, 0, 0, 0)
			for i := range numbers {
				numbers[i] = float64(r.IntN(2))
			}
			d, err := dataset.New("random", &space, numbers, 1, dataset.Exact, 0)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := New(context.Background(), m, d, Settings{Batch: 3, Buffer: 8, Magnitude: 0.1, Runtime: ort.Options{Threads: 1}})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			x := energies.NewBatch(&space, d.Rows)
			for c := range d.Rows {
				d.Row(x.Chain(c), c, 0)
			}
			c := []float32{1, 0.5, -1, -0.5, 0.25, -2}
			state := tr.energy.Encode(x)
			objective := func() float64 {
				u, _, err := tr.objective.run(context.Background(), state, c)
				if err != nil {
					t.Fatal(err)
				}
				total := 0.0
				for b, v := range u {
					total += float64(c[b])*float64(v) - 0.1*math.Abs(float64(c[b]))*float64(v)*float64(v)
				}
				return total
			}
			for k, name := range tr.weights.Names {
				w := tr.weights.Data(k)
				direction := make([]float64, len(w))
				r.Reset(9, int64(k), 0, 0)
				for i := range direction {
					direction[i] = 2*r.Float64() - 1
				}
				_, g, err := tr.objective.run(context.Background(), state, c)
				if err != nil {
					t.Fatal(err)
				}
				want, size := 0.0, 0.0
				for i, v := range g[k] {
					want += float64(v) * direction[i]
					size += math.Abs(float64(v) * direction[i])
				}
				const h = 1e-2
				before := append([]float32(nil), w...)
				shift := func(s float64) float64 {
					for i := range w {
						w[i] = before[i] + float32(s*h*direction[i])
					}
					return objective()
				}
				got := (shift(1) - shift(-1)) / (2 * h)
				copy(w, before)
				if math.Abs(got-want) > 1e-2*size+1e-3 {
					t.Errorf("%s: difference %.5f, gradient %.5f (terms add up to %.5f)", name, got, want, size)
				}
			}
		})
	}
}

// Training with weights as constants of sessions is that with weights as inputs, but for
// rounding: also the second update, which must read the weights anew, for the sampler and
// for the gradient.
func TestConstantWeights(t *testing.T) {
	space := energies.Space{Sites: 64, Values: 2, Kind: energies.Binary}
	numbers := make([]float64, 64*6)
	var r rng.Stream
	r.Reset(1, 0, 0, 0)
	for i := range numbers {
		numbers[i] = float64(r.IntN(2))
	}
	d, err := dataset.New("random", &space, numbers, 1, dataset.Exact, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := network.New("resnet", network.Options{Space: space, Width: 16, Depth: 3, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	before := manyProducts
	defer func() { manyProducts = before }()
	var runs [2][]Progress
	for constant := range runs {
		manyProducts = []float64{math.Inf(1), 0}[constant]
		tr, err := New(context.Background(), m, d, Settings{Batch: 4, Buffer: 8, Steps: 3, Optimizer: Optimizer{LearningRate: 0.05}, Runtime: ort.Options{Threads: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		if tr.constants != (constant == 1) {
			t.Fatalf("constants: %v", tr.constants)
		}
		for range 3 {
			p, err := tr.Step(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			runs[constant] = append(runs[constant], p)
		}
	}
	for k, p := range runs[0] {
		q := runs[1][k]
		for name, pair := range map[string][2]float64{"U of data": {p.Data, q.Data}, "U of samples": {p.Samples, q.Samples}, "acceptance": {p.Accept, q.Accept}, "norm": {p.Norm, q.Norm}} {
			if math.Abs(pair[0]-pair[1]) > 1e-3*math.Abs(pair[0]) {
				t.Errorf("update %d: %s is %v, with constants %v", k+1, name, pair[0], pair[1])
			}
		}
		if k > 0 && math.Abs(p.Data-runs[0][k-1].Data) < 0.01*math.Abs(p.Data) {
			t.Errorf("update %d: U of data stays at %v, so the test sees nothing", k+1, p.Data)
		}
	}
}
