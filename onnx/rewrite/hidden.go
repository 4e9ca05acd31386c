package rewrite

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// hiddenElements is the number of elements of the largest weight that stays whole: 1.25 MB in 16 bits.
const hiddenElements = 5 << 17

// SplitHidden divides wide hidden layers into parts, in place: f(x·W + b)·V becomes Σ f(x·Wₚ + bₚ)·Vₚ,
// where Wₚ are some columns of W, Vₚ the same rows of V, and f acts on each element. The backward pass
// through f, f'(x·W + b) ∘ (dy·Vᵀ), is divided with it. A layer is divided where its weights have more
// than [hiddenElements] elements, it is at least twice as wide as the input of its first product, and only
// elementwise operators and products with constant matrices read it. Sums are rounded once more for each
// part. Errors are those of shape inference.
//
// OpenVINO 1.8.1 needs it in bf16: one thread on a processor with AMX multiplies 2,400 rows by a matrix of
// 768×3,072 in 26 ms at best, and by one of 768×768, which fits into the second level of the cache, in 4.
// It gains where each run has one thread: one run on two threads took 3% more.
func SplitHidden(m *onnx.Model) error {
	nodes := slices.Clone(m.Graph.Nodes)
	b, err := build.New(m, "split/", nil)
	if err != nil {
		return err
	}
	s := &splitter{Builder: b, readers: map[build.Value][]*onnx.Node{}, reads: readers(m.Graph), done: map[build.Value]bool{}}
	for _, n := range nodes {
		for _, v := range n.Inputs {
			s.readers[v] = append(s.readers[v], n)
		}
	}
	for _, n := range nodes {
		if k, width := s.matrix(n); width >= 2*k && k*width > hiddenElements && !s.done[n.Outputs[0]] {
			s.split(n, nodes)
		}
	}
	Sort(m)
	Prune(m.Graph)
	return b.Err()
}

// splitter is a rewriting by SplitHidden under way.
type splitter struct {
	*build.Builder
	readers map[build.Value][]*onnx.Node // in the main graph
	reads   map[build.Value]int          // those in subgraphs, and outputs, included
	done    map[build.Value]bool         // values of the layers that were looked at
}

// matrix returns the dimensions of W if n is x·W with a constant matrix, or the transpose of one; else 0.
func (s *splitter) matrix(n *onnx.Node) (rows, columns int64) {
	if n.Op != "MatMul" || n.Domain != "" {
		return 0, 0
	}
	w := n.Inputs[1]
	if by := s.Writer(w); by != nil && by.Op == "Transpose" {
		w = by.Inputs[0]
	}
	dims, _ := s.Shape(n.Inputs[1])
	if x := s.Info(n.Inputs[0]); s.Constant(w) == nil || len(dims) != 2 || x.Rank() < 2 || x.Type != onnx.Float {
		return 0, 0
	}
	rows, _ = dims[0].Const()
	columns, _ = dims[1].Const()
	return rows, columns
}

// wide reports whether v is an activation, or a vector, with width elements in its last axis; ok is false
// if v has another width than that or 1.
func (s *splitter) wide(v build.Value, width int64) (wide, ok bool) {
	dims, known := s.Shape(v)
	if !known || len(dims) == 0 {
		return false, known
	}
	last := dims[len(dims)-1]
	return last.Is(width), last.Is(width) || last.Is(1)
}

// layer returns the values of the hidden layer that the product first writes, and the largest weight of
// the products that write them; nil if it cannot be divided.
func (s *splitter) layer(first *onnx.Node, width int64) (values map[build.Value]bool, largest int64) {
	values = map[build.Value]bool{first.Outputs[0]: true}
	divisible := true
	for queue := []build.Value{first.Outputs[0]}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		s.done[v] = true
		elementwise := slices.Clone(s.readers[v])
		divisible = divisible && len(elementwise) == s.reads[v]
		by := s.Writer(v)
		if k, columns := s.matrix(by); columns == width {
			largest = max(largest, k*columns)
		} else {
			elementwise = append(elementwise, by)
		}
		for _, n := range elementwise {
			if rows, _ := s.matrix(n); rows == width && n.Inputs[0] == v {
				continue
			}
			if n.Domain != "" || !rowWise[n.Op] || len(n.Outputs) != 1 {
				divisible = false
				continue
			}
			for _, in := range append([]string{n.Outputs[0]}, n.Inputs...) {
				wide, ok := s.wide(in, width)
				divisible = divisible && ok
				if wide && s.Writer(in) != nil && !values[in] {
					values[in] = true
					queue = append(queue, in)
				}
			}
		}
	}
	for v := range values {
		if k, _ := s.matrix(s.Writer(v)); !divisible || k > 0 && values[s.Writer(v).Inputs[0]] {
			return nil, 0
		}
	}
	return values, largest
}

// split divides the layer that the product first writes, if it can be divided.
func (s *splitter) split(first *onnx.Node, nodes []*onnx.Node) {
	_, width := s.matrix(first)
	values, largest := s.layer(first, width)
	count := int64(1)
	for count < width && (width%count != 0 || largest/count > hiddenElements) {
		count++
	}
	if values == nil || count == width {
		return
	}
	parts := map[build.Value][]build.Value{}
	part := func(v build.Value, axis, p int64) build.Value {
		if list := parts[v]; list != nil {
			return list[p]
		}
		step := width / count
		return s.Op("Slice", []build.Value{v, s.Ints(p * step), s.Ints((p + 1) * step), s.Ints(axis)})
	}
	for _, n := range nodes {
		y := n.Out(0)
		switch rows, _ := s.matrix(n); {
		case values[y]:
			for p := range count {
				in := slices.Clone(n.Inputs)
				if rows > 0 {
					in[1] = part(in[1], 1, p)
				}
				for i, v := range in {
					if wide, _ := s.wide(v, width); wide && rows == 0 {
						in[i] = part(v, -1, p)
					}
				}
				parts[y] = append(parts[y], s.Op(n.Op, in, n.Attrs...))
			}
		case rows == width && values[n.Inputs[0]]:
			sum := s.MatMul(parts[n.Inputs[0]][0], part(n.Inputs[1], 0, 0))
			for p := int64(1); p < count-1; p++ {
				sum = s.Add(sum, s.MatMul(parts[n.Inputs[0]][p], part(n.Inputs[1], 0, p)))
			}
			n.Op, n.Inputs = "Add", []string{sum, s.MatMul(parts[n.Inputs[0]][count-1], part(n.Inputs[1], 0, count-1))}
		}
	}
}
