// Package gradtest checks gradient rules against finite differences. It is test
// support: the one place below onnx/grad that runs models.
//
// The checker is the same for every operator and shape: for a random cotangent u
// and random directions v, <u, J v> by central differences of the forward graph
// must equal <vjp(u), v> of the graph that [driver.Backward] writes.
package gradtest
