package shape

import (
	"fmt"
	"github.com/gradhop/gradhop/onnx"
	"slices"
)

// Window says how the kernel of a convolution or a pooling moves along one spatial
// axis: it covers Kernel entries, Dilation apart, starts Begin entries before the
// first one and moves on by Stride; End entries are added behind the last one.
type Window struct {
	Kernel, Stride, Dilation, Begin, End int64
	// Ceil keeps a last window that begins inside but ends behind the padding.
	Ceil bool
}

// Extent is the number of entries from the first that a window covers to the last.
func (w Window) Extent() int64 { return w.Dilation*(w.Kernel-1) + 1 }

// Count returns the number of windows over size entries. It is unknown, and ok
// false, where size is symbolic and is not a multiple of the stride plus a number.
func (w Window) Count(size Dim) (n Dim, ok bool) {
	free := size.Add(D(w.Begin + w.End - w.Extent()))
	if v, isNumber := free.Const(); isNumber && v < 0 && v > -w.Stride {
		return D(1), true // the runtime divides towards zero
	}
	if !w.Ceil {
		n, ok = free.floorDiv(w.Stride)
		return n.Add(D(1)), ok
	}
	n, ok = free.Add(D(w.Stride - 1)).floorDiv(w.Stride)
	if !ok {
		return n, false
	}
	// The last window must not begin in the padding at the end.
	if behind, isNumber := n.Mul(D(w.Stride)).Sub(size).Sub(D(w.Begin)).Const(); isNumber && behind >= 0 {
		n = n.Sub(D(1))
	} else if !isNumber {
		return n, false
	}
	return n.Add(D(1)), true
}

// Need returns how many entries n windows cover, without the padding at the
// beginning: what the padding at the end adds to the size of the axis, or, where it
// is less, leaves over.
func (w Window) Need(n Dim) Dim {
	return n.Sub(D(1)).Mul(D(w.Stride)).Add(D(w.Extent() - w.Begin))
}

// floorDiv returns ⌊d/s⌋ where that is a polynomial.
func (d Dim) floorDiv(s int64) (Dim, bool) {
	out := make([]term, 0, len(d.terms))
	for _, t := range d.terms {
		switch q := t.coef / s; {
		case t.vars != "" && t.coef%s != 0:
			return Dim{}, false
		case t.coef%s < 0:
			out = append(out, term{t.vars, q - 1})
		default:
			out = append(out, term{t.vars, q})
		}
	}
	return collect(out), true
}

// Windows reads the windows of a Conv or pooling node over the spatial axes of an
// input of the given shape. Kernel sizes are the attribute kernel_shape, or else
// those of weights, the shape of a second input. ok is false where these, or padding
// that is left to the runtime, depend on a symbol.
func Windows(n *onnx.Node, shape, weights []Dim) (ws []Window, ok bool, err error) {
	if len(shape) < 3 {
		return nil, false, fmt.Errorf("an input of shape %s has no spatial axes", String(shape))
	}
	spatial := shape[2:]
	r, err := readWindow(n, spatial, weights)
	if err != nil || r.kernel == nil {
		return nil, false, err
	}
	ok = true
	for i, size := range spatial {
		w := Window{Kernel: r.kernel[i], Stride: r.strides[i], Dilation: r.dilations[i], Ceil: n.Int("ceil_mode", 0) != 0}
		switch auto := n.Str("auto_pad", "NOTSET"); auto {
		case "NOTSET", "":
			w.Begin, w.End = r.pads[i], r.pads[i+len(spatial)]
		case "VALID":
		case "SAME_UPPER", "SAME_LOWER":
			span := w.Extent()
			if n.Op != "Conv" {
				span = w.Kernel // the runtime forgets the dilation of pooling here
			}
			total, known := w.same(size, span)
			ok = ok && known
			if n.Op == "Conv" {
				total = max(0, total)
			}
			// Towards zero, as the runtime divides; strides may leave less than nothing.
			w.Begin = total / 2
			if auto == "SAME_LOWER" {
				w.Begin = (total + 1) / 2
			}
			w.End = total - w.Begin
		default:
			return nil, false, fmt.Errorf("auto_pad %q", auto)
		}
		ws = append(ws, w)
	}
	return ws, ok, nil
}

// same returns the padding that makes ⌈size/stride⌉ windows that cover span entries.
func (w Window) same(size Dim, span int64) (total int64, ok bool) {
	n, ok := size.Add(D(w.Stride - 1)).floorDiv(w.Stride)
	if !ok {
		return 0, false
	}
	return n.Sub(D(1)).Mul(D(w.Stride)).Add(D(span)).Sub(size).Const()
}

// windowAttrs are attributes with their defaults filled in; none where the kernel has
// the size of weights of symbolic shape.
type windowAttrs struct{ kernel, strides, dilations, pads []int64 }

func readWindow(n *onnx.Node, spatial, weights []Dim) (windowAttrs, error) {
	r := len(spatial)
	var a windowAttrs
	a.kernel, _ = n.Ints("kernel_shape")
	if a.kernel == nil && len(weights) == r+2 {
		for _, d := range weights[2:] {
			k, ok := d.Const()
			if !ok {
				return windowAttrs{}, nil
			}
			a.kernel = append(a.kernel, k)
		}
	}
	read := func(name string, count int, def int64) []int64 {
		if v, _ := n.Ints(name); len(v) > 0 {
			return v
		}
		return slices.Repeat([]int64{def}, count)
	}
	a.strides, a.dilations, a.pads = read("strides", r, 1), read("dilations", r, 1), read("pads", 2*r, 0)
	for _, l := range []struct {
		name  string
		v     []int64
		count int
		least int64
	}{{"kernel_shape", a.kernel, r, 1}, {"strides", a.strides, r, 1}, {"dilations", a.dilations, r, 1}, {"pads", a.pads, 2 * r, 0}} {
		if len(l.v) != l.count {
			return a, fmt.Errorf("%s has %d entries; %d spatial axes need %d", l.name, len(l.v), r, l.count)
		}
		for _, v := range l.v {
			if v < l.least || v > 1<<31 {
				return a, fmt.Errorf("%s %v is out of range", l.name, l.v)
			}
		}
	}
	return a, nil
}
