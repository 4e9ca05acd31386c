package control

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// iterations makes a Loop return the numbers of its iterations, and returns them; there are none of a Scan.
func (r *repeat) iterations() driver.Value {
	if r.lead == 0 {
		return ""
	}
	return r.extend([]int{0})[0]
}

// slices lists what the body reads, in the order of the iterations; of states, what save will write.
func (r *repeat) slices(iterations driver.Value) []slice {
	var list []slice
	if iterations != "" {
		list = append(list, slice{inner: r.in[0], outer: iterations, reverse: true, state: -1})
	}
	for i := r.lead + r.states; i < len(r.in); i++ {
		j := i - r.lead - r.states
		list = append(list, slice{inner: r.in[i], outer: r.n.Inputs[i], axis: at(r.axesIn, j), reverse: at(r.dirIn, j) == 0, state: -1})
	}
	for i := range r.states {
		list = append(list, slice{inner: r.in[r.lead+i], reverse: true, state: i})
	}
	return list
}

// steady reports whether the number of iterations is known, and one at least, and no state changes its
// shape: a Scan can run backwards then.
func (r *repeat) steady(iterations driver.Value) bool {
	dims, ok := r.b.Shape(iterations)
	if !ok {
		return false
	}
	count, known := dims[0].Const()
	return known && count > 0 && !slices.ContainsFunc(r.active, r.varies)
}

// varies reports whether state i may have another shape in another iteration.
func (r *repeat) varies(i int) bool {
	first, always := r.b.Info(r.n.In(r.lead+i)), r.inner.Info(r.in[r.lead+i])
	return !first.Known || !always.Known || !shape.SameShape(first.Shape, always.Shape)
}

// save drops from g, the closed body of the backward node, what its outputs do not need, and returns the
// slices of all that are left, one at least. The forward node saves the states among them.
func (r *repeat) save(g *onnx.Graph, all []slice) []slice {
	rewrite.Prune(g)
	used := map[driver.Value]bool{}
	read := func(v string) string { used[v] = true; return v }
	for _, n := range g.Nodes {
		for _, v := range n.Inputs {
			read(v)
		}
		n.Captured(read)
	}
	if r.lead > 0 && used[r.in[1]] {
		g.Initializers = append(g.Initializers, onnx.NewBool(r.in[1], nil, []bool{true}))
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(s slice) bool { return !used[s.inner] })
	if len(kept) == 0 {
		kept = all[:1]
	}
	var states []int
	for _, s := range kept {
		if s.state < 0 {
			continue
		}
		if r.lead > 0 && r.varies(s.state) {
			driver.Refuse(r.b, r.n.Node, "the gradient needs state %d of each iteration, whose shape is not known to stay the same", s.state)
			return nil
		}
		states = append(states, r.lead+s.state)
	}
	saved := r.extend(states)
	for i := range kept {
		if kept[i].state >= 0 {
			kept[i].outer, saved = saved[0], saved[1:]
		}
	}
	return kept
}

// extend makes the forward node return inputs of its body, those of each iteration stacked along a new first
// axis.
func (r *repeat) extend(inputs []int) []driver.Value {
	n := r.n.Node
	for len(n.Outputs) < len(r.body.Outputs)-min(r.lead, 1) {
		r.b.Want(n, len(n.Outputs))
	}
	var values []driver.Value
	var types []*shape.Info
	for _, i := range inputs {
		values, types = append(values, r.body.Inputs[i].Name), append(types, r.inner.Info(r.in[i]))
		for _, name := range []string{"scan_output_axes", "scan_output_directions"} {
			if a := n.Attr(name); a != nil {
				a.Ints = append(slices.Clone(a.Ints), 0)
			}
		}
	}
	return r.b.Extend(n, r.body, values, types)
}
