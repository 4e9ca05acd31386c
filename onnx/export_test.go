package onnx

// RoundTrip is roundTrip.
var RoundTrip = roundTrip
