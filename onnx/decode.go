package onnx

import (
	"bytes"
	"slices"
)

// Decode decodes the contents of an .onnx file.
//
// Data is not copied: byte slices of the model alias b, which must not change while the model is in
// use, and [Tensor].Offset is a position in b. Typed data fields are converted to Raw; a single packed
// run of float or double has the format of Raw already and also aliases b.
//
// The error is a [*FormatError] if b is not a valid model, and an [*UnsupportedError] if the model uses
// a feature that this package lacks. Memory use is bounded by a fixed multiple of len(b).
func Decode(b []byte) (*Model, error) { return decode(b, maxRecords) }

func decode(b []byte, records int) (*Model, error) {
	d := &decoder{left: records}
	m := &Model{Opsets: map[string]int64{}}
	d.model(&scan{d: d, index: -1, b: b}, m)
	if d.err == nil && m.Graph != nil {
		return m, nil
	}
	if m.Graph == nil && m.IRVersion == 0 && len(m.Opsets) == 0 {
		return nil, &FormatError{Offset: -1, Reason: notAModel(b)}
	}
	if d.err == nil {
		return nil, &FormatError{Offset: -1, Reason: "incomplete ONNX model: no graph"}
	}
	return nil, d.err
}

// notAModel returns the reason why b is not a model, judged by its first bytes.
func notAModel(b []byte) string {
	switch {
	case len(b) == 0:
		return "not an ONNX model: the file is empty"
	case bytes.HasPrefix(b, []byte("version https://git-lfs")):
		return "not an ONNX model but a Git LFS pointer to one: fetch the file itself"
	}
	return "not an ONNX model"
}

func (d *decoder) model(s *scan, m *Model) {
	for s.next() {
		switch s.num {
		case 1:
			m.IRVersion = s.int()
		case 2:
			m.ProducerName = s.text()
		case 3:
			m.ProducerVersion = s.text()
		case 4:
			m.Domain = s.text()
		case 5:
			m.ModelVersion = s.int()
		case 6:
			m.Doc = s.text()
		case 7:
			if m.Graph != nil {
				s.fail("a second graph")
			}
			m.Graph = new(Graph)
			d.graph(s.enter("graph", -1), m.Graph, 1)
		case 8:
			d.opset(s.enter("opset_import", len(m.Opsets)), m.Opsets)
		case 14:
			if m.Metadata == nil {
				m.Metadata = map[string]string{}
			}
			k, v := d.entry(s.enter("metadata_props", len(m.Metadata)))
			m.Metadata[k] = v
		case 20, 26:
			s.bytes()
			s.keep(&m.Other)
		case 25:
			f := &Function{Opsets: map[string]int64{}}
			m.Functions = append(m.Functions, f)
			d.function(s.enter("functions", len(m.Functions)-1), f)
		}
	}
}

func (d *decoder) opset(s *scan, opsets map[string]int64) {
	var domain string
	var version int64
	for s.next() {
		switch s.num {
		case 1:
			domain = s.text()
		case 2:
			version = s.int()
		}
	}
	opsets[standardDomain(domain)] = version
}

// standardDomain maps both names of the standard domain to "".
func standardDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func (d *decoder) entry(s *scan) (key, value string) {
	for s.next() {
		switch s.num {
		case 1:
			key = s.text()
		case 2:
			value = s.text()
		}
	}
	return key, value
}

func (d *decoder) function(s *scan, f *Function) {
	for s.next() {
		switch s.num {
		case 1:
			f.Name = s.text()
		case 4:
			f.Inputs = append(f.Inputs, s.text())
		case 5:
			f.Outputs = append(f.Outputs, s.text())
		case 6:
			f.Attributes = append(f.Attributes, s.text())
		case 7:
			f.Nodes = append(f.Nodes, d.node(s.enter("node", len(f.Nodes)), 1))
		case 8:
			f.Doc = s.text()
		case 9:
			d.opset(s.enter("opset_import", len(f.Opsets)), f.Opsets)
		case 10:
			f.Domain = standardDomain(s.text())
		case 11:
			f.AttributeProtos = append(f.AttributeProtos, d.attribute(s.enter("attribute_proto", len(f.AttributeProtos)), 1))
		case 12:
			f.ValueInfos = append(f.ValueInfos, d.valueInfo(s.enter("value_info", len(f.ValueInfos))))
		case 13:
			f.Overload = s.text()
		case 14:
			s.bytes()
			s.keep(&f.Other)
		}
	}
}

func (d *decoder) graph(s *scan, g *Graph, depth int) {
	if depth > MaxNesting {
		s.fail("graphs nested over %d deep", MaxNesting)
	}
	for s.next() {
		switch s.num {
		case 1:
			g.Nodes = append(g.Nodes, d.node(s.enter("node", len(g.Nodes)), depth))
		case 2:
			g.Name = s.text()
		case 5:
			g.Initializers = append(g.Initializers, d.tensor(s.enter("initializer", len(g.Initializers))))
		case 10:
			g.Doc = s.text()
		case 11:
			g.Inputs = append(g.Inputs, d.valueInfo(s.enter("input", len(g.Inputs))))
		case 12:
			g.Outputs = append(g.Outputs, d.valueInfo(s.enter("output", len(g.Outputs))))
		case 13:
			g.ValueInfos = append(g.ValueInfos, d.valueInfo(s.enter("value_info", len(g.ValueInfos))))
		case 14, 16:
			s.bytes()
			s.keep(&g.Other)
		case 15:
			s.enter("sparse_initializer", -1).refuse("sparse initialisers are not supported")
		}
	}
	g.dropRepeated()
}

// dropRepeated removes repeated constants of one name. Like onnxruntime it keeps the last Constant node
// that writes the name, else the last initialiser.
func (g *Graph) dropRepeated() {
	constant := func(n *Node) bool {
		return n.Op == "Constant" && n.Domain == "" && len(n.Outputs) == 1 && n.Outputs[0] != ""
	}
	last := map[string]int{}
	for i, n := range g.Nodes {
		if constant(n) {
			last[n.Outputs[0]] = i + 1
		}
	}
	i := 0
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { i++; return constant(n) && last[n.Outputs[0]] != i })
	for i, t := range g.Initializers {
		if last[t.Name] <= 0 {
			last[t.Name] = -i - 1
		}
	}
	i = 0
	g.Initializers = slices.DeleteFunc(g.Initializers, func(t *Tensor) bool { i++; return t.Name != "" && last[t.Name] != -i })
}

func (d *decoder) node(s *scan, depth int) *Node {
	n := &Node{}
	for s.next() {
		switch s.num {
		case 1:
			n.Inputs = append(n.Inputs, s.text())
		case 2:
			n.Outputs = append(n.Outputs, s.text())
		case 3:
			n.Name = s.text()
		case 4:
			n.Op = s.text()
		case 5:
			n.Attrs = append(n.Attrs, d.attribute(s.enter("attribute", len(n.Attrs)), depth))
		case 6:
			n.Doc = s.text()
		case 7:
			n.Domain = standardDomain(s.text())
		case 8:
			n.Overload = s.text()
		case 9, 10:
			s.bytes()
			s.keep(&n.Other)
		}
	}
	if n.Op == "" {
		s.fail("a node without an operator")
	}
	return n
}
