package clip

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/rewrite"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Names of what a continued tower reads beside its own inputs.
const (
	inNext   = "gradhop/next"  // [batch, late, embed]: embeddings from the first blank on
	inLate   = "gradhop/late"  // [late]: the positions of these
	inEarly  = "gradhop/early" // [early]: the positions before
	inKept   = "gradhop/kept/" // what was kept of the early positions, an input for each
	symLate  = "late"
	symEarly = "early"
)

// continued is the text tower for texts that all begin alike: attention looks back only, so
// that what stands before the first blank is computed once. Nor is what follows the end of
// a text computed, where the file fixes the length.
type continued struct {
	model *onnx.Model
	pool  *pool // of the model
	kept  []rewrite.KeptRows
	masks []rewrite.RowMask
	ends  build.Value // in the tower itself: the ends of texts
}

// continued returns the tower in this form, or nil where its positions depend on each other
// in another way than in causal attention.
func (t *textModel) continued() (*continued, error) {
	m := t.model.Clone()
	b, err := build.New(m, "gradhop/", nil)
	if err != nil {
		return nil, err
	}
	p := findPool(b)
	if p == nil || p.out == t.out {
		return nil, nil
	}
	batch, width := symbol(symBatch, t.batch), shape.D(int64(t.embed))
	early, late := shape.Sym(symEarly), shape.Sym(symLate)
	k := rewrite.KnownRows{
		From: t.embedded, Axis: 1, Rows: symbol(symSeq, t.length), Outer: shape.D(1), Varies: []build.Value{inIDs}, Prefix: inKept,
		Early: b.Input(inEarly, onnx.Int64, early), Late: b.Input(inLate, onnx.Int64, late),
	}
	k.Next = b.Input(inNext, onnx.Float, batch, late, width)
	if t.flat {
		k.Axis, k.Outer = 0, batch
		k.Next = b.ReshapeTo(k.Next, []shape.Dim{batch.Mul(late), width})
	}
	c, ok := rewrite.ContinueRows(b, p.rows, k)
	if !ok {
		return nil, nil
	}
	live := &continued{model: m, kept: c.Kept, masks: c.Masks, ends: p.end}
	ends := b.Refine(b.Cast(b.Reshape(p.end, b.Ints(-1)), onnx.Int64), []shape.Dim{batch})
	live.pool = &pool{rows: c.Rows, end: b.Sub(ends, b.Op("Shape", []build.Value{inEarly}))}
	live.pool.out = live.pool.write(b, p.out)
	if b.Err() != nil {
		return nil, nil // a dimension that cannot be had from the late rows alone
	}
	for _, n := range m.Graph.Nodes {
		for i, v := range n.Inputs {
			if v == p.out {
				n.Inputs[i] = live.pool.out
			}
		}
	}
	rewrite.Sort(m)
	rewrite.Prune(m.Graph)
	rewrite.PruneInputs(m.Graph)
	if slices.ContainsFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, t.embedded) }) {
		return nil, nil // something else reads all positions
	}
	return live, nil
}

// write takes the rows in a form that needs nothing of the tower, in the shape of like.
func (p *pool) write(b *build.Builder, like build.Value) build.Value {
	to, _ := b.Shape(like)
	zero, one := b.Const(onnx.NewInt64("", nil, []int64{0})), b.Const(onnx.NewInt64("", nil, []int64{1}))
	n := b.Squeeze(b.Op("Shape", []build.Value{p.end}), 0)
	texts := b.Refine(b.Op("Range", []build.Value{zero, n, one}), to[:1])
	index := b.Op("Concat", []build.Value{b.Unsqueeze(texts, 1), b.Unsqueeze(p.end, 1)}, onnx.IntAttr("axis", 1))
	rows := b.Op("GatherND", []build.Value{p.rows, index})
	if len(to) == 3 {
		rows = b.Unsqueeze(rows, 1)
	}
	return b.Refine(rows, to)
}

// opened returns the tower cut open at its token embedding, which becomes an input under
// its own name, and that input; where all texts begin alike, at the embeddings of c.
func (t *textModel) opened(c *continued) (*onnx.Model, build.Value) {
	if c != nil {
		return c.model.Clone(), inNext
	}
	m := t.model.Clone()
	m.Graph.Nodes = slices.DeleteFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, t.embedded) })
	shape := []onnx.ShapeDim{openDim(symBatch, t.batch), openDim(symSeq, t.length), {Value: int64(t.embed)}}
	if t.flat {
		shape = []onnx.ShapeDim{openDim(symTokens, t.batch*t.length), shape[2]}
	}
	m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: t.embedded, Type: onnx.Type{Elem: onnx.Float, HasShape: true, Shape: shape}})
	return m, t.embedded
}
