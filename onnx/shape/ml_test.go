package shape_test

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

// mlCase makes calls of an operator of ai.onnx.ml on rows of three features, or on one row.
func mlCase(op string, outputs int, attrs func(g *gen) []*onnx.Attribute) {
	inferCases[op] = inferCase{build: func(g *gen) {
		s := []shape.Dim{g.Dim(), shape.D(3)}
		if g.R.IntN(3) == 0 {
			s = s[1:]
		}
		in := []value{g.Float(s, g.Signed)}
		if op == "ArrayFeatureExtractor" {
			in = append(in, g.Const(onnx.NewInt64("", []int64{2}, []int64{2, 0})))
		}
		g.Out(g.OpN("ai.onnx.ml", op, outputs, in, attrs(g)...)...)
	}}
}

// numbers is an attribute of a list of numbers.
func numbers(name string, v ...float32) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrFloats, Floats: v}
}

func init() {
	two := []float32{1, 2, 3, 4, 5, 6}
	list := func(a ...*onnx.Attribute) func(*gen) []*onnx.Attribute {
		return func(*gen) []*onnx.Attribute { return a }
	}
	mlCase("Scaler", 1, list(numbers("offset", 1), numbers("scale", 1, 2, 3)))
	mlCase("Normalizer", 1, list(onnx.StringAttr("norm", "L2")))
	mlCase("Imputer", 1, list(numbers("imputed_value_floats", 1), onnx.FloatAttr("replaced_value_float", 0)))
	mlCase("ArrayFeatureExtractor", 1, list())
	mlCase("LinearRegressor", 1, list(onnx.IntAttr("targets", 2), numbers("coefficients", two...)))
	mlCase("LinearClassifier", 2, func(g *gen) []*onnx.Attribute {
		scores := g.Between(1, 2) // one score of two classes is written as two
		return []*onnx.Attribute{numbers("coefficients", two[:3*scores]...), numbers("intercepts", two[:scores]...), onnx.IntsAttr("classlabels_ints", 4, 5)}
	})
	svm := []*onnx.Attribute{onnx.StringAttr("kernel_type", "RBF"), numbers("kernel_params", 1, 1, 1)}
	mlCase("SVMRegressor", 1, list(append(svm, onnx.IntAttr("n_supports", 2), numbers("support_vectors", two...), numbers("coefficients", 1, 2), numbers("rho", 1))...))
	mlCase("SVMClassifier", 2, func(g *gen) []*onnx.Attribute {
		count := g.Between(2, 4)
		pairs, vectors := count*(count-1)/2, make([]float32, 3*count)
		return append(svm, numbers("support_vectors", vectors...), numbers("coefficients", make([]float32, count*(count-1))...),
			numbers("rho", make([]float32, pairs)...), onnx.IntsAttr("vectors_per_class", []int64{1, 1, 1, 1}[:count]...),
			onnx.IntsAttr("classlabels_ints", []int64{4, 5, 6, 7}[:count]...))
	})
}
