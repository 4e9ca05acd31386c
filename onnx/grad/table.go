package grad

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad/internal/control"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
	"github.com/gradhop/gradhop/onnx/grad/internal/expand"
	"github.com/gradhop/gradhop/onnx/grad/internal/quant"
	"github.com/gradhop/gradhop/onnx/grad/internal/rules"
)

func init() {
	// activation
	rules.Elementwise("Exp", func(b *build.Builder, _, y driver.Value) driver.Value { return y })
	rules.Elementwise("Log", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Inverse(x) })
	rules.Elementwise("Sqrt", func(b *build.Builder, _, y driver.Value) driver.Value { return b.Div(b.Scalar(0.5, y), y) })
	rules.Elementwise("Reciprocal", func(b *build.Builder, _, y driver.Value) driver.Value { return b.Neg(b.Mul(y, y)) })
	rules.Elementwise("Tanh", func(b *build.Builder, _, y driver.Value) driver.Value { return b.Sub(b.Scalar(1, y), b.Mul(y, y)) })
	rules.Elementwise("Sigmoid", func(b *build.Builder, _, y driver.Value) driver.Value { return b.Mul(y, b.Sub(b.Scalar(1, y), y)) })
	rules.Elementwise("Softplus", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Op("Sigmoid", []driver.Value{x}) })
	rules.Elementwise("Sin", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Op("Cos", []driver.Value{x}) })
	rules.Elementwise("Cos", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Neg(b.Op("Sin", []driver.Value{x})) })
	rules.Elementwise("Tan", func(b *build.Builder, _, y driver.Value) driver.Value { return b.Add(b.Mul(y, y), b.Scalar(1, y)) })
	rules.Elementwise("Sinh", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Op("Cosh", []driver.Value{x}) })
	rules.Elementwise("Cosh", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Op("Sinh", []driver.Value{x}) })
	rules.Elementwise("Asin", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return rules.RootInverse(b, rules.OneMinusSquare(b, x))
	})
	rules.Elementwise("Acos", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return b.Neg(rules.RootInverse(b, rules.OneMinusSquare(b, x)))
	})
	rules.Elementwise("Atan", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return b.Inverse(rules.OnePlusSquare(b, x))
	})
	rules.Elementwise("Asinh", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return rules.RootInverse(b, rules.OnePlusSquare(b, x))
	})
	rules.Elementwise("Acosh", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return rules.RootInverse(b, b.Neg(rules.OneMinusSquare(b, x)))
	})
	rules.Elementwise("Atanh", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return b.Inverse(rules.OneMinusSquare(b, x))
	})
	rules.Elementwise("Softsign", func(b *build.Builder, x, _ driver.Value) driver.Value { // (1+|x|)⁻²
		r := b.Inverse(b.Add(b.Op("Abs", []driver.Value{x}), b.Scalar(1, x)))
		return b.Mul(r, r)
	})
	rules.Elementwise("Erf", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return b.Scale(b.Op("Exp", []driver.Value{b.Neg(b.Mul(x, x))}), driver.TwoOverSqrtPi)
	})
	rules.Elementwise("Mish", func(b *build.Builder, x, _ driver.Value) driver.Value { // y = x·t, t = tanh(softplus x): t + x·(1-t²)·sigmoid x
		t := b.Op("Tanh", []driver.Value{b.Op("Softplus", []driver.Value{x})})
		dt := b.Mul(b.Sub(b.Scalar(1, x), b.Mul(t, t)), b.Op("Sigmoid", []driver.Value{x}))
		return b.Add(t, b.Mul(x, dt))
	})
	driver.Standard(rules.Gelu, "Gelu")
	driver.Register("", "Swish", 24, rules.Swish)

	// activation kinks
	rules.Elementwise("Abs", func(b *build.Builder, x, _ driver.Value) driver.Value { return b.Op("Sign", []driver.Value{x}) })
	rules.Elementwise("Relu", func(b *build.Builder, x, _ driver.Value) driver.Value {
		return b.Cast(b.Op("Greater", []driver.Value{x, b.Scalar(0, x)}), b.Info(x).Type)
	})
	driver.Standard(rules.LeakyRelu, "LeakyRelu")
	driver.Standard(rules.PRelu, "PRelu")
	driver.Standard(rules.Elu, "Elu")
	driver.Standard(rules.Selu, "Selu")
	driver.Standard(rules.Celu, "Celu")
	driver.Standard(rules.ThresholdedRelu, "ThresholdedRelu")
	driver.Standard(rules.HardSigmoid, "HardSigmoid")
	driver.Standard(rules.HardSwish, "HardSwish")
	driver.Standard(rules.Shrink, "Shrink")

	// control
	driver.Register("", "If", 1, control.If, driver.AllOutputs)
	driver.Register("", "Scan", 9, control.Scan, driver.AllOutputs)
	driver.Register("", "Loop", 1, control.Loop, driver.AllOutputs)

	// conv
	driver.Standard(rules.Conv, "Conv")
	driver.Standard(rules.ConvTranspose, "ConvTranspose")

	// elementwise
	driver.Standard(rules.Identity, "Identity")
	driver.Standard(rules.Add, "Add")
	driver.Standard(rules.Sub, "Sub")
	driver.Standard(rules.Mul, "Mul")
	driver.Standard(rules.Div, "Div")
	driver.Standard(rules.Neg, "Neg")
	driver.Standard(rules.Pow, "Pow")
	driver.Standard(rules.Cast, "Cast", "CastLike")
	driver.Standard(rules.Where, "Where")
	driver.Standard(rules.Dropout, "Dropout")
	driver.Standard(rules.Sum, "Sum")
	driver.Standard(rules.Mean, "Mean")

	// elementwise choice
	driver.Standard(rules.Extremum, "Max", "Min")
	driver.Standard(rules.Clip, "Clip")
	driver.Standard(rules.Mod, "Mod")

	// grid
	driver.RegisterExpansion("", "GridSample", 16, rules.GridSample)
	driver.Standard(rules.AffineGrid, "AffineGrid")

	// index
	driver.Standard(rules.Gather, "Gather")
	driver.Standard(rules.GatherElements, "GatherElements")
	driver.Standard(rules.GatherND, "GatherND")

	// linalg
	driver.Standard(rules.Det, "Det")

	// loss
	driver.RegisterExpansion("", "NegativeLogLikelihoodLoss", 1, func(b *build.Builder, n *onnx.Node) []driver.Value {
		return []driver.Value{rules.LikelihoodLoss(b, n, n.In(0))}
	})
	driver.RegisterExpansion("", "SoftmaxCrossEntropyLoss", 1, rules.CrossEntropy)

	// matmul
	driver.Standard(rules.MatMul, "MatMul")
	driver.Standard(rules.Gemm, "Gemm")

	// norm
	driver.Standard(rules.BatchNorm, "BatchNormalization")
	driver.RegisterExpansion("", "InstanceNormalization", 1, rules.InstanceNorm)
	driver.RegisterExpansion("", "GroupNormalization", 18, rules.GroupNorm)
	driver.RegisterExpansion("", "MeanVarianceNormalization", 9, rules.MeanVarianceNorm)
	driver.RegisterExpansion("", "LRN", 1, rules.LRN)
	driver.Standard(rules.RMSNorm, "RMSNormalization")

	// pad
	driver.Standard(rules.Pad, "Pad")

	// pool
	driver.Standard(rules.AveragePool, "AveragePool")

	// pool global
	driver.Standard(rules.LpPool, "LpPool")
	driver.Standard(rules.GlobalLpPool, "GlobalLpPool")
	driver.RegisterExpansion("", "GlobalAveragePool", 1, rules.GlobalAveragePool)

	// pool max
	driver.Standard(rules.MaxPool, "MaxPool")
	driver.Standard(rules.MaxUnpool, "MaxUnpool")
	driver.Standard(rules.GlobalMaxPool, "GlobalMaxPool")

	// quant
	driver.Register("", "QuantizeLinear", 1, quant.Quantize)
	driver.Register("", "DequantizeLinear", 1, quant.Dequantize)
	driver.Register("", "DynamicQuantizeLinear", 1, quant.DynamicQuantize)
	driver.Register("", "MatMulInteger", 1, quant.MatMulInteger)
	driver.Register("", "ConvInteger", 1, quant.ConvInteger)
	driver.Register("", "QLinearMatMul", 1, quant.QLinearMatMul)
	driver.Register("", "QLinearConv", 1, quant.QLinearConv)
	driver.RegisterStraightThrough("", "QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv")

	// quant contrib
	driver.RegisterExpansion(driver.Contrib, "QuantizeLinear", 1, quant.StandardQuantise, driver.Otherwise(quant.Quantize))
	driver.RegisterExpansion(driver.Contrib, "DequantizeLinear", 1, quant.StandardQuantise, driver.Otherwise(quant.Dequantize))
	driver.RegisterExpansion(driver.Contrib, "MatMulIntegerToFloat", 1, quant.MatMulIntegerToFloat)
	driver.RegisterExpansion(driver.Contrib, "DynamicQuantizeMatMul", 1, quant.DynamicQuantizeMatMul)
	driver.RegisterExpansion(driver.Contrib, "QGemm", 1, quant.QGemm)
	driver.RegisterExpansion(driver.Contrib, "QAttention", 1, quant.QAttention)
	driver.Register(driver.Contrib, "DynamicQuantizeLSTM", 1, quant.DynamicQuantizeLSTM, driver.AllOutputs)
	driver.RegisterStraightThrough(driver.Contrib, "QuantizeLinear", "DynamicQuantizeMatMul", "QGemm", "DynamicQuantizeLSTM")

	// quant linear
	driver.RegisterExpansion(driver.Contrib, "QLinearAdd", 1, quant.Binary("Add"))
	driver.RegisterExpansion(driver.Contrib, "QLinearMul", 1, quant.Binary("Mul"))
	driver.RegisterExpansion(driver.Contrib, "QLinearConcat", 1, quant.QLinearConcat)
	driver.RegisterStraightThrough(driver.Contrib, "QLinearAdd", "QLinearMul", "QLinearConcat")

	// reduce
	driver.Standard(rules.ReduceSum, "ReduceSum")
	driver.Standard(rules.ReduceMean, "ReduceMean")
	driver.Standard(rules.ReduceExtremum, "ReduceMax", "ReduceMin")
	driver.Standard(rules.ReduceL1, "ReduceL1")
	driver.Standard(rules.ReduceL2, "ReduceL2")
	driver.Standard(rules.ReduceSumSquare, "ReduceSumSquare")
	driver.Standard(rules.ReduceLogSum, "ReduceLogSum")
	driver.Standard(rules.ReduceLogSumExp, "ReduceLogSumExp")
	driver.Standard(rules.ReduceProd, "ReduceProd")
	driver.Standard(rules.Softmax, "Softmax")
	driver.Standard(rules.LogSoftmax, "LogSoftmax")
	driver.Standard(rules.LayerNorm, "LayerNormalization")

	// reduce norm
	driver.Standard(rules.LpNorm, "LpNormalization")
	driver.Standard(rules.CumSum, "CumSum")

	// resize
	driver.Standard(rules.Resize, "Resize")

	// roi
	driver.RegisterExpansion("", "RoiAlign", 10, rules.RoiAlign)

	// scatter
	driver.Standard(rules.ScatterND, "ScatterND")
	driver.Standard(rules.ScatterElements, "ScatterElements")
	driver.RegisterExpansion("", "TensorScatter", 24, rules.TensorScatter)

	// select
	driver.Standard(rules.TopK, "TopK")
	driver.Standard(rules.OneHot, "OneHot")
	driver.Standard(rules.Compress, "Compress")
	driver.Standard(rules.Unique, "Unique")
	driver.Standard(rules.Range, "Range")

	// shape
	driver.Standard(rules.BackToShape, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
	driver.Standard(rules.Transpose, "Transpose")
	driver.Standard(rules.Expand, "Expand")
	driver.Standard(rules.Tile, "Tile")
	driver.Standard(rules.Trilu, "Trilu")
	driver.Standard(rules.ReverseSequence, "ReverseSequence")

	// signal
	driver.Register("", "DFT", 17, rules.DFT)
	driver.RegisterExpansion("", "STFT", 17, rules.STFT)

	// slice
	driver.Standard(rules.Slice, "Slice")
	driver.Standard(rules.Concat, "Concat")
	driver.Register("", "Split", 1, rules.Split, driver.AllOutputs)

	// space
	driver.Standard(rules.DepthToSpace, "DepthToSpace")
	driver.Standard(rules.SpaceToDepth, "SpaceToDepth")
	driver.Standard(rules.CenterCropPad, "CenterCropPad")
	driver.Standard(rules.Col2Im, "Col2Im")

	// expansion: activation
	driver.RegisterExpansion(driver.Contrib, "Gelu", 1, func(b *build.Builder, n *onnx.Node) []driver.Value {
		return []driver.Value{expand.Gelu(b, n.In(0))}
	})
	driver.RegisterExpansion(driver.Contrib, "BiasGelu", 1, func(b *build.Builder, n *onnx.Node) []driver.Value {
		return []driver.Value{expand.Gelu(b, b.Add(n.In(0), n.In(1)))}
	})
	driver.RegisterExpansion(driver.Contrib, "FastGelu", 1, expand.FastGelu)
	driver.RegisterExpansion(driver.Contrib, "QuickGelu", 1, expand.QuickGelu)

	// expansion: attention contrib
	driver.RegisterExpansion(driver.Contrib, "Attention", 1, expand.ContribAttention)
	driver.RegisterExpansion(driver.Contrib, "MultiHeadAttention", 1, expand.MultiHead)

	// expansion: attention group
	driver.RegisterExpansion(driver.Contrib, "GroupQueryAttention", 1, expand.GroupQuery)

	// expansion: attention standard
	driver.RegisterExpansion("", "Attention", 23, expand.Attention)

	// expansion: einsum
	driver.RegisterExpansion("", "Einsum", 12, expand.Einsum)

	// expansion: ml
	driver.RegisterExpansion(expand.ML, "LinearRegressor", 1, expand.LinearRegressor)
	driver.RegisterExpansion(expand.ML, "LinearClassifier", 1, expand.LinearClassifier)
	driver.RegisterExpansion(expand.ML, "SVMRegressor", 1, expand.SVMRegressor)
	driver.RegisterExpansion(expand.ML, "SVMClassifier", 1, expand.SVMClassifier)
	driver.RegisterExpansion(expand.ML, "Scaler", 1, expand.Scaler)
	driver.RegisterExpansion(expand.ML, "Normalizer", 1, expand.Normalizer)
	driver.RegisterExpansion(expand.ML, "Imputer", 1, expand.Imputer)
	driver.RegisterExpansion(expand.ML, "ArrayFeatureExtractor", 1, expand.ArrayFeatureExtractor)
	driver.RegisterZero(expand.ML, "Binarizer", "LabelEncoder", "CategoryMapper", "OneHotEncoder", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")

	// expansion: nbits
	driver.RegisterExpansion(driver.Contrib, "MatMulNBits", 1, expand.MatMulNBits)

	// expansion: norm
	driver.RegisterExpansion(driver.Contrib, "SkipLayerNormalization", 1, expand.SkipLayerNorm)
	driver.RegisterExpansion(driver.Contrib, "SkipSimplifiedLayerNormalization", 1, expand.SkipSimplified)
	driver.RegisterExpansion("", "SimplifiedLayerNormalization", 1, expand.Simplified)
	driver.RegisterExpansion(driver.Contrib, "EmbedLayerNormalization", 1, expand.Embed)

	// expansion: product
	driver.RegisterExpansion(driver.Contrib, "FusedMatMul", 1, expand.FusedMatMul)
	driver.RegisterExpansion(driver.Contrib, "TransposeMatMul", 1, expand.FusedMatMul)
	driver.RegisterExpansion(driver.Contrib, "FusedGemm", 1, expand.FusedGemm)
	driver.RegisterExpansion(driver.Contrib, "FusedConv", 1, expand.FusedConv)
	driver.RegisterExpansion(driver.Contrib, "NhwcConv", 1, expand.NhwcConv)
	driver.RegisterExpansion(driver.Contrib, "GemmFastGelu", 1, expand.GemmFastGelu)
	driver.RegisterExpansion(driver.Contrib, "ExpandDims", 1, expand.ExpandDims)

	// expansion: rnn gru
	driver.Register("", "GRU", 7, expand.RecurrentRule(expand.Gru), driver.AllOutputs)

	// expansion: rnn lstm
	driver.Register("", "LSTM", 7, expand.RecurrentRule(expand.Lstm), driver.AllOutputs)
	driver.Register("", "RNN", 7, expand.RecurrentRule(expand.Rnn), driver.AllOutputs)

	// expansion: rotary
	driver.RegisterExpansion("", "RotaryEmbedding", 23, expand.Rotary)
	driver.RegisterExpansion(driver.Contrib, "RotaryEmbedding", 1, expand.ContribRotary)
}
