package shape

import (
	"github.com/gradhop/gradhop/onnx"
	"slices"
)

// Operators that pick entries by a condition or by their values.

func init() {
	register(inferCompress, "Compress")
	register(inferUnique, "Unique")
}

// inferCompress: how many entries are kept is known where the condition is.
func inferCompress(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil {
		return nil, nil
	}
	kept := inf.symbol()
	if keep, ok := ConstInts(arg(in, 1)); ok {
		count := int64(0)
		for _, v := range keep {
			count += v
		}
		kept = D(count)
	}
	return inf.pickedShapes(n, x, kept, 1)
}

// inferUnique: how many different entries there are is known at run time only. Of a
// tensor of one entry there is one.
func inferUnique(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil {
		return nil, nil
	}
	return inf.pickedShapes(n, x, inf.symbol(), 4)
}

// pickedShapes gives x the size kept along the attribute axis, or makes it a vector
// where there is none. The further outputs, of Unique, are indices: of the entries
// kept, of those of the input, and counts.
func (inf *Inference) pickedShapes(n *onnx.Node, x *Info, kept Dim, outputs int) ([]*Info, error) {
	first := &Info{Type: x.Type, Known: true, Shape: []Dim{kept}}
	all := Dim{}
	switch a := n.Attr("axis"); {
	case a == nil && x.Known:
		all = Product(x.Shape)
	case a == nil:
		all = inf.symbol()
	case !x.Known:
		first, all = &Info{Type: x.Type}, inf.symbol()
	default:
		i, err := Axis(a.I, len(x.Shape))
		if err != nil {
			return nil, err
		}
		first.Shape = slices.Clone(x.Shape)
		first.Shape[i], all = kept, x.Shape[i]
	}
	vector := func(d Dim) *Info { return &Info{Type: onnx.Int64, Known: true, Shape: []Dim{d}} }
	return []*Info{first, vector(kept), vector(all), vector(kept)}[:outputs], nil
}
