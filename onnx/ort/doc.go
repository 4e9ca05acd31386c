// Package ort runs ONNX models with the onnxruntime shared library. It is the only package
// that uses the binding github.com/yalue/onnxruntime_go.
//
// The program builds without onnxruntime. The library is loaded once per process, by [Init]
// or by the first [Open]; package library finds it, or fetches it.
//
// [Open] takes a model from memory and [Session.Run] runs it on [Tensor]s whose data are Go
// slices. An output with data is written in place, without a copy; an output without data
// is allocated. A session may be used by any number of goroutines at once.
//
// Every error is one line that begins with "ort: ", except that of a cancelled context,
// which is returned unchanged. Nothing is printed: the runtime's own log is off, because
// the errors returned say the same.
package ort
