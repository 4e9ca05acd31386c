package onnx

import "slices"

// MergeProducts rewrites products of one value with several constant matrices, such as
// queries, keys and values of attention, in the main graph of m in place: as one product
// with the matrices side by side, bias added, that is split. The matrix that is read is as
// large as all were, and so are the products of the gradient. Matrices may be transposed
// by a node; only those of type float are merged, whose data is at hand. Names of what is
// computed stay.
func MergeProducts(m *Model) error {
	vals, err := Infer(m)
	if err != nil {
		return err
	}
	g := m.Graph
	if m.Opset() < 13 { // Split has no input for sizes
		return nil
	}
	w := newMerging(m, vals)
	byLeft := map[string][]*Node{}
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
	g       *Graph
	vals    Values
	names   *nameSet
	readers map[string][]*Node
	writer  map[string]*Node
	consts  map[string]*Tensor
}

func newMerging(m *Model, vals Values) *merging {
	g := m.Graph
	w := &merging{g: g, vals: vals, names: namesOf(m), readers: map[string][]*Node{}, consts: map[string]*Tensor{}, writer: map[string]*Node{}}
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
		n.captured(func(v string) string { w.readers[v] = append(w.readers[v], nil); return v }) // nil is a subgraph
	}
	return w
}

// constant adds a constant under a new name like base.
func (w *merging) constant(base string, t *Tensor) string {
	t.Name = w.names.fresh(base)
	w.g.Initializers = append(w.g.Initializers, t)
	w.consts[t.Name] = t
	return t.Name
}

// matrix is a constant of rank two, by rows.
type matrix struct {
	rows, cols int
	data       []float32
}

// matrix returns the constant that v is, through a transpose.
func (w *merging) matrix(v string) *matrix {
	turned := false
	if n := w.writer[v]; n != nil && n.Op == "Transpose" && n.Domain == "" {
		if perm, err := Permutation(n, 2); err != nil || perm[0] != 1 {
			return nil
		}
		v, turned = n.Inputs[0], true
	}
	t := w.consts[v]
	if t == nil || t.Type != Float || len(t.Dims) != 2 || t.External != nil {
		return nil
	}
	data, err := t.Floats()
	if err != nil {
		return nil
	}
	x := &matrix{int(t.Dims[0]), int(t.Dims[1]), data}
	if !turned {
		return x
	}
	y := &matrix{x.cols, x.rows, make([]float32, len(data))}
	for r := range x.rows {
		for c := range x.cols {
			y.data[c*y.cols+r] = data[r*x.cols+c]
		}
	}
	return y
}

// bias returns the Add of a constant vector that alone reads a product, and the vector.
func (w *merging) bias(n *Node, cols int) (*Node, []float32) {
	read := w.readers[n.Outputs[0]]
	if len(read) != 1 || read[0] == nil || read[0].Op != "Add" || read[0].Domain != "" || w.g.Output(read[0].Outputs[0]) != nil {
		return nil, nil
	}
	for _, v := range read[0].Inputs {
		t := w.consts[v]
		if t == nil || t.Type != Float || len(t.Dims) != 1 || t.Dims[0] != int64(cols) || t.External != nil {
			continue
		}
		if data, err := t.Floats(); err == nil {
			return read[0], data
		}
	}
	return nil, nil
}

// merge makes one product of those of x.
func (w *merging) merge(x string, products []*Node) {
	rank := w.vals[x].Rank()
	if rank < 2 {
		return
	}
	var nodes, adds []*Node
	var parts []*matrix
	var biases [][]float32
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
	all := make([]float32, 0, parts[0].rows*cols)
	for r := range parts[0].rows {
		for _, p := range parts {
			all = append(all, p.data[r*p.cols:(r+1)*p.cols]...)
		}
	}
	y := w.names.fresh(x + "/products")
	made := []*Node{{Op: "MatMul", Name: y, Inputs: []string{x, w.constant(x+"/matrices", NewFloat("", []int64{int64(parts[0].rows), int64(cols)}, all))}, Outputs: []string{y}}}
	if len(adds) == len(nodes) {
		with := w.names.fresh(x + "/biased")
		made = append(made, &Node{Op: "Add", Name: with, Inputs: []string{y, w.constant(x+"/biases", NewFloat("", []int64{int64(cols)}, slices.Concat(biases...)))}, Outputs: []string{with}})
		y = with
	}
	split := &Node{Op: "Split", Name: y + "/parts", Attrs: []*Attribute{IntAttr("axis", int64(rank-1))}}
	split.Inputs = []string{y, w.constant(x+"/sizes", NewInt64("", []int64{int64(len(sizes))}, sizes))}
	for _, n := range ends {
		split.Outputs = append(split.Outputs, n.Outputs[0])
	}
	at := slices.Index(w.g.Nodes, nodes[0])
	nodesAfter := slices.Insert(slices.Clone(w.g.Nodes), at, append(made, split)...)
	w.g.Nodes = slices.DeleteFunc(nodesAfter, func(n *Node) bool { return n != split && slices.Contains(slices.Concat(nodes, ends), n) })
}
