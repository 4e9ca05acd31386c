package shape

import "github.com/gradhop/gradhop/onnx"

func init() {
	register(inferAttention, "Attention")
	register(inferMultiHead, "MultiHeadAttention")
	register(inferGroupQuery, "GroupQueryAttention")
	register(inferRotary, "RotaryEmbedding")
}

// inferRotary: same as the input.
func inferRotary(_ *Inference, _ *onnx.Node, in []*Info) ([]*Info, error) {
	x := arg(in, 0)
	if x == nil {
		return nil, nil
	}
	return []*Info{{Type: x.Type, Known: x.Known, Shape: x.Shape}}, nil
}

// heads describes queries, keys or values, with heads merged or separate.
type heads struct {
	batch, count, length, size Dim
	flat                       bool
}

// headsOf reads a shape [batch, heads, length, size] or [batch, length, heads·size].
func headsOf(x *Info, count int64) (h heads, ok bool) {
	switch x.Rank() {
	case 4:
		return heads{x.Shape[0], x.Shape[1], x.Shape[2], x.Shape[3], false}, true
	case 3:
		if count < 1 {
			return h, false
		}
		size, ok := x.Shape[2].Quo(D(count))
		return heads{x.Shape[0], D(count), x.Shape[1], size, true}, ok
	}
	return h, false
}

// inferAttention handles the standard operator and that of onnxruntime.
func inferAttention(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	if n.Domain != "" {
		return inferPackedAttention(n, in)
	}
	q, okQ := headsOf(arg(in, 0), n.Int("q_num_heads", 0))
	k, okK := headsOf(arg(in, 1), n.Int("kv_num_heads", 0))
	v, okV := headsOf(arg(in, 2), n.Int("kv_num_heads", 0))
	if !okQ || !okK || !okV {
		return nil, nil
	}
	t := in[0].Type
	total := k.length
	if past := arg(in, 4); past.Rank() == 4 {
		total = total.Add(past.Shape[2])
	}
	y := []Dim{q.batch, q.count, q.length, v.size}
	if q.flat {
		y = []Dim{q.batch, q.length, q.count.Mul(v.size)}
	}
	return []*Info{{Type: t, Known: true, Shape: y},
		{Type: t, Known: true, Shape: []Dim{k.batch, k.count, total, k.size}},
		{Type: t, Known: true, Shape: []Dim{v.batch, v.count, total, v.size}},
		{Type: t, Known: true, Shape: []Dim{q.batch, q.count, q.length, total}}}, nil
}

// inferPackedAttention: input [batch, length, ·]; weights of queries, keys and values concatenated.
func inferPackedAttention(n *onnx.Node, in []*Info) ([]*Info, error) {
	x, w := arg(in, 0), arg(in, 1)
	if x.Rank() != 3 || w.Rank() != 2 || n.Int("num_heads", 0) < 1 {
		return nil, nil
	}
	hidden, ok := w.Shape[1].Quo(D(3))
	value := hidden
	if sizes, given := n.Ints("qkv_hidden_sizes"); given && len(sizes) == 3 {
		hidden, value, ok = D(sizes[0]), D(sizes[2]), true
	}
	if !ok {
		return nil, nil
	}
	y := &Info{Type: x.Type, Known: true, Shape: []Dim{x.Shape[0], x.Shape[1], value}}
	size, ok := hidden.Quo(D(n.Int("num_heads", 0)))
	if !ok {
		return []*Info{y}, nil
	}
	total := x.Shape[1]
	if past := arg(in, 4); past.Rank() == 5 {
		total = total.Add(past.Shape[3])
	}
	return []*Info{y, {Type: x.Type, Known: true, Shape: []Dim{D(2), x.Shape[0], D(n.Int("num_heads", 0)), total, size}}}, nil
}

// inferMultiHead: query, key and value in the formats of onnxruntime's operator.
func inferMultiHead(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	q, k, v := arg(in, 0), arg(in, 1), arg(in, 2)
	count := n.Int("num_heads", 0)
	var hq, hk, hv heads
	ok := true
	switch {
	case q.Rank() == 5: // packed: [batch, length, heads, 3, size]
		hq = heads{q.Shape[0], q.Shape[2], q.Shape[1], q.Shape[4], true}
		hk, hv = hq, hq
	case q.Rank() == 3 && k.Rank() == 5:
		hq, ok = headsOf(q, count)
		hk = heads{k.Shape[0], k.Shape[2], k.Shape[1], k.Shape[4], true}
		hv = hk
	case q.Rank() == 3:
		var okK, okV bool
		hq, ok = headsOf(q, count)
		hk, okK = headsOf(k, count)
		hv, okV = headsOf(v, count)
		ok = ok && okK && okV
	default:
		ok = false
	}
	if !ok {
		return nil, nil
	}
	total := hk.length
	if past := arg(in, 6); past.Rank() == 4 {
		total = total.Add(past.Shape[2])
	}
	t := q.Type
	return []*Info{{Type: t, Known: true, Shape: []Dim{hq.batch, hq.length, hq.count.Mul(hv.size)}},
		{Type: t, Known: true, Shape: []Dim{hk.batch, hk.count, total, hk.size}},
		{Type: t, Known: true, Shape: []Dim{hv.batch, hv.count, total, hv.size}},
		{Type: t, Known: true, Shape: []Dim{hq.batch, hq.count, hq.length, total}}}, nil
}

// inferGroupQuery: queries, keys and values separate or concatenated.
func inferGroupQuery(_ *Inference, n *onnx.Node, in []*Info) ([]*Info, error) {
	q, count, kv := arg(in, 0), n.Int("num_heads", 0), n.Int("kv_num_heads", 0)
	if q.Rank() != 3 || count < 1 || kv < 1 {
		return nil, nil
	}
	width := count
	if n.In(1) == "" {
		width += 2 * kv
	}
	size, ok := q.Shape[2].Quo(D(width))
	if !ok {
		return nil, nil
	}
	total := q.Shape[1]
	if past := arg(in, 3); past.Rank() == 4 {
		total = total.Add(past.Shape[2])
	}
	cache := &Info{Type: q.Type, Known: true, Shape: []Dim{q.Shape[0], D(kv), total, size}}
	return []*Info{{Type: q.Type, Known: true, Shape: []Dim{q.Shape[0], q.Shape[1], size.Mul(D(count))}}, cache, cache}, nil
}
