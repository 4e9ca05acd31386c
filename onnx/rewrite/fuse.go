package rewrite

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Fuse merges float32 operators, in place, that onnxruntime's CPU provider computes faster in one:
//
//   - MatMul(x, W) + b, where x has three dimensions or more, W two and b one, becomes a Gemm of x with
//     its first axes merged;
//   - LayerNormalization(x + y) over the last of at most three axes becomes com.microsoft's
//     SkipLayerNormalization.
//
// Sums that are read elsewhere too stay. The runtime's optimiser does the same, but only where every
// dimension is a number. Errors are those of shape inference.
func Fuse(m *onnx.Model) error {
	nodes := slices.Clone(m.Graph.Nodes)
	if !slices.ContainsFunc(nodes, func(n *onnx.Node) bool { return n.Op == "MatMul" || n.Op == "LayerNormalization" }) {
		return nil
	}
	b, err := build.New(m, "fused/", nil)
	if err != nil {
		return err
	}
	f := &fuser{b, readers(m.Graph)}
	for _, n := range nodes {
		switch {
		case n.Domain != "":
		case n.Op == "Add":
			f.gemm(n)
		case n.Op == "LayerNormalization":
			f.skip(n)
		}
	}
	Sort(m)
	Prune(m.Graph)
	return b.Err()
}

// fuser is a rewriting by Fuse under way.
type fuser struct {
	*build.Builder
	readers map[string]int
}

// readers counts how often each value is read, by nodes, subgraphs or as an output.
func readers(g *onnx.Graph) map[string]int {
	count := map[string]int{}
	eachName(g, func(name string, read bool) {
		if read {
			count[name]++
		}
	})
	return count
}

// only returns the writer of v if it is op and nothing else reads v.
func (f *fuser) only(v build.Value, op string) *onnx.Node {
	if n := f.Writer(v); n != nil && n.Op == op && n.Domain == "" && f.readers[v] == 1 && f.float(v) {
		return n
	}
	return nil
}

func (f *fuser) float(v build.Value) bool { return f.Info(v) != nil && f.Info(v).Type == onnx.Float }

// gemm makes an Add of a product and a vector a reshaped Gemm.
func (f *fuser) gemm(sum *onnx.Node) {
	for i := range 2 {
		product, bias := f.only(sum.In(i), "MatMul"), sum.In(1-i)
		if product == nil {
			continue
		}
		x, okX := f.Shape(product.In(0))
		w, okW := f.Shape(product.In(1))
		c, okC := f.Shape(bias)
		if !okX || !okW || !okC || len(x) < 3 || len(w) != 2 || len(c) != 1 || !c[0].Equal(w[1]) {
			continue
		}
		flat := f.ReshapeTo(product.In(0), []shape.Dim{shape.Product(x[:len(x)-1]), w[0]})
		y := f.Op("Gemm", []build.Value{flat, product.In(1), bias})
		from := []build.Value{y}
		for _, in := range f.Model().Graph.Inputs { // before x, so that all products share the computed shape
			from = append(from, in.Name)
		}
		to := f.ShapeValue(append(slices.Clone(x[:len(x)-1]), w[1]), append(from, product.In(0))...)
		sum.Op, sum.Inputs, sum.Attrs = "Reshape", []string{y, to}, nil
		return
	}
}

// skip makes the LayerNormalization of a sum a SkipLayerNormalization.
func (f *fuser) skip(n *onnx.Node) {
	sum := f.only(n.In(0), "Add")
	if sum == nil || len(n.Outputs) != 1 {
		return
	}
	whole, _ := f.Shape(n.In(0))
	last := int64(len(whole) - 1)
	if axis := n.Int("axis", -1); len(whole) < 2 || len(whole) > 3 || axis != -1 && axis != last {
		return
	}
	for i := range 2 {
		x, _ := f.Shape(sum.In(i))
		y, _ := f.Shape(sum.In(1 - i))
		scale, _ := f.Shape(n.In(1))
		// The second summand may lack the first axis, or have one row there.
		broadcast := len(y) >= 2 && len(y) <= len(whole) && shape.SameShape(y[len(y)-2:], whole[len(whole)-2:]) &&
			(len(y) < 3 || y[0].Is(1) || y[0].Equal(whole[0]))
		if !shape.SameShape(x, whole) || !broadcast || len(scale) != 1 || !scale[0].Equal(whole[last]) {
			continue
		}
		in := []string{sum.In(i), sum.In(1 - i), n.In(1)}
		if v := n.In(2); v != "" {
			in = append(in, v)
		}
		n.Op, n.Domain, n.Inputs = "SkipLayerNormalization", "com.microsoft", in
		n.Attrs = []*onnx.Attribute{onnx.FloatAttr("epsilon", n.Float("epsilon", 1e-5))}
		f.Model().SetOpset("com.microsoft", 1)
		return
	}
}
