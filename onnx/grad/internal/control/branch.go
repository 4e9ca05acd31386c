package control

import (
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// If: the gradient by v is If(c, ∂then/∂v·dy, ∂else/∂v·dy).
func If(b *build.Builder, n driver.Node, dy []driver.Value) []driver.Value {
	var branches []*branch
	read := map[driver.Value]driver.Value{} // with a gradient somewhere, as a branch writes it
	for _, name := range []string{"then_branch", "else_branch"} {
		k := newBranch(b, n, name, dy)
		if k == nil {
			return nil
		}
		for v := range k.grads {
			read[v] = k.grads[v]
		}
		branches = append(branches, k)
	}
	var at []int
	attrs := make([]*onnx.Attribute, len(branches))
	outs := make([][]driver.Value, len(branches))
	for i, v := range n.Captured {
		if read[v] == "" {
			continue
		}
		at = append(at, len(n.Inputs)+i)
		for j, k := range branches {
			d := k.grads[v]
			if d == "" {
				other := branches[1-j]
				d = zerosFor(k.Builder, v, other.Builder, other.grads[v])
			}
			outs[j] = append(outs[j], d)
		}
	}
	if len(at) == 0 {
		return nil
	}
	for j, k := range branches {
		attrs[j] = k.Close([]string{"then_branch", "else_branch"}[j], outs[j])
		rewrite.Prune(attrs[j].G)
	}
	dx := make([]driver.Value, len(n.Inputs)+len(n.Captured))
	for i, d := range b.OpN("", "If", len(at), []driver.Value{n.In(0)}, attrs...) {
		dx[at[i]] = d
		refineLike(b, d, n, at[i])
	}
	return dx
}

// refineLike states that d, the gradient by value i that n reads, has its shape, unless it is at a one-hot
// encoding.
func refineLike(b *build.Builder, d driver.Value, n driver.Node, i int) {
	v := append(n.Inputs[:len(n.Inputs):len(n.Inputs)], n.Captured...)[i]
	if s, ok := b.Shape(v); ok && b.Info(v).Type.IsFloat() {
		b.Refine(d, s)
	}
}

// branch is a branch of an If with the gradients by what it reads.
type branch struct {
	*build.Inner
	grads map[driver.Value]driver.Value
}

// newBranch differentiates a branch of n; nil after an error.
func newBranch(b *build.Builder, n driver.Node, name string, dy []driver.Value) *branch {
	a := n.Attr(name)
	if a == nil || a.G == nil || len(a.G.Outputs) < len(n.Outputs) {
		driver.Refuse(b, n.Node, "it has no %s", name)
		return nil
	}
	prefix := b.Fresh("If") + "/"
	g := rewrite.Copy(a.G, prefix+"of/")
	inner, err := b.Inside(g, nil, prefix)
	if err != nil {
		b.Fail(err)
		return nil
	}
	k := &branch{Inner: inner, grads: map[driver.Value]driver.Value{}}
	var outs, seeds, wrt []driver.Value
	for i, d := range dy {
		if d != "" {
			y := g.Outputs[i].Name
			seeds = append(seeds, k.Capture(d))
			if s, ok := k.Shape(y); ok && b.Info(d).Rank() < 0 {
				k.Refine(d, s) // this branch is taken
			}
			outs = append(outs, y)
		}
	}
	for i, v := range n.Captured {
		if n.Need(len(n.Inputs) + i) {
			wrt = append(wrt, k.Capture(v))
		}
	}
	p := driver.NewPass(k.Builder, wrt)
	if err := p.Run(outs, seeds); err != nil {
		b.Fail(err)
		return nil
	}
	for _, v := range wrt {
		if p.Grads[v] != "" {
			k.grads[v] = p.Grads[v]
		}
	}
	return k
}

// zerosFor returns zeros of the type of d, a gradient by v that builder of wrote: of the shape of v, and,
// at the one-hot encoding of integers, with the axis of the table.
func zerosFor(b *build.Builder, v driver.Value, of *build.Builder, d driver.Value) driver.Value {
	size := b.Op("Shape", []driver.Value{v})
	dims, known := b.Shape(v)
	if !b.Info(v).Type.IsFloat() {
		table, _ := of.Shape(d)
		entries, ok := table[len(table)-1].Const()
		if !ok {
			b.Fail(driver.BadShape("a look-up inside If, Scan or Loop", v, "a table of unknown length", "a known one"))
			return ""
		}
		size = b.Op("Concat", []driver.Value{size, b.Ints(entries)}, onnx.IntAttr("axis", 0))
		dims = append(dims[:len(dims):len(dims)], shape.D(entries))
	}
	z := zerosOf(b, size, of.Info(d).Type)
	if known {
		b.Refine(z, dims)
	}
	return z
}

func zerosOf(b *build.Builder, size driver.Value, t onnx.DataType) driver.Value {
	zero := onnx.NewFloat("", []int64{1}, []float32{0})
	if t == onnx.Double {
		zero = onnx.NewDouble("", []int64{1}, []float64{0})
	}
	return b.Cast(b.Op("ConstantOfShape", []driver.Value{size}, onnx.TensorAttr("value", zero)), t)
}
