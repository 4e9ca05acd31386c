package onnx

// IntAttr returns an integer attribute.
func IntAttr(name string, v int64) *Attribute {
	return &Attribute{Name: name, Type: AttrInt, I: v}
}

// IntsAttr returns an integer list attribute.
func IntsAttr(name string, v ...int64) *Attribute {
	return &Attribute{Name: name, Type: AttrInts, Ints: v}
}

// FloatAttr returns a float attribute.
func FloatAttr(name string, v float32) *Attribute {
	return &Attribute{Name: name, Type: AttrFloat, F: v}
}

// StringAttr returns a string attribute.
func StringAttr(name, v string) *Attribute {
	return &Attribute{Name: name, Type: AttrString, S: []byte(v)}
}

// TensorAttr returns a tensor attribute.
func TensorAttr(name string, t *Tensor) *Attribute {
	return &Attribute{Name: name, Type: AttrTensor, T: t}
}
