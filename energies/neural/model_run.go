package neural

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
)

// layout is the format of the state in the model's input.
type layout struct {
	elem    onnx.DataType
	batch   int     // chains per run, 0 for any number
	axis    bool    // the input has a batch axis
	symbol  string  // name of the batch dimension in the file, or ""
	dims    []int64 // shape for one chain
	integer bool    // integer codes
	oneHot  bool
	low     int // value of code 0 in an integer input
	bind    map[string]int64
}

// maxElements limits the size of one-hot batches for models with a constant batch size: each run
// allocates them in full.
const maxElements = 1 << 31

// layoutOf matches the space with the declared shape of the input.
func layoutOf(v *onnx.ValueInfo, s *energies.Space) (layout, error) {
	l := layout{elem: v.Type.Elem, axis: true}
	shape := shapeText(v)
	mismatch := func(format string, args ...any) (layout, error) {
		return l, &MismatchError{s.String(), "input", v.Name, shape, fmt.Sprintf(format, args...)}
	}
	switch l.elem {
	case onnx.Float, onnx.Double:
		l.oneHot = s.Kind == energies.Categorical
	case onnx.Int64, onnx.Int32:
		l.integer = true
		if s.Kind == energies.Spin {
			return mismatch("integer inputs are indices, but spins are -1 and +1")
		}
		if s.Kind == energies.Ordinal {
			if l.low = s.Low; l.low < 0 {
				return mismatch("integer inputs are indices, but the smallest value is %d", l.low)
			}
		}
	default:
		return mismatch("its elements are %s; want float, double, int32 or int64", l.elem)
	}
	want := int64(s.Sites)
	what := fmt.Sprintf("%d sites", s.Sites)
	if l.oneHot {
		want *= int64(s.Values)
		what += fmt.Sprintf(" x %d values, one-hot,", s.Values)
	}
	if !v.Type.HasShape {
		l.dims = []int64{int64(s.Sites)}
		if l.oneHot {
			l.dims = append(l.dims, int64(s.Values))
		}
		return l, nil
	}
	dims := v.Type.Shape
	if whole, open := product64(dims); open < 0 && whole == want {
		if len(dims) == 0 || dims[0].Value != 1 || len(dims) == 1 {
			l.axis, l.batch = false, 1
			l.dims = values(dims)
			return l.settled(s, mismatch)
		}
	}
	if len(dims) < 2 {
		return mismatch("%s per chain need a batch axis and an axis of %d elements", what, want)
	}
	if n := dims[0].Value; n >= 0 {
		if n > maxElements/max(int64(s.Sites)*int64(s.Values), 1) {
			return mismatch("a batch of %d chains of %d sites and %d values is too large; export the model with an open batch dimension", n, s.Sites, s.Values)
		}
		l.batch = int(n)
	}
	l.symbol = dims[0].Param
	rest, open := product64(dims[1:])
	switch {
	case open == several:
		return mismatch("more than one dimension of a chain is symbolic; bind them to numbers")
	case open >= 0 && rest > 0 && want%rest == 0:
		dims = slices.Clone(dims)
		key := dims[1+open].Param
		if key == "" {
			key = fmt.Sprintf("%s[%d]", v.Name, 1+open)
		}
		l.bind = map[string]int64{key: want / rest}
		dims[1+open].Value = want / rest
	case open >= 0:
		return mismatch("%s are %d elements per chain, but the input has a multiple of %d", what, want, rest)
	case rest != want:
		return mismatch("%s are %d elements per chain, but the input has %d", what, want, rest)
	}
	l.dims = values(dims[1:])
	return l.settled(s, mismatch)
}

// settled checks that one-hot rows are the last axis.
func (l layout) settled(s *energies.Space, mismatch func(string, ...any) (layout, error)) (layout, error) {
	if l.oneHot && len(l.dims) > 1 && l.dims[len(l.dims)-1] != int64(s.Values) {
		return mismatch("one-hot rows need a last axis of %d values", s.Values)
	}
	return l, nil
}

// several is the result of product64 for more than one symbolic dimension.
const several = 1 << 30

