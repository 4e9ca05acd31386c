package gradcheck

import (
	"math"
	"sync"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// double turns m into float64, in place, and writes operators for which the runtime
// has no float64 kernel by others.
func (c *checker) double(m *onnx.Model) error {
	if _, err := rewrite.WidenDouble(m); err != nil {
		return err
	}
	vals, err := shape.Infer(m)
	if err != nil {
		return err
	}
	e := &emitter{g: m.Graph, prefix: "gradcheck/double", opset: m.Opset(), run: func(m *onnx.Model, outputs []string, f feeds) (feeds, error) {
		return run(c.ctx, m, outputs, f, c.o.Runtime)
	}}
	for _, n := range m.Graph.Nodes {
		write := written[n.Op]
		x, y := vals[n.In(0)], vals[n.Out(0)]
		if n.Domain != "" || write == nil || x == nil || y == nil || y.Type != onnx.Double || !write(e, n, vals) {
			e.nodes = append(e.nodes, n)
		}
	}
	m.Graph.Nodes = e.nodes
	return nil
}

// written writes an operator by others, or returns false where it cannot. The
// activations are ReLU's kin: kernels of the runtime's are float32 only, and the
// standard's own definitions are used by it in old operator sets alone.
var written = map[string]func(e *emitter, n *onnx.Node, vals shape.Values) bool{
	"Erf": erf, "Mean": mean, "GlobalAveragePool": globalAverage, "OneHot": oneHot, "Resize": resize, "Conv": conv, "ConvTranspose": convTranspose, "AveragePool": averagePool, "InstanceNormalization": instanceNorm,
	"Softplus": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.softplus(n.Outputs[0], n.Inputs[0])
		return true
	},
	"Softsign": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.node("Div", n.Outputs[0], n.Inputs[0], e.node("Add", "", e.node("Abs", "", n.Inputs[0]), e.number(1)))
		return true
	},
	"Mish": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.node("Mul", n.Outputs[0], n.Inputs[0], e.node("Tanh", "", e.softplus("", n.Inputs[0])))
		return true
	},
	"LeakyRelu": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.branches(n, e.node("Mul", "", n.Inputs[0], e.number(float64(n.Float("alpha", 0.01)))), n.Inputs[0])
		return true
	},
	"Elu": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.branches(n, e.elu(n.Inputs[0], float64(n.Float("alpha", 1))), n.Inputs[0])
		return true
	},
	"Selu": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		gamma := float64(n.Float("gamma", 1.05070102214813232421875))
		e.branches(n, e.elu(n.Inputs[0], gamma*float64(n.Float("alpha", 1.67326319217681884765625))), e.node("Mul", "", n.Inputs[0], e.number(gamma)))
		return true
	},
	// Left as it is, x·Sigmoid(x) becomes a fused operator that is float32 only.
	"Sigmoid": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.node("Div", n.Outputs[0], e.number(1), e.node("Add", "", e.number(1), e.node("Exp", "", e.node("Neg", "", n.Inputs[0]))))
		return true
	},
	"Celu": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		alpha := float64(n.Float("alpha", 1))
		e.branches(n, e.elu(e.node("Div", "", n.Inputs[0], e.number(alpha)), alpha), n.Inputs[0])
		return true
	},
	// The runtime's kernel computes in float32.
	"Shrink": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		x, bias, lambd := n.Inputs[0], e.number(float64(n.Float("bias", 0))), float64(n.Float("lambd", 0.5))
		above := e.node("Where", "", e.node("Greater", "", x, e.number(lambd)), e.node("Sub", "", x, bias), e.number(0))
		e.node("Where", n.Outputs[0], e.node("Less", "", x, e.number(-lambd)), e.node("Add", "", x, bias), above)
		return true
	},
	"HardSigmoid": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.hardSigmoid(n.Outputs[0], n.Inputs[0], float64(n.Float("alpha", 0.2)), float64(n.Float("beta", 0.5)))
		return true
	},
	"HardSwish": func(e *emitter, n *onnx.Node, _ shape.Values) bool {
		e.node("Mul", n.Outputs[0], n.Inputs[0], e.hardSigmoid("", n.Inputs[0], 1.0/6, 0.5))
		return true
	},
}

func (e *emitter) number(x float64) string {
	return e.constant(onnx.NewDouble("", nil, []float64{x}))
}

// branches writes the output of n: below where its input is negative, and above
// elsewhere.
func (e *emitter) branches(n *onnx.Node, below, above string) {
	e.node("Where", n.Outputs[0], e.node("Less", "", n.Inputs[0], e.number(0)), below, above)
}

