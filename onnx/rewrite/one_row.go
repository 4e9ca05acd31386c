package rewrite

import (
	"slices"

	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/shape"
)

// OneRow reorders the products of attention layers of which one position is read. Keys K = X·W + b and
// values of all positions are then not computed:
//
//	q·Kᵀ = (q·Wᵀ)·Xᵀ + q·bᵀ  and  p·V = (p·X)·W + (Σp)·b,
//
// for the query q and the probabilities p of one position in each text and head, and the columns of W and
// b that belong to the head.
func OneRow(b *build.Builder) {
	by := map[string]string{}
	for _, n := range slices.Clone(b.Model().Graph.Nodes) {
		left, _ := b.Shape(n.In(0))
		if n.Op != "MatMul" || n.Domain != "" || len(left) != 4 || !left[2].Is(1) {
			continue
		}
		h, ok := headsOf(b, n.In(1))
		if !ok {
			continue
		}
		weight := b.ReshapeTo(h.weight, []shape.Dim{h.width, left[1], h.each})
		bias := b.ReshapeTo(h.bias, []shape.Dim{left[1], shape.D(1), h.each})
		var y build.Value
		if h.key {
			y = b.MatMul(n.In(0), b.Transpose(weight, 1, 2, 0))
			y = b.Unsqueeze(b.MatMul(b.Squeeze(y, 2), b.Transpose(h.x, 0, 2, 1)), 2)
			y = b.Add(y, b.MatMul(n.In(0), b.Transpose(bias, 0, 2, 1)))
		} else {
			y = b.Unsqueeze(b.MatMul(b.Squeeze(n.In(0), 2), h.x), 2)
			y = b.MatMul(y, b.Transpose(weight, 1, 0, 2))
			y = b.Add(y, b.Mul(b.ReduceSum(n.In(0), []int64{3}, true), bias))
		}
		by[n.Out(0)] = y
	}
	substitute(b.Model().Graph, by)
	Sort(b.Model())
}

// heads is a value x·weight + bias whose last axis is divided among heads: keys, [batch, head, each,
// position], or values, [batch, head, position, each].
type heads struct {
	x, weight, bias build.Value // [batch, position, width], [width, heads·each], [heads·each]
	width, each     shape.Dim
	key             bool
}

// headsOf returns how v is computed.
func headsOf(b *build.Builder, v build.Value) (h heads, ok bool) {
	perm := []int{0, 1, 2, 3}
	n := b.Writer(v)
	for n != nil && n.Op == "Transpose" {
		p, err := shape.Permutation(n, 4)
		if err != nil {
			return h, false
		}
		for i, a := range perm {
			perm[i] = p[a]
		}
		n = b.Writer(n.In(0))
	}
	h.key = slices.Equal(perm, []int{0, 2, 3, 1})
	if n == nil || n.Op != "Reshape" || !h.key && !slices.Equal(perm, []int{0, 2, 1, 3}) {
		return h, false
	}
	from, _ := b.Shape(n.In(0))
	to, _ := b.Shape(n.Out(0))
	sum := b.Writer(n.In(0))
	if len(from) != 3 || len(to) != 4 || !shape.SameShape(from[:2], to[:2]) || sum == nil || sum.Op != "Add" {
		return h, false
	}
	for i := range 2 {
		product := b.Writer(sum.In(i))
		bias, _ := b.Shape(sum.In(1 - i))
		if product == nil || product.Op != "MatMul" || len(bias) != 1 || !bias[0].Equal(from[2]) {
			continue
		}
		h.x, h.weight, h.bias = product.In(0), product.In(1), sum.In(1-i)
		x, _ := b.Shape(h.x)
		w, _ := b.Shape(h.weight)
		if len(x) != 3 || len(w) != 2 {
			continue
		}
		h.width, h.each = x[2], to[3]
		return h, true
	}
	return h, false
}
