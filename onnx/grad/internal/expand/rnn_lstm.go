package expand

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
)

// RnnCell: h = f(z). dz = dh·f'(z), dh₋₁ = dz·R.
func RnnCell(d *direction) recurrentGrads {
	b := d.b
	z := d.gates()
	k := d.pieces(d.diagonal(d.act[0].apply(b, z), z)[0])
	pass := d.passing()
	dz, carry := make([]driver.Value, d.steps), d.dh
	order := d.order()
	for i := len(order) - 1; i >= 0 && b.Err() == nil; i-- {
		t := order[i]
		dh := d.step(t, carry)
		dz[t] = b.Mul(dh, k[t])
		carry = b.MatMul(dz[t], d.r)
		if pass != nil {
			carry = b.Add(carry, b.Mul(dh, pass[t]))
		}
	}
	all := d.join(dz)
	return recurrentGrads{dzx: all, dzh: all, dh0: carry}
}

// step returns the gradient of the state of step t: what its output gets, and what
// comes from the next step.
func (d *direction) step(t int, carry driver.Value) driver.Value {
	dy := driver.Value("")
	if d.dy != nil {
		dy = d.dy[t]
	}
	if v := d.sum(dy, carry); v != "" {
		return v
	}
	return d.zero()
}

// LstmCell: gates in the order i, o, f, c,
//
//	i = f(z_i + p_i·C₋₁), f = f(z_f + p_f·C₋₁), C = f·C₋₁ + i·g(z_c)
//	o = f(z_o + p_o·C),   h = o·h(C)
//
// with f = 1 - i where input_forget couples them. dC = dh·∂h/∂C + dC₊₁·∂C₊₁/∂C.
func LstmCell(d *direction) recurrentGrads {
	b := d.b
	d.c0 = d.state(d.n.In(6), d.index())
	z := d.parts(d.gates(), 4)
	c := d.cells(z)
	before := d.earlier(c, d.c0, false)
	kc := d.diagonal(d.cell(z, before), z[0], z[2], z[3], before)
	zo := z[1]
	if d.peepholes != nil {
		zo = b.Add(zo, b.Mul(d.peepholes[1], c))
	}
	h := b.Mul(d.act[0].apply(b, zo), d.act[2].write(b, c))
	kh := d.diagonal(h, z[1], c)
	k, slope, through := d.pieces(d.beside(kc[0], kh[0], kc[1], kc[2])), d.pieces(kh[1]), kc[3]
	pass := d.passing()
	if pass != nil {
		through = b.Add(through, b.Sub(b.Scalar(1, d.x), d.mask))
	}
	keep := d.pieces(through)
	dz, dhNext, dcNext := make([]driver.Value, d.steps), d.dh, d.dc
	order := d.order()
	for i := len(order) - 1; i >= 0 && b.Err() == nil; i-- {
		t := order[i]
		dh := d.step(t, dhNext)
		dc := d.sum(b.Mul(dh, slope[t]), dcNext)
		dz[t] = b.Mul(d.beside(dc, dh, dc, dc), k[t])
		dhNext = b.MatMul(dz[t], d.r)
		if pass != nil {
			dhNext = b.Add(dhNext, b.Mul(dh, pass[t]))
		}
		dcNext = b.Mul(dc, keep[t])
	}
	all := d.join(dz)
	out := recurrentGrads{dzx: all, dzh: all, dh0: dhNext, dc0: dcNext}
	if d.n.Need(7) && d.peepholes != nil {
		g := d.parts(all, 4)
		over := []int64{0, 1}
		out.dp = b.Op("Concat", []driver.Value{b.ReduceSum(b.Mul(g[0], before), over, false),
			b.ReduceSum(b.Mul(g[1], c), over, false), b.ReduceSum(b.Mul(g[2], before), over, false)}, onnx.IntAttr("axis", 0))
	}
	return out
}

// index is 1 for the second of two directions.
func (d *direction) index() int {
	if d.dirs == 2 && d.reverse {
		return 1
	}
	return 0
}

// cell returns C from the gates and C₋₁.
func (d *direction) cell(z []driver.Value, before driver.Value) driver.Value {
	keep, add := d.cellParts(z, before)
	return d.b.Add(d.b.Mul(keep, before), add)
}

// cellParts returns f and i·g.
func (d *direction) cellParts(z []driver.Value, before driver.Value) (keep, add driver.Value) {
	b := d.b
	zi, zf := z[0], z[2]
	if d.peepholes != nil {
		zi = b.Add(zi, b.Mul(d.peepholes[0], before))
		zf = b.Add(zf, b.Mul(d.peepholes[2], before))
	}
	in := d.act[0].apply(b, zi)
	if d.n.Int("input_forget", 0) != 0 {
		keep = b.Sub(b.Scalar(1, in), in)
	} else {
		keep = d.act[0].apply(b, zf)
	}
	return keep, b.Mul(in, d.act[1].apply(b, z[3]))
}

// cells returns C of all steps. Without peepholes its gates are known for all steps at
// once, and a step is a product and a sum.
func (d *direction) cells(z []driver.Value) driver.Value {
	b := d.b
	var keep, add []driver.Value
	steps := make([][]driver.Value, 4)
	masks := d.pieces(d.mask)
	if d.peepholes == nil {
		f, u := d.cellParts(z, "")
		if d.mask != "" { // outside the text the cell stays
			f = b.Add(b.Mul(f, d.mask), b.Sub(b.Scalar(1, f), d.mask))
			u = b.Mul(u, d.mask)
		}
		keep, add = d.pieces(f), d.pieces(u)
	} else {
		for i := range z {
			steps[i] = d.pieces(z[i])
		}
	}
	c, out := d.c0, make([]driver.Value, d.steps)
	for _, t := range d.order() {
		if b.Err() != nil {
			return ""
		}
		if d.peepholes == nil {
			c = b.Add(b.Mul(keep[t], c), add[t])
		} else {
			next := d.cell([]driver.Value{steps[0][t], steps[1][t], steps[2][t], steps[3][t]}, c)
			if d.mask != "" {
				next = b.Add(c, b.Mul(masks[t], b.Sub(next, c)))
			}
			c = next
		}
		out[t] = c
	}
	return d.join(out)
}