// softplus is max(x, 0) + log(1 + exp(-|x|)).
func (e *emitter) softplus(out, x string) string {
	small := e.node("Exp", "", e.node("Neg", "", e.node("Abs", "", x)))
	return e.node("Add", out, e.node("Max", "", x, e.number(0)), e.node("Log", "", e.node("Add", "", small, e.number(1))))
}

// elu is alpha·(exp(x) - 1) for x up to 0.
func (e *emitter) elu(x string, alpha float64) string {
	return e.node("Mul", "", e.node("Sub", "", e.node("Exp", "", e.node("Min", "", x, e.number(0))), e.number(1)), e.number(alpha))
}

func (e *emitter) hardSigmoid(out, x string, alpha, beta float64) string {
	line := e.node("Add", "", e.node("Mul", "", x, e.number(alpha)), e.number(beta))
	return e.node("Max", out, e.node("Min", "", line, e.number(1)), e.number(0))
}

func mean(e *emitter, n *onnx.Node, _ shape.Values) bool {
	e.node("Div", n.Outputs[0], e.node("Sum", "", n.Inputs...), e.number(float64(len(n.Inputs))))
	return true
}

// oneHot is off + (on - off)·OneHot of float32 ones.
func oneHot(e *emitter, n *onnx.Node, _ shape.Values) bool {
	ones := e.constant(onnx.NewFloat("", []int64{2}, []float32{0, 1}))
	hot := e.with("OneHot", "", n.Attrs, n.Inputs[0], n.Inputs[1], ones)
	hot = e.with("Cast", "", []*onnx.Attribute{onnx.IntAttr("to", int64(onnx.Double))}, hot)
	off, on := e.pick(n.Inputs[2], 0), e.pick(n.Inputs[2], 1)
	e.node("Add", n.Outputs[0], off, e.node("Mul", "", hot, e.node("Sub", "", on, off)))
	return true
}

// With t = 2/(2+z), erfc(z) = t·exp(-z² + p(t)) for a smooth p, which a Chebyshev
// series on the t of 0 ≤ z ≤ erfEnd gives to about 1e-14; beyond, erf is 1.
const (
	erfEnd   = 6.0
	erfTerms = 40
)

// erfSeries returns the coefficients of p in Chebyshev polynomials.
var erfSeries = sync.OnceValue(func() []float64 {
	low := 2 / (2 + erfEnd)
	nodes := make([]float64, erfTerms)
	for k := range nodes {
		u := math.Cos(math.Pi * (float64(k) + 0.5) / erfTerms)
		t := low + (1-low)*(u+1)/2
		z := 2/t - 2
		nodes[k] = math.Log(math.Erfc(z)/t) + z*z
	}
	c := make([]float64, erfTerms)
	for j := range c {
		for k, v := range nodes {
			c[j] += 2 / float64(erfTerms) * v * math.Cos(math.Pi*float64(j)*(float64(k)+0.5)/erfTerms)
		}
	}
	c[0] /= 2
	last := len(c)
	for last > 1 && math.Abs(c[last-1]) < 1e-16 {
		last--
	}
	return c[:last]
})

// erf is sign(x)·(1 - erfc(|x|)), the series by Clenshaw's recurrence.
func erf(e *emitter, n *onnx.Node, _ shape.Values) bool {
	z := e.node("Min", "", e.node("Abs", "", n.Inputs[0]), e.number(erfEnd))
	t := e.node("Div", "", e.number(2), e.node("Add", "", z, e.number(2)))
	low := 2 / (2 + erfEnd)
	// u runs from -1 to 1, and u2 is twice that.
	u2 := e.node("Sub", "", e.node("Mul", "", t, e.number(4/(1-low))), e.number(2+4*low/(1-low)))
	c := erfSeries()
	b1, b2 := e.number(c[len(c)-1]), e.number(0)
	for k := len(c) - 2; k >= 1; k-- {
		next := e.node("Add", "", e.node("Sub", "", e.node("Mul", "", u2, b1), b2), e.number(c[k]))
		b1, b2 = next, b1
	}
	half := e.node("Mul", "", u2, e.number(0.5))
	p := e.node("Add", "", e.node("Sub", "", e.node("Mul", "", half, b1), b2), e.number(c[0]))
	erfc := e.node("Mul", "", t, e.node("Exp", "", e.node("Sub", "", p, e.node("Mul", "", z, z))))
	e.node("Mul", n.Outputs[0], e.node("Sign", "", n.Inputs[0]), e.node("Sub", "", e.number(1), erfc))
	return true
}
