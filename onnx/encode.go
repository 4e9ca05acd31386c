package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// errTooLarge reports a model over 2 GB, the size limit of a protocol buffer.
var errTooLarge = errors.New("onnx: the model is over 2 GB: keep its weights in external data (SaveOptions.ExternalData)")

const maxEncoded = 1<<31 - 1

// Encode returns m in the format of an .onnx file. The result is deterministic: maps are sorted by key,
// fields by number. Tensors stored in other files stay there.
func Encode(m *Model) ([]byte, error) {
	w, err := encode(m)
	if err != nil {
		return nil, err
	}
	return slices.Concat(append(w.done, w.b)...), nil
}

func encode(m *Model) (*writer, error) {
	if m.Graph == nil {
		return nil, errors.New("onnx: a model without a graph cannot be written")
	}
	w := &writer{}
	w.model(m)
	if w.err != nil {
		return nil, w.err
	}
	if w.size() > maxEncoded {
		return nil, fmt.Errorf("%w (it has %d bytes)", errTooLarge, w.size())
	}
	return w, nil
}

// writer builds an encoded message. Long byte fields are kept by reference in done, so that weights are
// not copied from message to enclosing message.
type writer struct {
	done  [][]byte
	n     int64 // bytes in done
	b     []byte
	depth int
	err   error
}

const longBytes = 1 << 12

func (w *writer) size() int64 { return w.n + int64(len(w.b)) }

func (w *writer) bytes(num protowire.Number, v []byte) {
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(len(v)))
	if len(v) < longBytes {
		w.b = append(w.b, v...)
		return
	}
	w.n += int64(len(w.b) + len(v))
	w.done, w.b = append(w.done, w.b, v), nil
}

func (w *writer) string(num protowire.Number, v string) {
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	w.b = protowire.AppendString(w.b, v)
}

// text writes a string unless it is empty.
func (w *writer) text(num protowire.Number, v string) {
	if v != "" {
		w.string(num, v)
	}
}

func (w *writer) texts(num protowire.Number, list []string) {
	for _, v := range list {
		w.string(num, v)
	}
}

func (w *writer) int(num protowire.Number, v int64) {
	w.b = protowire.AppendTag(w.b, num, protowire.VarintType)
	w.b = protowire.AppendVarint(w.b, uint64(v))
}

func (w *writer) float(num protowire.Number, v float32) {
	w.b = protowire.AppendTag(w.b, num, protowire.Fixed32Type)
	w.b = protowire.AppendFixed32(w.b, math.Float32bits(v))
}

// message writes a nested message whose fields f writes.
func (w *writer) message(num protowire.Number, f func(*writer)) {
	in := writer{depth: w.depth + 1}
	if in.depth > 4*MaxNesting {
		w.err = fmt.Errorf("onnx: messages nested over %d deep", 4*MaxNesting)
		return
	}
	f(&in)
	w.err = cmp.Or(w.err, in.err)
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(in.size()))
	if len(in.done) == 0 {
		w.b = append(w.b, in.b...)
		return
	}
	w.n += int64(len(w.b)) + in.n
	w.done, w.b = append(append(w.done, w.b), in.done...), in.b
}

func (w *writer) entry(num protowire.Number, key, value string) {
	w.message(num, func(w *writer) {
		w.string(1, key)
		w.string(2, value)
	})
}

func (w *writer) opsets(num protowire.Number, opsets map[string]int64) {
	for _, domain := range slices.Sorted(maps.Keys(opsets)) {
		w.message(num, func(w *writer) {
			w.string(1, domain)
			w.int(2, opsets[domain])
		})
	}
}

func (w *writer) model(m *Model) {
	w.int(1, m.IRVersion)
	w.text(2, m.ProducerName)
	w.text(3, m.ProducerVersion)
	w.text(4, m.Domain)
	if m.ModelVersion != 0 {
		w.int(5, m.ModelVersion)
	}
	w.text(6, m.Doc)
	w.message(7, func(w *writer) { w.graph(m.Graph) })
	w.opsets(8, m.Opsets)
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		w.entry(14, key, m.Metadata[key])
	}
	for _, f := range m.Functions {
		w.message(25, func(w *writer) { w.function(f) })
	}
	w.b = append(w.b, m.Other...)
}

func (w *writer) function(f *Function) {
	w.text(1, f.Name)
	w.texts(4, f.Inputs)
	w.texts(5, f.Outputs)
	w.texts(6, f.Attributes)
	for _, n := range f.Nodes {
		w.message(7, func(w *writer) { w.node(n) })
	}
	w.text(8, f.Doc)
	w.opsets(9, f.Opsets)
	w.text(10, f.Domain)
	for _, a := range f.AttributeProtos {
		w.message(11, func(w *writer) { w.attribute(a) })
	}
	for _, v := range f.ValueInfos {
		w.message(12, func(w *writer) { w.valueInfo(v) })
	}
	w.text(13, f.Overload)
	w.b = append(w.b, f.Other...)
}

func (w *writer) graph(g *Graph) {
	for _, n := range g.Nodes {
		w.message(1, func(w *writer) { w.node(n) })
	}
	w.text(2, g.Name)
	for _, t := range g.Initializers {
		w.message(5, func(w *writer) { w.tensor(t) })
	}
	w.text(10, g.Doc)
	w.values(11, g.Inputs)
	w.values(12, g.Outputs)
	w.values(13, g.ValueInfos)
	w.b = append(w.b, g.Other...)
}

func (w *writer) node(n *Node) {
	w.texts(1, n.Inputs)
	w.texts(2, n.Outputs)
	w.text(3, n.Name)
	w.text(4, n.Op)
	for _, a := range n.Attrs {
		w.message(5, func(w *writer) { w.attribute(a) })
	}
	w.text(6, n.Doc)
	w.text(7, n.Domain)
	w.text(8, n.Overload)
	w.b = append(w.b, n.Other...)
}

func (w *writer) externalData(e *External) {
	w.entry(13, "location", e.Location)
	w.entry(13, "offset", strconv.FormatInt(e.Offset, 10))
	if e.Length >= 0 {
		w.entry(13, "length", strconv.FormatInt(e.Length, 10))
	}
	if e.Checksum != "" {
		w.entry(13, "checksum", e.Checksum)
	}
	w.int(14, 1)
}
