package driver

import "github.com/gradhop/gradhop/onnx/build"

// Nested returns the gradients of the inputs of n that are asked for, where
// outs, with gradients dy, were computed from them by nodes that stand for n. The
// forward pass keeps n itself and its kernel.
func Nested(b *build.Builder, n Node, outs, dy []Value) []Value {
	if b.Err() != nil {
		return nil
	}
	var wrt []Value
	leaves := map[Value]bool{}
	for i, v := range n.Inputs {
		if n.Need(i) && !leaves[v] {
			leaves[v] = true
			wrt = append(wrt, v)
		}
	}
	inner := Inside(b, wrt, leaves, outs)
	if err := inner.Run(outs, dy); err != nil {
		b.Fail(err)
		return nil
	}
	dx := make([]Value, len(n.Inputs))
	for i, v := range n.Inputs {
		if leaves[v] {
			dx[i], leaves[v] = inner.Grads[v], false // once, also where v is read twice
		}
	}
	return dx
}
