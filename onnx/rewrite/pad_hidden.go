package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
	"slices"
)

// Rows of a matrix that lie a multiple of a page apart fall into the same few lines of a
// processor's cache: a product with such rows is up to a tenth slower.
const (
	slowStride = 1024 // floats: 4096 bytes
	hiddenMore = 16   // one line of the cache
)

// finiteAtZero lists the element-wise operators that give numbers for any numbers.
var finiteAtZero = map[string]bool{"Add": true, "Sub": true, "Mul": true, "Neg": true, "Abs": true, "Erf": true, "Tanh": true, "Sigmoid": true,
	"Relu": true, "Gelu": true, "QuickGelu": true, "FastGelu": true, "Softplus": true, "Elu": true, "LeakyRelu": true, "Selu": true, "HardSigmoid": true,
	"HardSwish": true, "Mish": true, "Min": true, "Max": true, "Identity": true}

// PadHidden rewrites perceptrons in the main graph of m in place: a hidden layer between
// two products with constant matrices whose width is a multiple of 1024 gets 16 more
// entries, for which the matrices have zeros, where only element-wise operators lie
// between. What is computed stays; rows of the hidden layer no longer compete for the
// processor's cache. Only matrices of type float are rewritten, whose data is at hand.
func PadHidden(m *onnx.Model) error {
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	w := newMerging(m, vals)
	for _, n := range slices.Clone(m.Graph.Nodes) {
		if p := w.hidden(n); p != nil {
			p.pad()
		}
	}
	Prune(m.Graph)
	return nil
}

// hidden is the part of a graph between two matrices.
type hidden struct {
	w       *merging
	width   int
	values  map[string]bool
	into    []*onnx.Node         // products that write it
	vectors map[*onnx.Node][]int // inputs that are a number for each entry
	out     []*onnx.Node         // products that read it
}

// hidden returns the layer that a product reads, or nil where it cannot be padded.
func (w *merging) hidden(n *onnx.Node) *hidden {
	if n.Op != "MatMul" || n.Domain != "" {
		return nil
	}
	m := w.matrix(n.In(1))
	if m == nil || m.rows%slowStride != 0 {
		return nil
	}
	h := &hidden{w: w, width: m.rows, values: map[string]bool{}, vectors: map[*onnx.Node][]int{}}
	if !h.add(n.Inputs[0]) {
		return nil
	}
	for v := range h.values {
		if w.g.Output(v) != nil {
			return nil
		}
		for _, r := range w.readers[v] {
			switch {
			case r == nil:
				return nil
			case h.values[r.Out(0)] && len(r.Outputs) == 1 && r.Op != "MatMul":
			case r.Op == "MatMul" && r.Domain == "" && r.In(0) == v && r.In(1) != v && w.matrix(r.In(1)) != nil:
				if !slices.Contains(h.out, r) {
					h.out = append(h.out, r)
				}
			default:
				return nil
			}
		}
	}
	return h
}

// add takes v, and what it is computed from up to products, into the layer.
func (h *hidden) add(v string) bool {
	if h.values[v] {
		return true
	}
	w, n := h.w, h.w.writer[v]
	shape := w.vals[v]
	if n == nil || len(n.Outputs) != 1 || shape.Rank() < 2 || !shape.Shape[shape.Rank()-1].Is(int64(h.width)) || shape.Type != onnx.Float {
		return false
	}
	h.values[v] = true
	if n.Op == "MatMul" && n.Domain == "" {
		h.into = append(h.into, n)
		return w.matrix(n.In(1)) != nil
	}
	if n.Domain != "" && n.Domain != "com.microsoft" || !finiteAtZero[n.Op] && n.Op != "Div" {
		return false
	}
	for i, x := range n.Inputs {
		t := w.consts[x]
		switch size, known := elements(t); {
		case known && size == 1 && (n.Op != "Div" || i == 1 && nonzero(t)):
		case atHand(t, 1) && size == int64(h.width) && n.Op != "Div":
			h.vectors[n] = append(h.vectors[n], i)
		case t != nil || n.Op == "Div" && i == 1 || !h.add(x):
			return false
		}
	}
	return true
}

// elements is the number of elements of a constant.
func elements(t *onnx.Tensor) (int64, bool) {
	if t == nil {
		return 0, false
	}
	n, err := t.Elements()
	return n, err == nil
}

func nonzero(t *onnx.Tensor) bool {
	v, err := t.Float64s()
	return err == nil && len(v) == 1 && v[0] != 0
}

// pad puts zeros beside the matrices and vectors of the layer.
func (h *hidden) pad() {
	w, wide := h.w, h.width+hiddenMore
	w.g.ValueInfos = slices.DeleteFunc(w.g.ValueInfos, func(v *onnx.ValueInfo) bool { return h.values[v.Name] })
	for _, n := range h.into {
		m := w.matrix(n.Inputs[1])
		t := zeroFloats(int64(m.rows), int64(wide))
		m.fill(t.Raw, wide, 0)
		n.Inputs[1] = w.constant(n.Inputs[1]+"/wide", t)
	}
	for n, places := range h.vectors {
		for _, i := range places {
			t := zeroFloats(int64(wide))
			copy(t.Raw, w.consts[n.Inputs[i]].Raw)
			n.Inputs[i] = w.constant(n.Inputs[i]+"/wide", t)
		}
	}
	for _, n := range h.out {
		m := w.matrix(n.Inputs[1])
		t := zeroFloats(int64(wide), int64(m.cols))
		m.fill(t.Raw, m.cols, 0)
		n.Inputs[1] = w.constant(n.Inputs[1]+"/wide", t)
	}
}
