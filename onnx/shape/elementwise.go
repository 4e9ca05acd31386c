package shape

import (
	"fmt"
	"math"

	"github.com/gradhop/gradhop/onnx"
)

// inferRules maps each supported operator to its inference rule. The init functions of the other files
// fill it.
var inferRules = map[string]inferRule{}

func register(rule inferRule, ops ...string) {
	for _, op := range ops {
		inferRules[op] = rule
	}
}

func init() {
	register(inferSame, "Identity", "Neg", "Abs", "Sqrt", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Relu",
		"LeakyRelu", "Elu", "Selu", "Celu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish",
		"ThresholdedRelu", "Gelu", "FastGelu", "QuickGelu", "Reciprocal", "Floor", "Ceil", "Round", "Sign",
		"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Not",
		"BitwiseNot", "Clip", "Softmax", "LogSoftmax", "Hardmax", "CumSum", "Trilu", "LpNormalization",
		"MeanVarianceNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "Shrink",
		"ScatterND", "ScatterElements", "Scatter", "ReverseSequence", "PRelu", "BiasGelu", "RMSNormalization")
	register(inferBroadcast, "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean",
		"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
	register(inferCompare, "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor")
	register(inferIsFloat, "IsNaN", "IsInf")
	register(inferWhere, "Where")
	register(inferCast, "Cast")
	register(inferNormalization, "LayerNormalization", "BatchNormalization", "Dropout")
}

// inferSame gives the output the type and shape of input 0. It also tracks elements through the
// operators used in shape arithmetic.
func inferSame(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil {
		return nil, nil
	}
	out := &Info{Type: x.Type, Known: x.Known, Shape: x.Shape}
	switch n.Op {
	case "Softmax", "LogSoftmax", "Hardmax":
		if a := n.Attr("axis"); a != nil && x.Known && !(len(x.Shape) == 0 && a.I == 0) {
			if _, err := Axis(a.I, len(x.Shape)); err != nil {
				return nil, err
			}
		}
	case "PRelu":
		if slope := arg(in, 1); slope != nil && slope.Known && x.Known {
			fit, err := Broadcast(x.Shape, slope.Shape)
			channels := len(slope.Shape) == 1 && len(x.Shape) > 1 && slope.Shape[0].Equal(x.Shape[1]) // before opset 7
			if !channels && (err != nil || !oneWay(x.Shape, fit)) {
				return nil, fmt.Errorf("slope of shape %s does not broadcast to the input's %s", String(slope.Shape), String(x.Shape))
			}
		}
	case "Identity":
		out.Ints, out.Floats = x.Ints, x.Floats
	case "Neg":
		for _, d := range x.Ints {
			out.Ints = append(out.Ints, d.neg())
		}
		out.Floats = mapFloats(x.Floats, func(v float64) float64 { return -v })
	case "Sqrt":
		out.Floats = mapFloats(x.Floats, math.Sqrt)
	case "Reciprocal":
		out.Floats = mapFloats(x.Floats, func(v float64) float64 { return 1 / v })
	case "Floor":
		out.Floats = mapFloats(x.Floats, math.Floor)
	case "Ceil":
		out.Floats = mapFloats(x.Floats, math.Ceil)
	case "Not":
		for _, d := range x.Ints {
			v, ok := d.Const()
			if !ok {
				return []*Info{{Type: x.Type, Known: x.Known, Shape: x.Shape}}, nil
			}
			out.Ints = append(out.Ints, D(1-v))
		}
	}
	return []*Info{out}, nil
}

func mapFloats(v []float64, f func(float64) float64) []float64 {
	if v == nil {
		return nil
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// inferBroadcast handles operators with one or more inputs that broadcast.
func inferBroadcast(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	out, err := broadcastAll(in)
	if err != nil || out == nil || !out.Known || len(in) != 2 {
		return []*Info{out}, err
	}
	a, b := in[0], in[1]
	if a.Ints != nil && b.Ints != nil {
		out.Ints = zipInts(out, a, b, n)
	}
	if a.Floats != nil && b.Floats != nil {
		out.Floats = zipFloats(out, a, b, n.Op)
	}
	return []*Info{out}, nil
}

func broadcastAll(in []*Info) (*Info, error) {
	if len(in) == 0 || in[0] == nil {
		return nil, nil
	}
	out := &Info{Type: in[0].Type, Known: true, Shape: in[0].Shape}
	for _, x := range in {
		if x == nil || !x.Known {
			return &Info{Type: out.Type}, nil
		}
		s, err := Broadcast(out.Shape, x.Shape)
		if err != nil {
			return nil, err
		}
		out.Shape = s
	}
	return out, nil
}

// pairs calls f on the indices of the elements of a and b that contribute to each element of out, in
// order. It returns false if a shape is symbolic or large, or if f returns false.
func pairs(out, a, b *Info, f func(i, j int) bool) bool {
	n, ok := smallCount(out.Shape)
	if !ok {
		return false
	}
	ia, ib := spread(out.Shape, a.Shape, n), spread(out.Shape, b.Shape, n)
	for k := range n {
		if !f(ia[k], ib[k]) {
			return false
		}
	}
	return true
}

// smallCount returns the number of elements of a constant shape. It returns false if the shape is
// symbolic or has more elements than inference tracks.
func smallCount(shape []Dim) (int, bool) {
	n := int64(1)
	for _, d := range shape {
		v, ok := d.Const()
		if !ok || v < 0 || v > knownElements {
			return 0, false
		}
		if n *= v; n > knownElements {
			return 0, false
		}
	}
	return int(n), true
}

// spread returns, for each of the n elements of a tensor of shape out, the index of the element of a
// tensor of shape in that broadcasts to it.
func spread(out, in []Dim, n int) []int {
	at := make([]int, n)
	for k := range at {
		rest, stride := k, 1
		for i := len(out) - 1; i >= 0; i-- {
			size, _ := out[i].Const()
			pos := rest % int(size)
			rest /= int(size)
			if a := i - (len(out) - len(in)); a >= 0 && !in[a].Is(1) {
				at[k] += pos * stride
				stride *= int(size)
			}
		}
	}
	return at
}

func zipInts(out, x, y *Info, n *onnx.Node) []Dim {
	a, b, list := x.Ints, y.Ints, []Dim{}
	ok := pairs(out, x, y, func(i, j int) bool {
		var d Dim
		ok := true
		switch n.Op {
		case "Add":
			d = a[i].Add(b[j])
		case "Sub":
			d = a[i].Sub(b[j])
		case "Mul":
			d = a[i].Mul(b[j])
		case "Div":
			d, ok = a[i].Quo(b[j])
		case "Mod":
			d, ok = remainder(a[i], b[j], n.Int("fmod", 0) != 0)
		default:
			ok = false
		}
		list = append(list, d)
		return ok
	})
	if !ok {
		return nil
	}
	return list
}

// remainder returns a modulo b, if both are known. The result has the sign of b or, if truncated, the
// sign of a.
func remainder(a, b Dim, truncated bool) (Dim, bool) {
	x, okX := a.Const()
	y, okY := b.Const()
	if !okX || !okY || y == 0 {
		return Dim{}, false
	}
	r := x % y
	if !truncated && r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return D(r), true
}

func zipFloats(out, x, y *Info, op string) []float64 {
	f, ok := map[string]func(x, y float64) float64{
		"Add": func(x, y float64) float64 { return x + y },
		"Sub": func(x, y float64) float64 { return x - y },
		"Mul": func(x, y float64) float64 { return x * y },
		"Div": func(x, y float64) float64 { return x / y },
		"Pow": math.Pow,
	}[op]
	if !ok {
		return nil
	}
	list := []float64{}
	if !pairs(out, x, y, func(i, j int) bool { list = append(list, f(x.Floats[i], y.Floats[j])); return true }) {
		return nil
	}
	return list
}

// inferCompare returns booleans. It decides equality of symbols where possible.
func inferCompare(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	out, err := broadcastAll(in)
	if err != nil || out == nil {
		return nil, err
	}
	out.Type = onnx.Bool
	if !out.Known || len(in) != 2 || in[0].Ints == nil || in[1].Ints == nil {
		return []*Info{out}, nil
	}
	a, b := in[0].Ints, in[1].Ints
	ok := pairs(out, in[0], in[1], func(i, j int) bool {
		d, ok := compare(n.Op, a[i], b[j])
		out.Ints = append(out.Ints, d)
		return ok
	})
	if !ok {
		out.Ints = nil
	}
	return []*Info{out}, nil
}

func inferIsFloat(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	if x := arg(in, 0); x != nil {
		return []*Info{{Type: onnx.Bool, Known: x.Known, Shape: x.Shape}}, nil
	}
	return []*Info{{Type: onnx.Bool}}, nil
}

func inferWhere(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("%d inputs; Where has three", len(in))
	}
	if in[0] == nil || in[1] == nil || in[2] == nil {
		return nil, nil
	}
	out, err := broadcastAll([]*Info{in[1], in[0], in[2]})
	if err != nil {
		return nil, err
	}
	if cond, ok := ConstInts(in[0]); ok && in[1].Ints != nil && in[2].Ints != nil {
		if n, ok := smallCount(out.Shape); ok {
			at := spread(out.Shape, in[0].Shape, n)
			yes, no := spread(out.Shape, in[1].Shape, n), spread(out.Shape, in[2].Shape, n)
			for k := range n {
				d := in[2].Ints[no[k]]
				if cond[at[k]] != 0 {
					d = in[1].Ints[yes[k]]
				}
				out.Ints = append(out.Ints, d)
			}
		}
	}
	return []*Info{out}, nil
}

func inferCast(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	out := &Info{Type: onnx.DataType(n.Int("to", 0))}
	x := arg(in, 0)
	if x == nil {
		return []*Info{out}, nil
	}
	out.Known, out.Shape = x.Known, x.Shape
	switch {
	case out.Type.IsFloat() && x.Floats != nil:
		out.Floats = x.Floats
	case out.Type.IsFloat():
		if v, ok := ConstInts(x); ok {
			for _, k := range v {
				out.Floats = append(out.Floats, float64(k))
			}
		}
	case out.Type == onnx.Bool:
		// Only a known number becomes a known boolean.
		v, ok := ConstInts(x)
		for _, k := range v {
			out.Ints = append(out.Ints, D(min(1, max(k, -k))))
		}
		if !ok {
			out.Ints = nil
		}
	case x.Ints != nil:
		out.Ints = x.Ints
	case x.Floats != nil:
		for _, v := range x.Floats {
			out.Ints = append(out.Ints, D(int64(v)))
		}
	}
	return []*Info{out}, nil
}

// inferNormalization gives the first output the shape of the input, and the others the shapes defined
// by the operator.
func inferNormalization(inf *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil {
		return nil, nil
	}
	y := &Info{Type: x.Type, Known: x.Known, Shape: x.Shape}
	switch n.Op {
	case "Dropout":
		mask := &Info{Type: onnx.Bool, Known: x.Known, Shape: x.Shape}
		if inf.m.Opset() < 10 {
			mask.Type = x.Type
		}
		return []*Info{y, mask}, nil
	case "LayerNormalization":
		stat := &Info{Type: onnx.Float, Known: x.Known}
		if x.Known {
			a, err := Axis(n.Int("axis", -1), len(x.Shape))
			if err != nil {
				return nil, err
			}
			stat.Shape = append(stat.Shape, x.Shape[:a]...)
			for range x.Shape[a:] {
				stat.Shape = append(stat.Shape, D(1))
			}
		}
		return []*Info{y, stat, stat}, nil
	}
	return []*Info{y}, nil
}

// oneWay reports whether a shape that x was broadcast to may be that of x.
func oneWay(x, fit []Dim) bool {
	for i, d := range fit {
		if i >= len(x) {
			return false
		}
		have, known := x[i].Const()
		if want, constant := d.Const(); known && constant && have != want {
			return false
		}
	}
	return true
}
