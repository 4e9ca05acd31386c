package driver

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Compose rewrites normalisations and activations of the main graph into forms
// whose parts the backward pass can use again, and returns what it found, by the
// name of the value. It must run before [build.New], whose Mark then takes
// each entry. Values keep their names.
//
// Recognised are LayerNormalization, the same decomposed as exporters for older
// sets write it, Gelu, the decomposed erf form of Gelu, and x·sigmoid(αx), which is
// called swish, SiLU or quick GELU; α may be a tensor. With x̂ and 1/σ at hand the gradient of a
// normalisation is eight operators instead of about twenty; and on CPU the composite
// is faster than the runtime's fused kernel.
func Compose(m *onnx.Model) (map[Value]build.Mark, error) {
	if !slices.ContainsFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return composable[n.Op] }) {
		return nil, nil
	}
	vals, err := shape.Infer(m)
	if err != nil {
		return nil, err
	}
	c := &composer{m: m, vals: vals, writer: map[Value]*onnx.Node{}, uses: map[Value]int{}, marks: map[Value]build.Mark{}, folders: map[string]bool{}}
	for _, t := range m.Graph.Initializers {
		c.claim(t.Name)
	}
	for _, v := range m.Graph.Inputs {
		c.claim(v.Name)
	}
	for _, n := range m.Graph.Nodes {
		for _, o := range n.Outputs {
			c.writer[o] = n
			c.claim(o)
		}
		for _, v := range n.Inputs {
			c.uses[v]++
		}
	}
	for _, o := range m.Graph.Outputs {
		c.uses[o.Name]++
	}
	for _, n := range m.Graph.Nodes {
		switch {
		case n.Domain == "" && n.Op == "LayerNormalization" && n.Out(1) == "" && n.Out(2) == "":
			c.layerNorm(n)
		case n.Domain == "" && n.Op == "Div":
			if !c.decomposedNorm(n) {
				c.out = append(c.out, n)
			}
		case n.Op == "Gelu" && n.Str("approximate", "none") == "none":
			c.gelu(n.Inputs[0], n.Outputs[0])
		case n.Domain == "" && n.Op == "Mul":
			if x, ok := c.decomposedGelu(n); ok {
				c.gelu(x, n.Outputs[0])
			} else if !c.decomposedSwish(n) {
				c.out = append(c.out, n)
			}
		default:
			c.out = append(c.out, n)
		}
	}
	m.Graph.Nodes = c.out
	rewrite.Prune(m.Graph)
	return c.marks, nil
}

// composable are the operators at which a form that Compose knows ends.
var composable = map[string]bool{"LayerNormalization": true, "Div": true, "Gelu": true, "Mul": true}

type composer struct {
	m      *onnx.Model
	vals   shape.Values
	writer map[Value]*onnx.Node
	uses   map[Value]int
	marks  map[Value]build.Mark
	out    []*onnx.Node
	// folders are the names that stand before a slash in those of values.
	folders map[string]bool
}

// claim notes that there is a value called name.
func (c *composer) claim(name Value) {
	for i, r := range name {
		if r == '/' {
			c.folders[name[:i]] = true
		}
	}
}

// folder returns y, or a name like it, under which nothing is called yet: a gradient
// that is differentiated again has been through here before.
func (c *composer) folder(y Value) Value {
	name := y
	for i := 2; c.folders[name]; i++ {
		name = fmt.Sprintf("%s_%d", y, i)
	}
	c.folders[name] = true
	return name
}

// emit appends a node that writes out.
func (c *composer) emit(op, out Value, in []Value, attrs ...*onnx.Attribute) Value {
	c.out = append(c.out, &onnx.Node{Op: op, Name: out, Inputs: in, Outputs: []string{out}, Attrs: attrs})
	return out
}

// constant adds a scalar, or an integer vector of axes, in the type of like.
func (c *composer) constant(name string, x float64, like Value) Value {
	t := onnx.NewFloat(name, nil, []float32{float32(x)})
	if i := c.vals[like]; i != nil && i.Type == onnx.Double {
		t = onnx.NewDouble(name, nil, []float64{x})
	}
	c.m.Graph.Initializers = append(c.m.Graph.Initializers, t)
	return name
}

// mean appends a ReduceMean over axes that keeps them.
func (c *composer) mean(out, in Value, axes []int64) Value {
	keep := onnx.IntAttr("keepdims", 1)
	if c.m.Opset() < 18 {
		return c.emit("ReduceMean", out, []Value{in}, keep, onnx.IntsAttr("axes", axes...))
	}
	t := onnx.NewInt64(out+"/axes", []int64{int64(len(axes))}, axes)
	c.m.Graph.Initializers = append(c.m.Graph.Initializers, t)
	return c.emit("ReduceMean", out, []Value{in, t.Name}, keep)
}

// usable reports whether arithmetic in the element type of v can be composed:
// 16-bit floats would lose what the fused kernel keeps in float32.
func (c *composer) usable(v Value) bool {
	i := c.vals[v]
	return i != nil && i.Known && (i.Type == onnx.Float || i.Type == onnx.Double)
}

