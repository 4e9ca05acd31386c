package neural_test

import (
	"slices"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
)

// roundMatMuls rounds the results of a model's products to bytes, by a scale found in each
// run over all its rows.
func roundMatMuls(m *onnx.Model) int {
	n := 0
	for _, node := range slices.Clone(m.Graph.Nodes) {
		if node.Op != "MatMul" {
			continue
		}
		n++
		y := node.Outputs[0]
		exact, byteOf, scale, zero := y+"/exact", y+"/byte", y+"/scale", y+"/zero"
		node.Outputs[0] = exact
		m.Graph.Nodes = append(m.Graph.Nodes,
			&onnx.Node{Op: "DynamicQuantizeLinear", Inputs: []onnx.Value{exact}, Outputs: []string{byteOf, scale, zero}},
			&onnx.Node{Op: "DequantizeLinear", Inputs: []onnx.Value{byteOf, scale, zero}, Outputs: []string{y}})
	}
	return n
}

// TestDynamicMLM: each chain's U, gradient, tilt and conditional are those of the chain
// alone, though the model rounds by what it finds in a run.
func TestDynamicMLM(t *testing.T) {
	r, file := bert(t, "legacy-14")
	for _, form := range []neural.Form{neural.PLL, neural.MRF} {
		m, err := onnx.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if roundMatMuls(m) == 0 {
			t.Fatal("nothing is rounded")
		}
		mlm, err := neural.NewMLM(m, neural.MLMOptions{MaskID: r.MaskID, Form: form, MaxBatch: 8, Runtime: one})
		if err != nil {
			t.Fatal(err)
		}
		defer mlm.Close()
		plain := openMLM(t, file, neural.MLMOptions{MaskID: r.MaskID, Form: form, Runtime: one})
		for _, text := range r.Texts {
			e, _ := r.energyOf(t, mlm, text)
			x := manyChains(e.Space(), 5)
			all := products(t, e, x)
			for c := range x.Chains() {
				// Another energy, which remembers nothing of the first.
				fresh, _ := r.energyOf(t, mlm, text)
				single := products(t, fresh, x.Slice(c, c+1))
				for k, p := range all {
					each, row := len(p.u)/x.Chains(), len(p.grad)/x.Chains()
					part := product{p.u[c*each : (c+1)*each], p.grad[c*row : (c+1)*row]}
					if d := difference([]product{part}, single[k:k+1]); d != 0 {
						t.Errorf("%v: product %d of chain %d is %g from that of the chain alone", form, k, c, d)
					}
				}
			}
			other, _ := r.energyOf(t, plain, text)
			if d := difference(all[:1], products(t, other, x)[:1]); d == 0 || d > 5 {
				t.Errorf("%v: U is %g from that of the model that rounds nothing", form, d)
			}
		}
	}
}

// TestDynamicModel is the same for any model, with a batch that is open or a number.
func TestDynamicModel(t *testing.T) {
	q := newQuadratic(6)
	for _, batch := range []onnx.Dim{onnx.Sym("n"), onnx.D(3)} {
		m := q.model(t, onnx.Float, batch, onnx.D(6))
		if roundMatMuls(m) != 1 {
			t.Fatal("one product is wanted")
		}
		e, err := neural.NewModel(m, neural.ModelOptions{Space: energies.Space{Sites: 6, Values: 2, Kind: energies.Spin}, Runtime: one})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		x := energies.NewBatch(e.Space(), 7)
		for k := range x.Codes {
			x.Codes[k] = int32(k*k/3) % 2
		}
		all := evaluate(t, e.LogDensityGrad, x)
		for c := range x.Chains() {
			single := evaluate(t, e.LogDensityGrad, x.Slice(c, c+1))
			if single.u[0] != all.u[c] || !slices.Equal(single.grad, all.grad[c*12:(c+1)*12]) {
				t.Errorf("batch %v: chain %d has U %v among others, %v alone", batch, c, all.u[c], single.u[0])
			}
		}
	}
}
