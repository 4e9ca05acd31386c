package gradcheck

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// The derivative of a quantised model is zero or does not exist; its gradient is that
// of another one, which is passed straight through the roundings. Differences are
// taken of that other one: integers become numbers, and where the model rounds, it
// adds to what it would have without rounding a constant, the rounding at the inputs
// that are drawn. There both models compute the same.

// quantized are the operators that round or compute with rounded numbers, and
// whether they round.
var quantized = map[string]bool{
	"QuantizeLinear": true, "DynamicQuantizeLinear": true, "QLinearMatMul": true, "QLinearConv": true,
	"DequantizeLinear": false, "MatMulInteger": false, "ConvInteger": false,
}

// ranges are those of the types that are quantised to, with half a step on each side.
var ranges = map[onnx.DataType][2]float64{
	onnx.Uint8: {-0.5, 255.5}, onnx.Int8: {-128.5, 127.5}, onnx.Uint16: {-0.5, 65535.5}, onnx.Int16: {-32768.5, 32767.5},
	onnx.Int32: {math.MinInt32, math.MaxInt32},
}

// smooth takes the roundings out of m, in place.
func (c *checker) smooth(m *onnx.Model) error {
	isQuantized := func(n *onnx.Node) bool { _, ok := quantized[n.Op]; return ok && n.Domain == "" }
	if len(c.res.StraightThrough) == 0 || !slices.ContainsFunc(m.Graph.Nodes, isQuantized) {
		return nil
	}
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	rest, scales, err := c.roundings(m, vals)
	if err != nil {
		return err
	}
	e := &emitter{g: m.Graph, prefix: "gradcheck/smooth"}
	number := map[string]bool{} // integers that have become numbers
	for _, n := range m.Graph.Nodes {
		if isQuantized(n) {
			s := &smoother{e, n, vals}
			out := n.Outputs[0]
			if n.Op == "DynamicQuantizeLinear" {
				found := []string{e.constant(scales[out][0]), e.constant(scales[out][1])}
				e.node("Add", out, e.node("Div", "", n.Inputs[0], found[0]), e.constant(rest[out]))
				for k, v := range found {
					if name := n.Out(1 + k); name != "" {
						e.node("Identity", name, v)
						number[name] = true
					}
				}
			} else if err := s.write(out, rest[out]); err != nil {
				return err
			}
			number[out] = true
			continue
		}
		i := slices.IndexFunc(n.Inputs, func(v string) bool { return number[v] && vals[v] != nil && !vals[v].Type.IsFloat() })
		if i < 0 {
			e.nodes = append(e.nodes, n)
			continue
		}
		// What such integers are computed with, and what comes out, are numbers too.
		was := vals[n.Inputs[i]].Type
		for k, v := range n.Inputs {
			if v != "" && !number[v] && vals[v] != nil && vals[v].Type == was {
				n.Inputs[k] = e.float(v)
			}
		}
		for _, o := range n.Outputs {
			number[o] = number[o] || vals[o] != nil && vals[o].Type == was
		}
		e.nodes = append(e.nodes, n)
	}
	m.Graph.Nodes, m.Graph.ValueInfos = e.nodes, nil
	return nil
}

// roundings runs m and returns, by the outputs of nodes that round, what rounding
// adds to them, and the scale and zero point that a DynamicQuantizeLinear finds.
func (c *checker) roundings(m *onnx.Model, vals shape.Values) (rest map[string]*onnx.Tensor, scales map[string][]*onnx.Tensor, err error) {
	p := probeOf(m)
	e := &emitter{g: p.m.Graph, prefix: "gradcheck/rounding"}
	type place struct{ rounding, scale, zero string }
	places := map[string]place{}
	for _, n := range p.m.Graph.Nodes {
		e.nodes = append(e.nodes, n)
		if !quantized[n.Op] || n.Domain != "" {
			continue
		}
		at := place{}
		var exact string
		if n.Op == "DynamicQuantizeLinear" {
			for k := len(n.Outputs); k < 3; k++ {
				n.Outputs = append(n.Outputs, "")
			}
			for k := range n.Outputs {
				if n.Outputs[k] == "" {
					n.Outputs[k] = fmt.Sprintf("%s/%s/%d", e.prefix, n.Outputs[0], k)
				}
			}
			exact = e.node("Div", "", n.Inputs[0], n.Outputs[1])
			at.scale, at.zero = n.Outputs[1], e.float(n.Outputs[2])
		} else {
			s := &smoother{e, n, vals}
			exact = e.prefix + "/exact/" + n.Outputs[0]
			if err := s.write(exact, nil); err != nil {
				return nil, nil, err
			}
		}
		at.rounding = e.node("Sub", "", e.float(n.Outputs[0]), exact)
		places[n.Outputs[0]] = at
	}
	p.m.Graph.Nodes = e.nodes
	for _, at := range places {
		for _, v := range []string{at.rounding, at.scale, at.zero} {
			if v != "" {
				p.watch(v)
			}
		}
	}
	got, err := p.run(c, c.feed)
	if err != nil {
		return nil, nil, err
	}
	constant := func(v string) *onnx.Tensor {
		return onnx.NewFloat("", integers(got[shapeOf+v]), convert[float32](numbers(got[flatOf+v])))
	}
	rest, scales = map[string]*onnx.Tensor{}, map[string][]*onnx.Tensor{}
	for out, at := range places {
		rest[out] = constant(at.rounding)
		if at.scale != "" {
			scales[out] = []*onnx.Tensor{constant(at.scale), constant(at.zero)}
		}
	}
	return rest, scales, nil
}

