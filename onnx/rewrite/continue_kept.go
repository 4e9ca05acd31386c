package rewrite

import (
	"fmt"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// whole returns v at early rows, read from an input, and late rows.
func (r *continuing) whole(v build.Value) build.Value {
	b := r.b
	best := build.Value("")
	// Cache the rows as computed by the product with weights, before any change of layout: there, rows
	// are concatenated in long runs.
	for at := v; ; {
		if best == "" && r.keepable(at) {
			best = at
		}
		n := b.Writer(at)
		if n == nil || n.Op == "MatMul" || n.Op == "Gemm" || len(n.Outputs) != 1 {
			break
		}
		next := build.Value("")
		for _, x := range n.Inputs {
			if r.states[x] != nil {
				if next != "" {
					next = ""
					break
				}
				next = x
			}
		}
		if next == "" || next == r.k.From || r.uses[next] != 1 {
			break
		}
		if at = next; !rowWise[n.Op] && r.keepable(at) {
			best = at
		}
	}
	if best == "" {
		r.failed = true
		return ""
	}
	if r.kept[best] == nil {
		shape := r.shape(best, false)
		axis := r.states[best].axis
		shape[axis] = r.early
		k := &KeptRows{Of: best, Axis: axis, Input: fmt.Sprintf("%s%d", r.k.Prefix, len(r.out.Kept))}
		b.Input(k.Input, b.Info(best).Type, shape...)
		r.kept[best] = k
		r.out.Kept = append(r.out.Kept, *k)
	}
	return r.version(v, true)
}

// keepable reports whether rows of v can be an input, that is, its other dimensions are constants or
// names.
func (r *continuing) keepable(v build.Value) bool {
	s := r.states[v]
	dims, _ := r.b.Shape(v)
	if s == nil || !s.pure() || s.cols >= 0 {
		return false
	}
	for i, d := range dims {
		if _, number := d.Const(); i != s.axis && !number && !d.Equal(shape.Sym(d.String())) {
			return false
		}
	}
	return true
}
