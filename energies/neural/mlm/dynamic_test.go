package mlm_test

import (
	"testing"

	"github.com/gradhop/gradhop/energies/neural/internal/neuraltest"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// TestDynamicMLM: each chain's U, gradient, tilt and conditional are those of the chain
// alone, though the model rounds by what it finds in a run.
func TestDynamicMLM(t *testing.T) {
	r, file := bert(t, "legacy-14")
	for _, form := range []mlm.Form{mlm.PLL, mlm.MRF} {
		m, err := onnx.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if neuraltest.RoundMatMuls(m) == 0 {
			t.Fatal("nothing is rounded")
		}
		model, err := mlm.New(m, mlm.Options{MaskID: r.MaskID, Form: form, MaxBatch: 8, Runtime: ort.Options{Threads: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer model.Close()
		plain := openModel(t, file, mlm.Options{MaskID: r.MaskID, Form: form, Runtime: ort.Options{Threads: 1}})
		for _, text := range r.Texts {
			e, _ := r.energyOf(t, model, text)
			x := neuraltest.ManyChains(e.Space(), 5)
			all := products(t, e, x)
			for c := range x.Chains() {
				// Another energy, which remembers nothing of the first.
				fresh, _ := r.energyOf(t, model, text)
				single := products(t, fresh, x.Slice(c, c+1))
				for k, p := range all {
					each, row := len(p.U)/x.Chains(), len(p.Grad)/x.Chains()
					part := neuraltest.Product{U: p.U[c*each : (c+1)*each], Grad: p.Grad[c*row : (c+1)*row]}
					if d := neuraltest.Difference([]neuraltest.Product{part}, single[k:k+1]); d != 0 {
						t.Errorf("%v: neuraltest.Product %d of chain %d is %g from that of the chain alone", form, k, c, d)
					}
				}
			}
			other, _ := r.energyOf(t, plain, text)
			if d := neuraltest.Difference(all[:1], products(t, other, x)[:1]); d == 0 || d > 5 {
				t.Errorf("%v: U is %g from that of the model that rounds nothing", form, d)
			}
		}
	}
}