// product64 returns the product of the constant dimensions and the index of the symbolic one, -1 if
// none.
func product64(dims []onnx.ShapeDim) (n int64, open int) {
	n, open = 1, -1
	for i, d := range dims {
		switch {
		case d.Value >= 0 && d.Param == "":
			n *= d.Value
		case open >= 0:
			open = several
		default:
			open = i
		}
	}
	return n, open
}

func values(dims []onnx.ShapeDim) []int64 {
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = d.Value
	}
	return out
}

func shapeText(v *onnx.ValueInfo) string {
	if !v.Type.HasShape {
		return "unknown"
	}
	var ds []shape.Dim
	for _, d := range v.Type.Shape {
		switch {
		case d.Param != "":
			ds = append(ds, shape.Sym(d.Param))
		case d.Value >= 0:
			ds = append(ds, shape.D(d.Value))
		default:
			ds = append(ds, shape.Sym("?"))
		}
	}
	return shape.String(ds)
}

// run evaluates one batch.
func (e *Model) run(ctx context.Context, s *session.Session, p placement, u []float64, g []float32, x energies.Batch) error {
	state := e.state(x, p)
	in := map[string]*ort.Tensor{e.opts.Input: state}
	for name, t := range e.opts.Fixed {
		in[name] = e.repeated(name, t, p.rows)
	}
	out := make([]*ort.Tensor, 1, 2)
	if g != nil {
		slope := e.slope(state.Shape)
		defer e.slopes.Put(slope)
		out = append(out, slope)
	}
	if err := s.Run(ctx, in, out); err != nil {
		return err
	}
	sign := 1 / e.opts.Temperature
	if e.opts.Negate {
		sign = -sign
	}
	got, err := floats(out[0], p.rows, e.opts.Output)
	if err != nil {
		return err
	}
	for c := range u {
		u[c] = sign * got(p.at[c])
	}
	if g == nil {
		return nil
	}
	return e.spread(g, x, p, out[1], sign)
}

// slope returns a buffer for a gradient of the given shape, reusing old ones: allocation by the runtime
// in each run costs as much as a small model.
func (e *Model) slope(shape []int64) *ort.Tensor {
	if e.layout.integer {
		shape = append(slices.Clone(shape), int64(e.hot))
	}
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	t, ok := e.slopes.Get().(*ort.Tensor)
	if !ok {
		t = &ort.Tensor{Data: []float32(nil)}
		if e.double {
			t.Data = []float64(nil)
		}
	}
	t.Shape = shape
	switch d := t.Data.(type) {
	case []float32:
		t.Data = slices.Grow(d[:0], n)[:n]
	case []float64:
		t.Data = slices.Grow(d[:0], n)[:n]
	}
	return t
}

// state returns the input tensor of the chains; unused rows repeat the first chain.
func (e *Model) state(x energies.Batch, p placement) *ort.Tensor {
	l, s := e.layout, &e.opts.Space
	rows := p.rows
	shape := slices.Clone(l.dims)
	if l.axis {
		shape = append([]int64{int64(rows)}, shape...)
	}
	chain := make([]int, rows)
	for c, r := range p.at {
		chain[r] = c
	}
	row := func(r int) []int32 { return x.Chain(chain[r]) }
	switch {
	case l.elem == onnx.Int64:
		return &ort.Tensor{Shape: shape, Data: fill(rows, s.Sites, row, func(v int32) int64 { return int64(v) + int64(l.low) })}
	case l.elem == onnx.Int32:
		return &ort.Tensor{Shape: shape, Data: fill(rows, s.Sites, row, func(v int32) int32 { return v + int32(l.low) })}
	case l.elem == onnx.Double && l.oneHot:
		return &ort.Tensor{Shape: shape, Data: oneHot[float64](rows, s, row)}
	case l.oneHot:
		return &ort.Tensor{Shape: shape, Data: oneHot[float32](rows, s, row)}
	case l.elem == onnx.Double:
		return &ort.Tensor{Shape: shape, Data: fill(rows, s.Sites, row, func(v int32) float64 { return float64(s.Number(v)) })}
	}
	return &ort.Tensor{Shape: shape, Data: fill(rows, s.Sites, row, func(v int32) float32 { return float32(s.Number(v)) })}
}

