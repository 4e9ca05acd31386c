package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
)

// Gradient says whether an output can be differentiated by an input.
type Gradient struct {
	Of  string `json:"of"`
	Wrt string `json:"wrt"`
	// Differentiable says that it can, perhaps after dimensions are bound.
	Differentiable bool `json:"differentiable"`
	// OneHot says that the gradient is that at the one-hot encoding of the input's
	// integers, of which there are Values, a number or an expression.
	OneHot bool   `json:"one_hot,omitempty"`
	Values string `json:"values,omitempty"`
	// Obstacle says what stands in the way, and Nodes which nodes do.
	Obstacle string   `json:"obstacle,omitempty"`
	Nodes    []string `json:"nodes,omitempty"`
	// Bind lists the dimensions that must be numbers.
	Bind []string `json:"bind,omitempty"`
	// StraightThrough are the nodes through whose rounding the gradient is passed.
	StraightThrough []string `json:"straight_through,omitempty"`
}

// tried bounds the outputs whose gradients are written to see whether dimensions must
// be bound. Models with more are those that return their caches.
const tried = 8

// gradients looks at every output and input, or at those that are named.
func gradients(m *onnx.Model, of string, wrt []string) ([]Gradient, error) {
	var outs []string
	if of != "" {
		outs = []string{of}
	}
	paths, err := grad.Paths(m, outs, wrt)
	if err != nil {
		return nil, err
	}
	list := []Gradient{}
	byOutput := map[string][]string{}
	var order []string
	for _, p := range paths {
		g := Gradient{Of: p.Of, Wrt: p.Wrt, Differentiable: p.Err == nil, StraightThrough: labels(p.StraightThrough)}
		if p.Err == nil {
			if byOutput[p.Of] == nil {
				order = append(order, p.Of)
			}
			byOutput[p.Of] = append(byOutput[p.Of], p.Wrt)
			if g.OneHot = p.Codes; p.Codes {
				g.Values = p.Rows.String()
			}
		} else {
			g.Obstacle, g.Nodes = obstacle(p.Err)
		}
		list = append(list, g)
	}
	for _, o := range order[:min(len(order), tried)] {
		bind, err := bindings(m, o, byOutput[o])
		for i, g := range list {
			if g.Of != o || !g.Differentiable {
				continue
			}
			list[i].Bind = bind
			if err != nil {
				list[i].Differentiable = false
				list[i].Obstacle, list[i].Nodes = obstacle(err)
			}
		}
	}
	return list, nil
}

// obstacle says in words why there is no gradient, and by which nodes.
func obstacle(err error) (string, []string) {
	var none *grad.NotDifferentiableError
	if !errors.As(err, &none) {
		return err.Error(), nil
	}
	switch none.Obstacle {
	case grad.NoRule:
		return "operators without a gradient", labels(none.Nodes)
	case grad.IntegerArithmetic:
		return "integer input used in arithmetic, only lookups are differentiable", labels(none.Nodes)
	case grad.NoPath:
		return "the output does not depend on it, or only through operators whose gradient is zero", nil
	}
	return none.Reason, nil
}

func labels(nodes []*onnx.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Label())
	}
	return out
}

// sizes are tried for dimensions that have to be numbers: small ones, and those of
// images.
var sizes = []int64{2, 16, 64, 224}

// bindings returns the dimensions that must be numbers for a gradient of an output,
// or what stands in the way even then.
func bindings(m *onnx.Model, of string, wrt []string) ([]string, error) {
	open := symbols(m)
	try := func(keys []string, size int64) error {
		bind := map[string]int64{}
		for _, k := range keys {
			bind[k] = size
		}
		_, err := grad.Append(m, grad.Options{Of: of, Wrt: wrt, Reduce: grad.ReduceSum, Bind: bind})
		return err
	}
	first := try(nil, 0)
	if first == nil {
		return nil, nil
	}
	if !aboutShapes(first) {
		return nil, first
	}
	for _, size := range sizes {
		if len(open) == 0 || try(open, size) != nil {
			continue
		}
		need := slices.Clone(open)
		for _, k := range open {
			without := slices.DeleteFunc(slices.Clone(need), func(s string) bool { return s == k })
			if try(without, size) == nil {
				need = without
			}
		}
		return need, nil
	}
	return nil, first
}

// aboutShapes reports whether numbers in place of symbols may help against err.
func aboutShapes(err error) bool {
	var none *grad.NotDifferentiableError
	var contradiction *onnx.FormatError
	var open *onnx.UnsupportedError
	return errors.As(err, &none) && none.Obstacle == grad.UnknownShape || errors.As(err, &contradiction) || errors.As(err, &open)
}

// symbols returns the open dimensions of the inputs, as Bind takes them.
func symbols(m *onnx.Model) []string {
	var out []string
	for _, v := range m.Graph.Inputs {
		for i, d := range v.Type.Shape {
			key := d.Param
			if key == "" && d.Value < 0 {
				key = fmt.Sprintf("%s[%d]", v.Name, i)
			}
			if key != "" && !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}
