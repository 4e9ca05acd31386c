package grad

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// y = (Σ |x|ᵖ)^(1/p) over each window: dx = sign x·|x|ᵖ⁻¹ · the sum of dy·y^(1-p)
// over the windows that hold x.
func ruleLpPool(b *build.Builder, n Node, dy []Value) []Value {
	p, ok := poolingOf(b, n)
	if !ok {
		return nil
	}
	order := n.Int("p", 2)
	return []Value{lpBackward(b, n, dy[0], order, p.spread)}
}

// The same over all of each plane.
func ruleGlobalLpPool(b *build.Builder, n Node, dy []Value) []Value {
	return []Value{lpBackward(b, n, dy[0], n.Int("p", 2), func(d Value) Value { return d })}
}

func lpBackward(b *build.Builder, n Node, dy Value, p int64, spread func(Value) Value) Value {
	x, y := n.In(0), n.Out(0)
	sign := b.Op("Sign", []Value{x})
	if p == 1 {
		return b.Mul(sign, spread(dy))
	}
	// Where y is zero all of its window is, and the gradient is taken as zero.
	zero := b.Op("Equal", []Value{y, b.Scalar(0, y)})
	safe := b.Op("Where", []Value{zero, b.Scalar(1, y), y})
	if p == 2 {
		return b.Mul(x, spread(b.Div(dy, safe)))
	}
	d := spread(b.Div(dy, b.Op("Pow", []Value{safe, b.Scalar(float64(p-1), y)})))
	return b.Mul(b.Mul(sign, b.Op("Pow", []Value{b.Op("Abs", []Value{x}), b.Scalar(math.Max(float64(p-1), 0), x)})), d)
}

// GlobalAveragePool is the mean over the spatial axes.
func expandGlobalAveragePool(b *build.Builder, n *onnx.Node) []Value {
	rank := b.Info(n.In(0)).Rank()
	if rank < 3 {
		b.Fail(&ShapeError{Node: n.Label(), Value: n.In(0), Have: "unknown rank", Want: "spatial axes"})
		return nil
	}
	return []Value{b.ReduceMean(n.In(0), spatialAxes(rank), true)}
}

// spatialAxes returns the axes from 2 on.
func spatialAxes(rank int) []int64 {
	var axes []int64
	for i := 2; i < rank; i++ {
		axes = append(axes, int64(i))
	}
	return axes
}
