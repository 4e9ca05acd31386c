package clip

import (
	"math"
	"slices"

	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/shape"
)

// Names of inputs and outputs that the graphs of prompts have beside the model's own.
const (
	inBlanks   = "gradhop/blanks"  // [blanks]: positions of the blanks
	inTarget   = "gradhop/target"  // [batch, width]: Σ_j ω_j v_j of each chain
	outGrad    = "gradhop/grad"    // [chains, blanks, value]
	outSlopes  = "gradhop/slopes"  // [batch, blanks, embed]: ∂U/∂embedding at the blanks
	inHead     = "gradhop/head"    // [rows, embed] or [rows, value]: a row for each blank
	inScale    = "gradhop/scale"   // [1]: what gradients are multiplied with
	outNearest = "gradhop/nearest" // [chains, blanks]: codes
	symBlanks  = "blanks"
	symTokens  = "tokens"
)

// slopes returns the text tower, cut open at its token embedding: it computes the unit
// vector of the text and the gradient of its product with the target by the embeddings at
// the blanks. The ids still go in, for the pooling at the end of text.
func (t *textModel) slopes() (*onnx.Model, error) {
	batch, sequence, width := symbol(symBatch, t.batch), symbol(symSeq, t.length), shape.D(int64(t.embed))
	m := t.opened()
	marks, err := grad.Compose(m)
	if err != nil {
		return nil, err
	}
	b, err := build.New(m, "gradhop/", map[string]shape.Dim{symTokens: batch.Mul(sequence)})
	if err != nil {
		return nil, err
	}
	for v, k := range marks {
		b.Mark(v, k)
	}
	m.Graph.Outputs = nil
	unit := unitRows(b, t.pooled(b, findPool(b)))
	b.Output(outUnit, unit)
	target := b.Input(inTarget, onnx.Float, batch, shape.D(int64(t.width)))
	u := b.ReduceSum(b.Mul(unit, target), []int64{1}, false)
	ones := b.Expand(b.Scalar(1, u), b.Op("Shape", []build.Value{u}))
	if b.Err() != nil {
		return nil, b.Err()
	}
	d, err := grad.Backward(b, []build.Value{u}, []build.Value{ones}, []build.Value{t.embedded})
	if err != nil {
		return nil, err
	}
	at := d[0]
	if t.flat {
		at = b.ReshapeTo(at, []shape.Dim{batch, sequence, width}, inIDs, unit)
	}
	blanks := b.Input(inBlanks, onnx.Int64, shape.Sym(symBlanks))
	// Gathered at the end: products of the first layer for one blank alone would be of one
	// row, see doubleRows.
	b.Output(outSlopes, b.Gather(at, blanks, 1))
	return finish(b, batch)
}

// opened returns the tower cut open at its token embedding, which becomes an input under its own name.
func (t *textModel) opened() *onnx.Model {
	m := t.model.Clone()
	m.Graph.Nodes = slices.DeleteFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, t.embedded) })
	shape := []onnx.ShapeDim{openDim(symBatch, t.batch), openDim(symSeq, t.length), {Value: int64(t.embed)}}
	if t.flat {
		shape = []onnx.ShapeDim{openDim(symTokens, t.batch*t.length), shape[2]}
	}
	m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: t.embedded, Type: onnx.Type{Elem: onnx.Float, HasShape: true, Shape: shape}})
	return m
}

func openDim(name string, fixed int) onnx.ShapeDim {
	if fixed > 0 {
		return onnx.ShapeDim{Value: int64(fixed)}
	}
	return onnx.ShapeDim{Value: -1, Param: name}
}

// headGraph returns a small graph of its own, with one output.
func headGraph(output string, write func(b *build.Builder) build.Value) (*onnx.Model, error) {
	m := &onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "prompt"}}
	b, err := build.New(m, "gradhop/", nil)
	if err != nil {
		return nil, err
	}
	b.Output(output, write(b))
	return m, b.Err()
}

// products returns rows·Wᵀ of an input [rows, embed], times k: [chains, blanks, value].
func (e *Prompt) products(b *build.Builder, table []float32, k float32) build.Value {
	width := int64(e.c.text.embed)
	rows := b.Input(inHead, onnx.Float, shape.Sym("rows"), shape.D(width))
	w := b.Weights(onnx.NewFloat("", []int64{int64(e.space.Values), width}, table))
	return e.bySite(b, b.Op("Gemm", []build.Value{rows, w}, onnx.IntAttr("transB", 1), onnx.FloatAttr("alpha", k)))
}

// bySite gives rows of values the shape [chains, blanks, values].
func (e *Prompt) bySite(b *build.Builder, x build.Value) build.Value {
	return b.Reshape(x, b.Ints(-1, int64(e.space.Sites), int64(e.space.Values)))
}

// allowed takes out what is not allowed.
func (e *Prompt) allowed(b *build.Builder, x build.Value) build.Value {
	s := e.space
	if len(s.Allowed) == 0 {
		return x
	}
	t := session.AllowedBias(s)
	return b.Add(x, b.Weights(onnx.NewFloat("", t.Shape, t.Data.([]float32))))
}

// softmax is that of the allowed values.
func (e *Prompt) softmax(b *build.Builder, x build.Value) build.Value {
	return b.Op("Softmax", []build.Value{e.allowed(b, x)}, onnx.IntAttr("axis", 2))
}

// gradientGraph computes ∂U/∂onehot.
func (e *Prompt) gradientGraph() (*onnx.Model, error) {
	return headGraph(outGrad, func(b *build.Builder) build.Value { return e.products(b, e.table, 1) })
}

// tiltGraph computes the softmax of half of it.
func (e *Prompt) tiltGraph() (*onnx.Model, error) {
	return headGraph(outGrad, func(b *build.Builder) build.Value { return e.softmax(b, e.products(b, e.table, 0.5)) })
}

// temperGraph computes the softmax of a multiple of a gradient, by row.
func (e *Prompt) temperGraph() (*onnx.Model, error) {
	return headGraph(outGrad, func(b *build.Builder) build.Value {
		g := b.Input(inHead, onnx.Float, shape.Sym("rows"), shape.D(int64(e.space.Values)))
		return e.softmax(b, e.bySite(b, b.Mul(g, b.Input(inScale, onnx.Float, shape.Sym("rows"), shape.D(1)))))
	})
}

// nearestGraph finds the rows of the largest cosine; the length of what is looked for
// does not matter.
func (e *Prompt) nearestGraph() (*onnx.Model, error) {
	width := e.c.text.embed
	unit := make([]float32, len(e.table))
	for lo := 0; lo < len(unit); lo += width {
		square := 0.0
		for _, x := range e.table[lo : lo+width] {
			square += float64(x) * float64(x)
		}
		if square == 0 {
			continue // of cosine zero with everything
		}
		for k, x := range e.table[lo : lo+width] {
			unit[lo+k] = float32(float64(x) / math.Sqrt(square))
		}
	}
	return headGraph(outNearest, func(b *build.Builder) build.Value {
		cosines := e.allowed(b, e.products(b, unit, 1))
		return b.Op("ArgMax", []build.Value{cosines}, onnx.IntAttr("axis", 2), onnx.IntAttr("keepdims", 0))
	})
}
