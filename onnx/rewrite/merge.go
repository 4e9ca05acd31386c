package rewrite

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
	"slices"
)

// MergeProducts rewrites products of one value with several constant matrices, such as
// queries, keys and values of attention, in the main graph of m in place: as one product
// with the matrices side by side, bias added, that is split. The matrix that is read is as
// large as all were, and so are the products of the gradient. Matrices may be transposed
// by a node; only those of type float are merged, whose data is at hand. Names of what is
// computed stay.
func MergeProducts(m *onnx.Model) error {
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	g := m.Graph
	if m.Opset() < 13 { // Split has no input for sizes
		return nil
	}
	w := newMerging(m, vals)
	byLeft := map[string][]*onnx.Node{}
	var order []string
	for _, n := range g.Nodes {
		if n.Op == "MatMul" && n.Domain == "" && g.Output(n.Outputs[0]) == nil {
			if byLeft[n.Inputs[0]] == nil {
				order = append(order, n.Inputs[0])
			}
			byLeft[n.Inputs[0]] = append(byLeft[n.Inputs[0]], n)
		}
	}
	for _, x := range order {
		w.merge(x, byLeft[x])
	}
	Prune(g)
	return nil
}

// merging knows who writes and reads the values of a graph, and its constants.
type merging struct {
	g       *onnx.Graph
	vals    shape.Values
	names   *nameSet
	readers map[string][]*onnx.Node
	writer  map[string]*onnx.Node
	consts  map[string]*onnx.Tensor
}

func newMerging(m *onnx.Model, vals shape.Values) *merging {
	g := m.Graph
	w := &merging{g: g, vals: vals, names: namesOf(m), readers: map[string][]*onnx.Node{}, consts: map[string]*onnx.Tensor{}, writer: map[string]*onnx.Node{}}
	for _, t := range g.Initializers {
		w.consts[t.Name] = t
	}
	for _, v := range g.Inputs {
		delete(w.consts, v.Name) // a default
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			w.writer[o] = n
		}
		for _, v := range n.Inputs {
			w.readers[v] = append(w.readers[v], n)
		}
		n.Captured(func(v string) string { w.readers[v] = append(w.readers[v], nil); return v }) // nil is a subgraph
	}
	return w
}

// constant adds a constant under a new name like base.
func (w *merging) constant(base string, t *onnx.Tensor) string {
	t.Name = w.names.fresh(base)
	w.g.Initializers = append(w.g.Initializers, t)
	w.consts[t.Name] = t
	return t.Name
}

// matrix is a constant of rank two, by rows, or by columns where it is turned.
type matrix struct {
	rows, cols int
	t          *onnx.Tensor
	turned     bool
}

// matrix returns the constant that v is, through a transpose.
func (w *merging) matrix(v string) *matrix {
	m := &matrix{}
	if n := w.writer[v]; n != nil && n.Op == "Transpose" && n.Domain == "" {
		if perm, err := shape.Permutation(n, 2); err != nil || perm[0] != 1 {
			return nil
		}
		v, m.turned = n.Inputs[0], true
	}
	if m.t = w.consts[v]; !atHand(m.t, 2) {
		return nil
	}
	m.rows, m.cols = int(m.t.Dims[0]), int(m.t.Dims[1])
	if m.turned {
		m.rows, m.cols = m.cols, m.rows
	}
	return m
}

// atHand reports whether t is of a rank and of floats that are in memory.
func atHand(t *onnx.Tensor, rank int) bool {
	if t == nil || t.Type != onnx.Float || len(t.Dims) != rank || t.External != nil {
		return false
	}
	n, err := t.Elements()
	return err == nil && n > 0 && int64(len(t.Raw)) == 4*n
}