// float writes a Cast to float32.
func (e *emitter) float(v string) string {
	return e.with("Cast", "", []*onnx.Attribute{onnx.IntAttr("to", int64(onnx.Float))}, v)
}

// smoother writes one node without its rounding.
type smoother struct {
	e    *emitter
	n    *onnx.Node
	vals shape.Values
}

// write writes what the node computes, and adds rest if there is any.
func (s *smoother) write(out string, rest *onnx.Tensor) error {
	n, e := s.n, s.e
	if n.Int("block_size", 0) != 0 {
		return unsupported("%s quantises by blocks, which cannot be checked", n.Label())
	}
	last := func(op string, in ...string) {
		if rest == nil {
			e.node(op, out, in...)
			return
		}
		e.node("Add", out, e.node(op, "", in...), e.constant(rest))
	}
	axis := n.Int("axis", 1)
	switch n.Op {
	case "QuantizeLinear":
		y := s.plus(e.node("Div", "", s.in(0), s.along(1, 0, axis)), s.along(2, 0, axis))
		return s.clip(y, last)
	case "DequantizeLinear":
		last("Mul", s.minus(s.in(0), s.along(2, 0, axis)), s.along(1, 0, axis))
	case "MatMulInteger":
		last("MatMul", s.minus(s.in(0), s.along(2, 0, -2)), s.minus(s.in(1), s.along(3, 1, -1)))
	case "ConvInteger":
		e.with("Conv", out, n.Attrs, s.minus(s.in(0), s.in(2)), s.minus(s.in(1), s.along(3, 1, 0)))
	case "QLinearMatMul":
		a := e.node("Mul", "", s.minus(s.in(0), s.along(2, 0, -2)), s.along(1, 0, -2))
		b := e.node("Mul", "", s.minus(s.in(3), s.along(5, 3, -1)), s.along(4, 3, -1))
		return s.clip(s.plus(e.node("Div", "", e.node("MatMul", "", a, b), s.in(6)), s.in(7)), last)
	case "QLinearConv":
		x := e.node("Mul", "", s.minus(s.in(0), s.in(2)), s.in(1))
		w := e.node("Mul", "", s.minus(s.in(3), s.along(5, 3, 0)), s.along(4, 3, 0))
		in := []string{x, w}
		if n.In(8) != "" {
			in = append(in, e.node("Mul", "", e.node("Mul", "", s.in(8), s.in(1)), s.in(4)))
		}
		y := e.with("Conv", "", n.Attrs, in...)
		return s.clip(s.plus(e.node("Div", "", y, s.in(6)), s.in(7)), last)
	}
	return nil
}

// clip writes the saturation to the type of the output.
func (s *smoother) clip(y string, last func(op string, in ...string)) error {
	var t onnx.DataType
	if i := s.vals[s.n.Out(0)]; i != nil {
		t = i.Type
	}
	r, ok := ranges[t]
	if !ok {
		return unsupported("%s quantises to %s, which cannot be checked", s.n.Label(), t)
	}
	bound := func(v float64) string { return s.e.constant(onnx.NewFloat("", nil, []float32{float32(v)})) }
	last("Clip", y, bound(r[0]), bound(r[1]))
	return nil
}

// in returns input i as floats, a list of one as a number.
func (s *smoother) in(i int) string {
	v := s.n.In(i)
	if v == "" {
		return ""
	}
	if info := s.vals[v]; i > 0 && info.Rank() == 1 && info.Shape[0].Is(1) {
		return s.e.node("Squeeze", "", s.e.float(v), s.e.ints(0))
	}
	return s.e.float(v)
}

// along returns input i, a number or a list along an axis of input x.
func (s *smoother) along(i, x int, axis int64) string {
	v := s.in(i)
	info, of := s.vals[s.n.In(i)], s.vals[s.n.In(x)]
	if v == "" || info.Rank() != 1 || info.Shape[0].Is(1) || of.Rank() < 1 {
		return v
	}
	if axis < 0 {
		axis += int64(of.Rank())
	}
	shape := slices.Repeat([]int64{1}, of.Rank())
	if axis < 0 || axis >= int64(len(shape)) {
		return v
	}
	shape[axis] = -1
	return s.e.reshape(v, shape...)
}

func (s *smoother) plus(x, z string) string {
	if z == "" {
		return x
	}
	return s.e.node("Add", "", x, z)
}

func (s *smoother) minus(x, z string) string {
	if z == "" {
		return x
	}
	return s.e.node("Sub", "", x, z)
}
