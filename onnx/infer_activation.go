package onnx

func init() {
	register(inferSame, "Swish")
}