// fill writes the rows of m to those of a matrix of so many columns, from one column on.
func (m *matrix) fill(to []byte, cols, from int) {
	if !m.turned {
		for r := range m.rows {
			copy(to[4*(r*cols+from):], m.t.Raw[4*r*m.cols:4*(r+1)*m.cols])
		}
		return
	}
	const block = 16 // both sides stay in the cache
	for lo := 0; lo < m.rows; lo += block {
		for c := range m.cols {
			for r := lo; r < min(lo+block, m.rows); r++ {
				copy(to[4*(r*cols+from+c):4*(r*cols+from+c)+4], m.t.Raw[4*(c*m.rows+r):])
			}
		}
	}
}

// zeroFloats is a tensor of floats that are zero.
func zeroFloats(dims ...int64) *onnx.Tensor {
	n := int64(4)
	for _, d := range dims {
		n *= d
	}
	return &onnx.Tensor{Type: onnx.Float, Dims: dims, Raw: make([]byte, n), Offset: -1}
}

// bias returns the Add of a constant vector that alone reads a product, and the vector.
func (w *merging) bias(n *onnx.Node, cols int) (*onnx.Node, *onnx.Tensor) {
	read := w.readers[n.Outputs[0]]
	if len(read) != 1 || read[0] == nil || read[0].Op != "Add" || read[0].Domain != "" || w.g.Output(read[0].Outputs[0]) != nil {
		return nil, nil
	}
	for _, v := range read[0].Inputs {
		if t := w.consts[v]; atHand(t, 1) && t.Dims[0] == int64(cols) {
			return read[0], t
		}
	}
	return nil, nil
}

// merge makes one product of those of x.
func (w *merging) merge(x string, products []*onnx.Node) {
	rank := w.vals[x].Rank()
	if rank < 2 {
		return
	}
	var nodes, adds []*onnx.Node
	var parts []*matrix
	var biases []*onnx.Tensor
	for _, n := range products {
		p := w.matrix(n.In(1))
		if p == nil || len(parts) > 0 && p.rows != parts[0].rows {
			continue
		}
		nodes, parts = append(nodes, n), append(parts, p)
		if add, b := w.bias(n, p.cols); add != nil {
			adds, biases = append(adds, add), append(biases, b)
		}
	}
	if len(nodes) < 2 {
		return
	}
	ends := nodes // what is computed: products, or with their bias where all have one
	if len(adds) == len(nodes) {
		ends = adds
	}
	var sizes []int64
	cols := 0
	for _, p := range parts {
		sizes, cols = append(sizes, int64(p.cols)), cols+p.cols
	}
	all, vector := zeroFloats(int64(parts[0].rows), int64(cols)), zeroFloats(int64(cols))
	from := 0
	for i, p := range parts {
		p.fill(all.Raw, cols, from)
		if len(adds) == len(nodes) {
			copy(vector.Raw[4*from:], biases[i].Raw)
		}
		from += p.cols
	}
	y := w.names.fresh(x + "/products")
	made := []*onnx.Node{{Op: "MatMul", Name: y, Inputs: []string{x, w.constant(x+"/matrices", all)}, Outputs: []string{y}}}
	if len(adds) == len(nodes) {
		with := w.names.fresh(x + "/biased")
		made = append(made, &onnx.Node{Op: "Add", Name: with, Inputs: []string{y, w.constant(x+"/biases", vector)}, Outputs: []string{with}})
		y = with
	}
	split := &onnx.Node{Op: "Split", Name: y + "/parts", Attrs: []*onnx.Attribute{onnx.IntAttr("axis", int64(rank-1))}}
	split.Inputs = []string{y, w.constant(x+"/sizes", onnx.NewInt64("", []int64{int64(len(sizes))}, sizes))}
	for _, n := range ends {
		split.Outputs = append(split.Outputs, n.Outputs[0])
	}
	at := slices.Index(w.g.Nodes, nodes[0])
	nodesAfter := slices.Insert(slices.Clone(w.g.Nodes), at, append(made, split)...)
	w.g.Nodes = slices.DeleteFunc(nodesAfter, func(n *onnx.Node) bool { return n != split && slices.Contains(slices.Concat(nodes, ends), n) })
}