// Encode returns states in the format of the model's state input, one row each.
func (e *Model) Encode(x energies.Batch) *ort.Tensor {
	p := placement{rows: x.Chains(), at: make([]int, x.Chains())}
	for c := range p.at {
		p.at[c] = c
	}
	return e.state(x, p)
}

func fill[T any](rows, sites int, row func(int) []int32, f func(int32) T) []T {
	out := make([]T, 0, rows*sites)
	for c := range rows {
		for _, v := range row(c) {
			out = append(out, f(v))
		}
	}
	return out
}

func oneHot[T float32 | float64](rows int, s *energies.Space, row func(int) []int32) []T {
	out := make([]T, rows*s.Sites*s.Values)
	for c := range rows {
		for i, v := range row(c) {
			out[(c*s.Sites+i)*s.Values+int(v)] = 1
		}
	}
	return out
}

// repeated returns a fixed input for a run with the given number of rows.
func (e *Model) repeated(name string, t *ort.Tensor, rows int) *ort.Tensor {
	dims := e.model.Graph.Input(name).Type.Shape
	if e.layout.symbol == "" || len(dims) == 0 || dims[0].Param != e.layout.symbol {
		return t
	}
	shape := slices.Clone(t.Shape)
	switch {
	case len(shape) == len(dims)-1:
		shape = append([]int64{1}, shape...)
	case len(shape) != len(dims) || shape[0] != 1:
		return t // the runtime reports what is wrong
	}
	shape[0] = int64(rows)
	r := &ort.Tensor{Shape: shape}
	switch d := t.Data.(type) {
	case []float32:
		r.Data = slices.Repeat(d, rows)
	case []float64:
		r.Data = slices.Repeat(d, rows)
	case []int64:
		r.Data = slices.Repeat(d, rows)
	case []int32:
		r.Data = slices.Repeat(d, rows)
	case []bool:
		r.Data = slices.Repeat(d, rows)
	case []uint8:
		r.Data = slices.Repeat(d, rows)
	case []int8:
		r.Data = slices.Repeat(d, rows)
	}
	return r
}

// spread converts the model's gradient to that of the one-hot encoding: for x = Σ_v number(v)·onehot_v
// it is number(v)·∂U/∂x.
func (e *Model) spread(g []float32, x energies.Batch, p placement, t *ort.Tensor, sign float64) error {
	s := &e.opts.Space
	each := s.Sites
	switch {
	case e.layout.integer:
		each *= e.hot
	case e.layout.oneHot:
		each *= s.Values
	}
	d, err := floats(t, p.rows*each, "gradient of "+e.opts.Output)
	if err != nil {
		return err
	}
	if !e.layout.integer && !e.layout.oneHot {
		weight := make([]float64, s.Values)
		for v := range weight {
			weight[v] = sign * float64(s.Number(int32(v)))
		}
		for k := range x.Codes {
			at := d(p.element(k, s.Sites))
			for v, w := range weight {
				g[k*s.Values+v] = float32(at * w)
			}
		}
		return nil
	}
	stride, from := s.Values, 0
	if e.layout.integer {
		stride, from = e.hot, e.layout.low
	}
	for k := range x.Codes {
		for v := range s.Values {
			g[k*s.Values+v] = float32(sign * d(p.element(k, s.Sites)*stride+from+v))
		}
	}
	return nil
}

// floats returns a getter for the n elements of a tensor computed by the model.
func floats(t *ort.Tensor, n int, name string) (func(int) float64, error) {
	switch d := t.Data.(type) {
	case []float32:
		if len(d) == n {
			return func(i int) float64 { return float64(d[i]) }, nil
		}
	case []float64:
		if len(d) == n {
			return func(i int) float64 { return d[i] }, nil
		}
	}
	return nil, notOnePerChain(name, fmt.Sprintf("%v for %d chains", t.Shape, n))
}