// layerNorm replaces the fused operator: y = x̂·γ + β.
func (c *composer) layerNorm(n *onnx.Node) {
	x, y := n.Inputs[0], n.Outputs[0]
	if !c.usable(x) {
		c.out = append(c.out, n)
		return
	}
	rank := int64(len(c.vals[x].Shape))
	from := n.Int("axis", -1)
	if from < 0 {
		from += rank
	}
	var axes []int64
	for a := from; a < rank; a++ {
		axes = append(axes, a)
	}
	name := c.folder(y)
	centred := c.emit("Sub", name+"/centred", []Value{x, c.mean(name+"/mean", x, axes)})
	hat := c.normalise(name, x, centred, axes, float64(n.Float("epsilon", 1e-5)))
	scaled := y
	if n.In(2) != "" {
		scaled = name + "/scaled"
	}
	c.emit("Mul", scaled, []Value{hat, n.Inputs[1]})
	if n.In(2) != "" {
		c.emit("Add", y, []Value{scaled, n.Inputs[2]})
	}
}

// normalise appends x̂ = centred/σ and marks it.
func (c *composer) normalise(name, x, centred Value, axes []int64, eps float64) Value {
	hat := name + "/normalised"
	c.normaliseAs(hat, name, x, centred, axes, eps)
	return hat
}

func (c *composer) normaliseAs(hat, name, x, centred Value, axes []int64, eps float64) {
	square := c.emit("Mul", name+"/square", []Value{centred, centred})
	variance := c.mean(name+"/variance", square, axes)
	shifted := c.emit("Add", name+"/shifted", []Value{variance, c.constant(name+"/epsilon", eps, x)})
	sigma := c.emit("Sqrt", name+"/sigma", []Value{shifted})
	inv := c.emit("Div", name+"/inverse", []Value{c.constant(name+"/one", 1, x), sigma}) // see build.Builder.Inverse
	c.emit("Mul", hat, []Value{centred, inv})
	c.marks[hat] = build.Mark{Kind: MarkNormalised, Values: []Value{x, inv}, Axes: axes}
}

// decomposedNorm recognises Div(c, Sqrt(Add(ReduceMean(c²), ε))) with c = x -
// ReduceMean(x), the form of exports before opset 17, and rewrites it.
func (c *composer) decomposedNorm(div *onnx.Node) bool {
	centred := div.Inputs[0]
	sub, sqrt := c.writer[centred], c.writer[div.Inputs[1]]
	if sub == nil || sub.Op != "Sub" || sqrt == nil || sqrt.Op != "Sqrt" || !c.usable(sub.Inputs[0]) {
		return false
	}
	x := sub.Inputs[0]
	mean := c.writer[sub.Inputs[1]]
	add := c.writer[sqrt.Inputs[0]]
	if mean == nil || mean.Op != "ReduceMean" || mean.Inputs[0] != x || add == nil || add.Op != "Add" {
		return false
	}
	variance, eps := c.writer[add.Inputs[0]], c.scalar(add.Inputs[1])
	if variance == nil || variance.Op != "ReduceMean" || math.IsNaN(eps) {
		return false
	}
	square := c.writer[variance.Inputs[0]]
	if square == nil || square.Inputs[0] != centred {
		return false
	}
	if !(square.Op == "Mul" && square.Inputs[1] == centred || square.Op == "Pow" && c.scalar(square.Inputs[1]) == 2) {
		return false
	}
	a, okA := c.axes(mean)
	b, okB := c.axes(variance)
	if !okA || !okB || len(a) != 1 || len(b) != 1 || a[0] != b[0] {
		return false
	}
	c.normaliseAs(div.Outputs[0], c.folder(div.Outputs[0]), x, centred, a, eps)
	return true
}

// axes returns the constant axes of a ReduceMean that keeps them, counted from the
// front.
func (c *composer) axes(n *onnx.Node) ([]int64, bool) {
	x := c.vals[n.Inputs[0]]
	axes, ok := n.Ints("axes")
	if !ok && n.In(1) != "" && c.vals[n.Inputs[1]] != nil {
		for _, d := range c.vals[n.Inputs[1]].Ints {
			v, isConst := d.Const()
			if !isConst {
				return nil, false
			}
			axes = append(axes, v)
		}
	}
	if len(axes) == 0 || n.Int("keepdims", 1) == 0 {
		return nil, false
	}
	out := make([]int64, len(axes))
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x.Shape))
		}
		out[i] = a
	}
	return out, true
}

// scalar returns the number that v is known to be, or NaN.
func (c *composer) scalar(v Value) float64 {
	i := c.vals[v]
	if i == nil {
		return math.NaN()
	}
	if len(i.Floats) == 1 {
		return i.Floats[0]
	}
	if len(i.Ints) == 1 {
		if n, ok := i.Ints[0].Const(); ok {
			return float64(n)
		}
	}
	return math.NaN()
}
