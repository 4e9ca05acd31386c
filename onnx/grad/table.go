package grad

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

func init() {
	// activation
	unary("Exp", func(b *build.Builder, _, y Value) Value { return y })
	unary("Log", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, x) })
	unary("Sqrt", func(b *build.Builder, _, y Value) Value { return b.Div(b.Scalar(0.5, y), y) })
	unary("Reciprocal", func(b *build.Builder, _, y Value) Value { return b.Neg(b.Mul(y, y)) })
	unary("Tanh", func(b *build.Builder, _, y Value) Value { return b.Sub(b.Scalar(1, y), b.Mul(y, y)) })
	unary("Sigmoid", func(b *build.Builder, _, y Value) Value { return b.Mul(y, b.Sub(b.Scalar(1, y), y)) })
	unary("Softplus", func(b *build.Builder, x, _ Value) Value { return b.Op("Sigmoid", []Value{x}) })
	unary("Sin", func(b *build.Builder, x, _ Value) Value { return b.Op("Cos", []Value{x}) })
	unary("Cos", func(b *build.Builder, x, _ Value) Value { return b.Neg(b.Op("Sin", []Value{x})) })
	unary("Tan", func(b *build.Builder, _, y Value) Value { return b.Add(b.Mul(y, y), b.Scalar(1, y)) })
	unary("Sinh", func(b *build.Builder, x, _ Value) Value { return b.Op("Cosh", []Value{x}) })
	unary("Cosh", func(b *build.Builder, x, _ Value) Value { return b.Op("Sinh", []Value{x}) })
	unary("Asin", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, oneMinusSquare(b, x)) })
	unary("Acos", func(b *build.Builder, x, _ Value) Value { return b.Neg(rootInverse(b, oneMinusSquare(b, x))) })
	unary("Atan", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, onePlusSquare(b, x)) })
	unary("Asinh", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, onePlusSquare(b, x)) })
	unary("Acosh", func(b *build.Builder, x, _ Value) Value { return rootInverse(b, b.Neg(oneMinusSquare(b, x))) })
	unary("Atanh", func(b *build.Builder, x, _ Value) Value { return reciprocal(b, oneMinusSquare(b, x)) })
	unary("Softsign", func(b *build.Builder, x, _ Value) Value { // (1+|x|)⁻²
		r := reciprocal(b, b.Add(b.Op("Abs", []Value{x}), b.Scalar(1, x)))
		return b.Mul(r, r)
	})
	unary("Erf", func(b *build.Builder, x, _ Value) Value {
		return b.Scale(b.Op("Exp", []Value{b.Neg(b.Mul(x, x))}), twoOverSqrtPi)
	})
	unary("Mish", func(b *build.Builder, x, _ Value) Value { // y = x·t, t = tanh(softplus x): t + x·(1-t²)·sigmoid x
		t := b.Op("Tanh", []Value{b.Op("Softplus", []Value{x})})
		dt := b.Mul(b.Sub(b.Scalar(1, x), b.Mul(t, t)), b.Op("Sigmoid", []Value{x}))
		return b.Add(t, b.Mul(x, dt))
	})
	standard(ruleGelu, "Gelu")
	Register("", "Swish", 24, ruleSwish)

	// activation kinks
	unary("Abs", func(b *build.Builder, x, _ Value) Value { return b.Op("Sign", []Value{x}) })
	unary("Relu", func(b *build.Builder, x, _ Value) Value {
		return b.Cast(b.Op("Greater", []Value{x, b.Scalar(0, x)}), b.Info(x).Type)
	})
	standard(ruleLeakyRelu, "LeakyRelu")
	standard(rulePRelu, "PRelu")
	standard(ruleElu, "Elu")
	standard(ruleSelu, "Selu")
	standard(ruleCelu, "Celu")
	standard(ruleThresholdedRelu, "ThresholdedRelu")
	standard(ruleHardSigmoid, "HardSigmoid")
	standard(ruleHardSwish, "HardSwish")
	standard(ruleShrink, "Shrink")

	// conv
	standard(ruleConv, "Conv")
	standard(ruleConvTranspose, "ConvTranspose")

	// elementwise
	standard(ruleIdentity, "Identity")
	standard(ruleAdd, "Add")
	standard(ruleSub, "Sub")
	standard(ruleMul, "Mul")
	standard(ruleDiv, "Div")
	standard(ruleNeg, "Neg")
	standard(rulePow, "Pow")
	standard(ruleCast, "Cast", "CastLike")
	standard(ruleWhere, "Where")
	standard(ruleDropout, "Dropout")
	standard(ruleSum, "Sum")
	standard(ruleMean, "Mean")

	// elementwise choice
	standard(ruleExtremum, "Max", "Min")
	standard(ruleClip, "Clip")
	standard(ruleMod, "Mod")

	// grid
	RegisterExpansion("", "GridSample", 16, expandGridSample)
	standard(ruleAffineGrid, "AffineGrid")

	// index
	standard(ruleGather, "Gather")
	standard(ruleGatherElements, "GatherElements")
	standard(ruleGatherND, "GatherND")

	// linalg
	standard(ruleDet, "Det")

	// loss
	RegisterExpansion("", "NegativeLogLikelihoodLoss", 1, func(b *build.Builder, n *onnx.Node) []Value {
		return []Value{likelihoodLoss(b, n, n.In(0))}
	})
	RegisterExpansion("", "SoftmaxCrossEntropyLoss", 1, expandCrossEntropy)

	// matmul
	standard(ruleMatMul, "MatMul")
	standard(ruleGemm, "Gemm")

	// norm
	standard(ruleBatchNorm, "BatchNormalization")
	RegisterExpansion("", "InstanceNormalization", 1, expandInstanceNorm)
	RegisterExpansion("", "GroupNormalization", 18, expandGroupNorm)
	RegisterExpansion("", "MeanVarianceNormalization", 9, expandMeanVarianceNorm)
	RegisterExpansion("", "LRN", 1, expandLRN)
	standard(ruleRMSNorm, "RMSNormalization")

	// pad
	standard(rulePad, "Pad")

	// pool
	standard(ruleAveragePool, "AveragePool")

	// pool global
	standard(ruleLpPool, "LpPool")
	standard(ruleGlobalLpPool, "GlobalLpPool")
	RegisterExpansion("", "GlobalAveragePool", 1, expandGlobalAveragePool)

	// pool max
	standard(ruleMaxPool, "MaxPool")
	standard(ruleMaxUnpool, "MaxUnpool")
	standard(ruleGlobalMaxPool, "GlobalMaxPool")

	// quant
	Register("", "QuantizeLinear", 1, ruleQuantize)
	Register("", "DequantizeLinear", 1, ruleDequantize)
	Register("", "DynamicQuantizeLinear", 1, ruleDynamicQuantize)
	Register("", "MatMulInteger", 1, ruleMatMulInteger)
	Register("", "ConvInteger", 1, ruleConvInteger)
	Register("", "QLinearMatMul", 1, ruleQLinearMatMul)
	Register("", "QLinearConv", 1, ruleQLinearConv)
	RegisterStraightThrough("", "QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv")

	// quant contrib
	RegisterExpansion(contrib, "QuantizeLinear", 1, standardQuantise)
	RegisterExpansion(contrib, "DequantizeLinear", 1, standardQuantise)
	RegisterExpansion(contrib, "MatMulIntegerToFloat", 1, expandMatMulIntegerToFloat)
	RegisterExpansion(contrib, "DynamicQuantizeMatMul", 1, expandDynamicQuantizeMatMul)
	RegisterExpansion(contrib, "QGemm", 1, expandQGemm)
	RegisterExpansion(contrib, "QAttention", 1, expandQAttention)
	RegisterStraightThrough(contrib, "QuantizeLinear", "DynamicQuantizeMatMul", "QGemm")

	// quant linear
	for name, op := range map[string]string{"QLinearAdd": "Add", "QLinearMul": "Mul"} {
		RegisterExpansion(contrib, name, 1, func(b *build.Builder, n *onnx.Node) []Value {
			return []Value{quantisedAs(b, b.Op(op, []Value{floatOf(b, n, 0), floatOf(b, n, 3)}), n.In(6), n.In(7))}
		})
		quantised[opKey{contrib, name}] = true
	}
	RegisterExpansion(contrib, "QLinearConcat", 1, expandQLinearConcat)
	quantised[opKey{contrib, "QLinearConcat"}] = true
	RegisterStraightThrough(contrib, "QLinearAdd", "QLinearMul", "QLinearConcat")

	// reduce
	standard(ruleReduceSum, "ReduceSum")
	standard(ruleReduceMean, "ReduceMean")
	standard(ruleReduceExtremum, "ReduceMax", "ReduceMin")
	standard(ruleReduceL1, "ReduceL1")
	standard(ruleReduceL2, "ReduceL2")
	standard(ruleReduceSumSquare, "ReduceSumSquare")
	standard(ruleReduceLogSum, "ReduceLogSum")
	standard(ruleReduceLogSumExp, "ReduceLogSumExp")
	standard(ruleReduceProd, "ReduceProd")
	standard(ruleSoftmax, "Softmax")
	standard(ruleLogSoftmax, "LogSoftmax")
	standard(ruleLayerNorm, "LayerNormalization")

	// reduce norm
	standard(ruleLpNorm, "LpNormalization")
	standard(ruleCumSum, "CumSum")

	// resize
	standard(ruleResize, "Resize")

	// scatter
	standard(ruleScatterND, "ScatterND")
	standard(ruleScatterElements, "ScatterElements")

	// select
	standard(ruleTopK, "TopK")
	standard(ruleOneHot, "OneHot")
	standard(ruleCompress, "Compress")
	standard(ruleUnique, "Unique")
	standard(ruleRange, "Range")

	// shape
	standard(ruleBackToShape, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
	standard(ruleTranspose, "Transpose")
	standard(ruleExpand, "Expand")
	standard(ruleTile, "Tile")
	standard(ruleTrilu, "Trilu")
	standard(ruleReverseSequence, "ReverseSequence")

	// slice
	standard(ruleSlice, "Slice")
	standard(ruleConcat, "Concat")
	Register("", "Split", 1, ruleSplit, AllOutputs)

	// space
	standard(ruleDepthToSpace, "DepthToSpace")
	standard(ruleSpaceToDepth, "SpaceToDepth")
	standard(ruleCenterCropPad, "CenterCropPad")
	standard(ruleCol2Im, "Col2Im")

	// expansion: activation
	RegisterExpansion(contrib, "Gelu", 1, func(b *build.Builder, n *onnx.Node) []Value {
		return []Value{gelu(b, n.In(0))}
	})
	RegisterExpansion(contrib, "BiasGelu", 1, func(b *build.Builder, n *onnx.Node) []Value {
		return []Value{gelu(b, b.Add(n.In(0), n.In(1)))}
	})
	RegisterExpansion(contrib, "FastGelu", 1, expandFastGelu)
	RegisterExpansion(contrib, "QuickGelu", 1, expandQuickGelu)

	// expansion: attention contrib
	RegisterExpansion(contrib, "Attention", 1, expandContribAttention)
	RegisterExpansion(contrib, "MultiHeadAttention", 1, expandMultiHead)

	// expansion: attention group
	RegisterExpansion(contrib, "GroupQueryAttention", 1, expandGroupQuery)

	// expansion: attention standard
	RegisterExpansion("", "Attention", 23, expandAttention)

	// expansion: einsum
	RegisterExpansion("", "Einsum", 12, expandEinsum)

	// expansion: nbits
	RegisterExpansion(contrib, "MatMulNBits", 1, expandMatMulNBits)

	// expansion: norm
	RegisterExpansion(contrib, "SkipLayerNormalization", 1, expandSkipLayerNorm)
	RegisterExpansion(contrib, "SkipSimplifiedLayerNormalization", 1, expandSkipSimplified)
	RegisterExpansion("", "SimplifiedLayerNormalization", 1, expandSimplified)
	RegisterExpansion(contrib, "EmbedLayerNormalization", 1, expandEmbed)

	// expansion: product
	RegisterExpansion(contrib, "FusedMatMul", 1, expandFusedMatMul)
	RegisterExpansion(contrib, "TransposeMatMul", 1, expandFusedMatMul)
	RegisterExpansion(contrib, "FusedGemm", 1, expandFusedGemm)
	RegisterExpansion(contrib, "FusedConv", 1, expandFusedConv)
	RegisterExpansion(contrib, "ExpandDims", 1, expandExpandDims)

	// expansion: rnn gru
	Register("", "GRU", 7, recurrentRule([]string{"sigmoid", "tanh"}, gruCell), AllOutputs)

	// expansion: rnn lstm
	Register("", "LSTM", 7, recurrentRule([]string{"sigmoid", "tanh", "tanh"}, lstmCell), AllOutputs)
	Register("", "RNN", 7, recurrentRule([]string{"tanh"}, rnnCell), AllOutputs)

	// expansion: rotary
	RegisterExpansion("", "RotaryEmbedding", 23, expandRotary)
	RegisterExpansion(contrib, "RotaryEmbedding", 1, expandContribRotary)
}
