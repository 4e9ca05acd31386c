package shape

import "slices"

// Exporters compute arguments of Pad, Slice and If from integers by slicing, reversing and comparing.
// The functions below track the elements.

// strided returns the elements of x at base + Σ at[k]·strides[k] for every index at of shape, or nil if
// x or the shape is unknown.
func strided(x *Info, shape []Dim, base int64, strides []int64) []Dim {
	sizes, ok := numbers(shape)
	if x.Ints == nil || !ok {
		return nil
	}
	out := []Dim{}
	if slices.Contains(sizes, 0) {
		return out // other sizes may be huge, so return before the loop
	}
	var walk func(k int, at int64) bool
	walk = func(k int, at int64) bool {
		if k == len(sizes) {
			if at < 0 || at >= int64(len(x.Ints)) || len(out) >= knownElements {
				return false
			}
			out = append(out, x.Ints[at])
			return true
		}
		for i := range sizes[k] {
			if !walk(k+1, at+i*strides[k]) {
				return false
			}
		}
		return true
	}
	if !walk(0, base) {
		return nil
	}
	return out
}

func rowMajor(shape []Dim) ([]int64, bool) {
	sizes, ok := numbers(shape)
	strides := make([]int64, len(sizes))
	d := int64(1)
	for k := len(sizes) - 1; k >= 0; k-- {
		strides[k] = d
		d *= max(sizes[k], 1)
	}
	return strides, ok
}

func numbers(shape []Dim) ([]int64, bool) {
	out := make([]int64, len(shape))
	for i, d := range shape {
		v, ok := d.Const()
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// compare returns the result of comparison op, and whether it is known.
func compare(op string, a, b Dim) (Dim, bool) {
	less, more := b.Sub(a).Positive(), a.Sub(b).Positive()
	same := a.Sub(b).Is(0)
	truth := func(v bool) (Dim, bool) {
		if v {
			return D(1), true
		}
		return D(0), true
	}
	switch {
	case op == "And" || op == "Or" || op == "Xor":
		x, okX := a.Const()
		y, okY := b.Const()
		switch {
		case !okX || !okY:
			return Dim{}, false
		case op == "And":
			return truth(x != 0 && y != 0)
		case op == "Or":
			return truth(x != 0 || y != 0)
		}
		return truth((x != 0) != (y != 0))
	case !less && !more && !same:
		return Dim{}, false
	case op == "Equal":
		return truth(same)
	case op == "Less":
		return truth(less)
	case op == "Greater":
		return truth(more)
	case op == "LessOrEqual":
		return truth(!more)
	case op == "GreaterOrEqual":
		return truth(!less)
	}
	return Dim{}, false
}
