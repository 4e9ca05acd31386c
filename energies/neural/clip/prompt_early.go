package clip

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// prefixCache holds the rows computed for the positions before the first blank.
type prefixCache struct {
	early, late int // positions before the first blank, and from it to the end of text
	kept        []keptRows

	mu     sync.Mutex
	texts  int                    // batch size of inputs
	inputs map[string]*ort.Tensor // kept from the last run, as batch sizes repeat
}

// keptRows are the rows of one value of the graph, for one text, or for all texts of a run
// if the file fixes the batch size.
type keptRows struct {
	name  string
	shape []int64
	data  []float32
	batch int // the batch axis, negative if the file fixes the batch size
}

// masked is how much a mask must lower an attention score to exclude a position: the weight
// is e to the power of the difference, and float32 has no number below 1e-45. Exporters use
// -Inf, the least number of the type, or -10000; scores are of order ten.
const masked = 5000

// prefixOf returns what the prompt caches, computed on first use, or nil if every position
// must be computed in every run.
func (e *Prompt) prefixOf(ctx context.Context) (*prefixCache, error) {
	return e.prefix.Get(ctx, struct{}{}, func() (*prefixCache, error) {
		c, err := e.c.continued()
		if c == nil || err != nil || e.text.Blanks[0] == 0 {
			return nil, err
		}
		return e.keep(context.WithoutCancel(ctx), c)
	})
}

// keep runs the tower on one filling, for the values at early positions, the masks that
// make these the same for all fillings, and the end of the text.
func (e *Prompt) keep(ctx context.Context, c *continued) (*prefixCache, error) {
	t := e.c.text
	m := t.model.Clone()
	b, err := build.New(m, "gradhop/", nil)
	if err != nil {
		return nil, err
	}
	m.Graph.Outputs = nil
	b.Output(inEarly, c.ends)
	for i, k := range c.masks {
		b.Output(fmt.Sprintf("%s/mask/%d", inEarly, i), k.Of)
	}
	for _, k := range c.kept {
		b.Output(k.Input, k.Of)
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	rewrite.Prune(m.Graph)
	rewrite.PruneInputs(m.Graph)
	o := e.c.opts.Runtime
	o.LowMemory = true // for one run; and what it gives does not depend on the options
	s, err := session.Open(ctx, m, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := make([]*ort.Tensor, len(m.Graph.Outputs))
	for i := range out {
		out[i] = &ort.Tensor{}
	}
	ids := e.IDs(make([]int32, len(e.text.Blanks)))
	if err := s.Run(ctx, t.feed(t.rows(1), t.tokens(len(ids)), func(int) []int32 { return ids }), out); err != nil {
		return nil, err
	}
	ends, _ := out[0].Data.([]int64)
	if len(ends) == 0 || !e.endsAt(int(ends[0])) {
		return nil, nil
	}
	begin := &prefixCache{early: e.text.Blanks[0]}
	last := max(int(ends[0]), e.text.Blanks[len(e.text.Blanks)-1])
	begin.late = last + 1 - begin.early
	for i, k := range c.masks {
		if !causal(out[1+i], k, begin.early, last) {
			return nil, nil
		}
	}
	for i, k := range c.kept {
		rows, ok := rowsBefore(out[1+len(c.masks)+i], k.Axis, begin.early)
		if !ok {
			return nil, nil
		}
		rows.name, rows.batch = k.Input, -1
		if v := c.model.Graph.Input(k.Input); t.batch == 0 {
			for a, d := range v.Type.Shape {
				if d.Param == symBatch {
					rows.batch = a
				}
			}
		}
		begin.kept = append(begin.kept, rows)
	}
	return begin, nil
}

// endsAt reports whether every filling ends at a position: towers take the first place of
// an end of text, or of the largest id.
func (e *Prompt) endsAt(end int) bool {
	ids := e.text.IDs
	if end < e.text.Blanks[0] || end >= len(ids) {
		return false
	}
	blank := map[int]bool{}
	for _, p := range e.text.Blanks {
		blank[p] = true
	}
	for k, id := range ids[:end] {
		if !blank[k] && id >= ids[end] {
			return false
		}
	}
	for _, id := range e.text.Tokens {
		if id >= ids[end] {
			return false
		}
	}
	return !blank[end]
}

// causal reports whether a mask rules out, for each of the early positions, those that
// follow them, and for the others up to last, those behind last.
func causal(x *ort.Tensor, k rewrite.RowMask, early, last int) bool {
	data, ok := x.Data.([]float32)
	if !ok || k.Row < 0 || k.Column < 0 {
		return false
	}
	stride := make([]int, len(x.Shape))
	for n, a := 1, len(x.Shape)-1; a >= 0; a-- {
		stride[a] = n
		n *= int(x.Shape[a])
	}
	across, down := stride[k.Column], stride[k.Row]
	columns, rows := int(x.Shape[k.Column]), int(x.Shape[k.Row])
	if last >= rows || last >= columns {
		return false
	}
	for at := range data {
		if at/across%columns != 0 {
			continue
		}
		row := at / down % rows
		limit := last // the last column that this row may look at
		if row > last {
			continue
		}
		if row < early {
			limit = early - 1
		}
		seen, hidden := math.Inf(-1), math.Inf(-1)
		for c := range columns {
			v := float64(data[at+c*across])
			switch {
			case v != v:
				return false
			case c <= limit:
				seen = max(seen, v)
			default:
				hidden = max(hidden, v)
			}
		}
		if limit+1 < columns && !(seen-hidden >= masked) {
			return false
		}
	}
	return true
}

// rowsBefore takes the first rows along an axis.
func rowsBefore(x *ort.Tensor, axis, rows int) (keptRows, bool) {
	data, ok := x.Data.([]float32)
	if !ok || axis >= len(x.Shape) || int64(rows) > x.Shape[axis] {
		return keptRows{}, false
	}
	inner := 1
	for _, d := range x.Shape[axis+1:] {
		inner *= int(d)
	}
	k := keptRows{shape: append([]int64(nil), x.Shape...)}
	k.shape[axis] = int64(rows)
	whole := int(x.Shape[axis]) * inner
	for lo := 0; lo < len(data); lo += whole {
		k.data = append(k.data, data[lo:lo+rows*inner]...)
	}
	return k, true
}

// feed returns the inputs that hold the prefix for a number of texts. The caller must not
// change them.
func (g *prefixCache) feed(texts int) map[string]*ort.Tensor {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.texts == texts {
		return g.inputs
	}
	in := map[string]*ort.Tensor{inEarly: positionsFrom(0, g.early), inLate: positionsFrom(g.early, g.late)}
	for _, k := range g.kept {
		x := &ort.Tensor{Shape: append([]int64(nil), k.shape...), Data: k.data}
		if k.batch >= 0 {
			inner := 1
			for _, d := range k.shape[k.batch+1:] {
				inner *= int(d)
			}
			all := make([]float32, 0, len(k.data)*texts)
			for lo := 0; lo < len(k.data); lo += inner {
				for range texts {
					all = append(all, k.data[lo:lo+inner]...)
				}
			}
			x.Shape[k.batch], x.Data = int64(texts), all
		}
		in[k.name] = x
	}
	g.texts, g.inputs = texts, in
	return in
}

func positionsFrom(first, n int) *ort.Tensor {
	list := make([]int64, n)
	for k := range list {
		list[k] = int64(first + k)
	}
	return &ort.Tensor{Shape: []int64{int64(n)}, Data: list}
}
