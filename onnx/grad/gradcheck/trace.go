package gradcheck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gradhop/gradhop/onnx"
)

// trace runs the way of the codes on marked ones, and the tables, and fills in list.
func (c *checker) trace(m *onnx.Model, w string, list []lookup) error {
	way, table := probeOf(m), probeOf(m)
	for _, l := range list {
		way.watch(l.node.Inputs[l.index])
		if l.node.Op != "OneHot" {
			table.watchShape(l.node.Inputs[0])
		}
	}
	x := c.feed[w]
	count := int64(len(numbers(x)))
	var seen [2]feeds
	for k := range seen {
		marked := make([]float64, count)
		for i := range marked {
			marked[i] = float64((k+1)*mark + i)
		}
		f := maps.Clone(c.feed)
		f[w] = tensor(m.Graph.Input(w).Type.Elem, x.Shape, marked)
		var err error
		if seen[k], err = way.run(c, f); err != nil {
			return &UnsupportedError{fmt.Sprintf("the codes of %q cannot be followed: %v", w, err)}
		}
	}
	tables, err := table.run(c, c.feed)
	if err != nil {
		return err
	}
	for i := range list {
		l := &list[i]
		v := l.node.Inputs[l.index]
		a, b := numbers(seen[0][flatOf+v]), numbers(seen[1][flatOf+v])
		l.shape, _ = seen[0][shapeOf+v].Data.([]int64)
		if t := tables[shapeOf+l.node.Inputs[0]]; t != nil {
			l.table, _ = t.Data.([]int64)
		}
		l.codes = make([]int64, len(a))
		for k := range a {
			l.codes[k] = -1
			if place := int64(a[k]) - mark; b[k]-a[k] == mark && place >= 0 && place < count {
				l.codes[k] = place
			}
		}
	}
	return nil
}

// probe is a copy of a model that returns values on the way as vectors, and their
// shapes: the binding wants to know beforehand which of them are scalars.
type probe struct {
	m     *onnx.Model
	names []string
}

const (
	flatOf  = "gradcheck/flat/"
	shapeOf = "gradcheck/shape/"
)

func probeOf(m *onnx.Model) *probe {
	m = deepClone(m)
	m.Graph.Outputs = nil
	return &probe{m: m}
}

func (p *probe) output(name string, n *onnx.Node) {
	if slices.Contains(p.names, name) {
		return
	}
	p.names = append(p.names, name)
	n.Outputs = []string{name}
	g := p.m.Graph
	g.Nodes = append(g.Nodes, n)
	g.Outputs = append(g.Outputs, &onnx.ValueInfo{Name: name, Type: onnx.Type{HasShape: true, Shape: []onnx.ShapeDim{{Value: -1}}}})
}

func (p *probe) watchShape(v string) {
	p.output(shapeOf+v, &onnx.Node{Op: "Shape", Inputs: []string{v}})
}

func (p *probe) watch(v string) {
	p.watchShape(v)
	g := p.m.Graph
	const all = "gradcheck/all"
	if g.Initializer(all) == nil {
		g.Initializers = append(g.Initializers, onnx.NewInt64(all, []int64{1}, []int64{-1}))
	}
	p.output(flatOf+v, &onnx.Node{Op: "Reshape", Inputs: []string{v, all}})
}

func (p *probe) run(c *checker, f feeds) (feeds, error) {
	if p.names == nil {
		return nil, nil
	}
	vals, err := onnx.Infer(p.m)
	if err != nil {
		return nil, err
	}
	for _, v := range p.m.Graph.Outputs {
		if i := vals[v.Name]; i != nil {
			v.Type.Elem = i.Type
		}
	}
	onnx.Prune(p.m.Graph)
	return run(c.ctx, p.m, p.names, f, c.o.Runtime)
}
