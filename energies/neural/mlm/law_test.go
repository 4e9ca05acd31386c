package mlm_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
)

// The draws of each exact sampler: chains that do not know of each other, so that
// the spread between them is the statistical error whatever the autocorrelation.
const (
	lawChains = 800
	lawBurn   = 60
	lawSteps  = 130 // 104,000 draws
)

// TestLawOfExactSamplers draws from the pll law of two blanks with twelve allowed
// words each, and compares the frequencies with the enumerated law.
func TestLawOfExactSamplers(t *testing.T) {
	file, err := onnx.Load("testdata/bert/dynamo-20/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	model, err := mlm.New(file, mlm.Options{MaskID: 4, Temperature: 4, Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	words := []int32{9, 14, 18, 23, 31, 37, 44, 52, 58, 63, 70, 77}
	e, err := model.Infill(mlm.Text{IDs: []int32{2, 20, 4, 33, 41, 4, 27, 3}, Blanks: []int{2, 5}, Allowed: [][]int32{words}})
	if err != nil {
		t.Fatal(err)
	}
	states, law := enumerate(t, e, words)
	for _, name := range []string{"dmala", "gwg", "gibbs"} {
		t.Run(name, func(t *testing.T) {
			var on energies.Energy = e
			if name == "gibbs" {
				on = &remembered{Energy: e, u: map[string]float64{}}
			}
			settings := samplers.Settings{}
			if name == "dmala" {
				settings["step-size"] = "1.5"
			}
			checkLaw(t, on, name, settings, states, law)
		})
	}
}

// enumerate returns every state and its probability, from U alone.
func enumerate(t *testing.T, e energies.Energy, words []int32) (map[string]int, []float64) {
	x := energies.Batch{Space: e.Space()}
	states := map[string]int{}
	for _, a := range words {
		for _, b := range words {
			states[fmt.Sprint([]int32{a, b})] = len(states)
			x.Codes = append(x.Codes, a, b)
		}
	}
	u := make([]float64, len(states))
	if err := e.LogDensity(context.Background(), u, x); err != nil {
		t.Fatal(err)
	}
	z := 0.0
	for i := range u {
		u[i] = math.Exp(u[i])
		z += u[i]
	}
	least, most := 1.0, 0.0
	for i := range u {
		u[i] /= z
		least, most = min(least, u[i]), max(most, u[i])
	}
	if most < 5*least {
		t.Fatalf("the law is nearly flat (%.4f to %.4f): this would test nothing", least, most)
	}
	return states, u
}

// checkLaw runs a sampler and compares frequencies with law, in standard errors
// estimated between chains.
func checkLaw(t *testing.T, e energies.Energy, name string, settings samplers.Settings, states map[string]int, law []float64) {
	kernel, err := samplers.New(name, e, settings)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([][]float64, lawChains)
	for c := range counts {
		counts[c] = make([]float64, len(law))
	}
	record := samplers.ObserverFunc(func(s *samplers.State, info *samplers.Info) error {
		if !info.Keep {
			return nil
		}
		for c := range counts {
			k, ok := states[fmt.Sprint(s.X.Chain(c))]
			if !ok {
				return fmt.Errorf("state %v is not allowed", s.X.Chain(c))
			}
			counts[c][k]++
		}
		return nil
	})
	cfg := samplers.Config{Kernel: kernel, Chains: lawChains, Warmup: lawBurn, Steps: lawSteps, Seed: 20, Observers: []samplers.Observer{record}}
	if _, err := samplers.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	// With 3 samplers of at most 144 cells, 4.4 standard errors are passed by
	// chance once in two hundred runs of other seeds.
	const bound = 4.4
	worst, cells, far := 0.0, 0, 0.0
	for k, p := range pooled(law) {
		mean, square := 0.0, 0.0
		for c := range counts {
			f := 0.0
			for _, s := range p.states {
				f += counts[c][s] / lawSteps
			}
			mean += f
			square += f * f
		}
		mean /= lawChains
		se := math.Sqrt((square/lawChains - mean*mean) / (lawChains - 1))
		z := (mean - p.prob) / se
		far += z * z
		cells++
		if worst = max(worst, math.Abs(z)); math.Abs(z) > bound {
			t.Errorf("cell %d: frequency %.5f, law %.5f: %.1f standard errors apart", k, mean, p.prob, z)
		}
	}
	t.Logf("%s: %d draws, %d cells, worst %.2f standard errors, mean square %.2f", name, lawChains*lawSteps, cells, worst, far/float64(cells))
	// The squares are correlated between cells; twice their expectation is far out.
	if far/float64(cells) > 2 {
		t.Errorf("mean squared deviation is %.2f squared standard errors; 1 is expected", far/float64(cells))
	}
}

// cell is a set of states that is tested together.
type cell struct {
	states []int
	prob   float64
}

// pooled joins rare states, for which the normal law of z would not hold.
func pooled(law []float64) []cell {
	var cells []cell
	var rare cell
	for i, p := range law {
		if p*lawChains*lawSteps < 200 {
			rare.states, rare.prob = append(rare.states, i), rare.prob+p
			continue
		}
		cells = append(cells, cell{[]int{i}, p})
	}
	if rare.prob*lawChains*lawSteps > 200 {
		cells = append(cells, rare)
	}
	return cells
}

// remembered keeps U of the states it has seen, so that a sampler that enumerates
// asks the model once for each.
type remembered struct {
	energies.Energy
	u map[string]float64
}

func (r *remembered) LogDensity(ctx context.Context, u []float64, x energies.Batch) error {
	var missing energies.Batch
	missing.Space = x.Space
	var keys []string
	for c := range u {
		k := fmt.Sprint(x.Chain(c))
		if _, ok := r.u[k]; !ok {
			r.u[k] = math.NaN()
			keys = append(keys, k)
			missing.Codes = append(missing.Codes, x.Chain(c)...)
		}
	}
	if len(keys) > 0 {
		fresh := make([]float64, len(keys))
		if err := r.Energy.LogDensity(ctx, fresh, missing); err != nil {
			return err
		}
		for i, k := range keys {
			r.u[k] = fresh[i]
		}
	}
	for c := range u {
		u[c] = r.u[fmt.Sprint(x.Chain(c))]
	}
	return nil
}
