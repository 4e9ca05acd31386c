package ort

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"google.golang.org/protobuf/encoding/protowire"
)

// A proto builds protobuf bytes: the tests make their models by hand, so that
// they do not depend on what package onnx writes.
type proto []byte

func (p proto) num(field protowire.Number, v int) proto {
	p = protowire.AppendTag(p, field, protowire.VarintType)
	return protowire.AppendVarint(p, uint64(v))
}

func (p proto) bytes(field protowire.Number, v []byte) proto {
	p = protowire.AppendTag(p, field, protowire.BytesType)
	return protowire.AppendBytes(p, v)
}

func (p proto) str(field protowire.Number, v string) proto { return p.bytes(field, []byte(v)) }

// value is a ValueInfoProto. dims is a list like "N 3", "" for a scalar, or "?"
// for an undeclared shape.
func value(name string, elem onnx.DataType, dims string) proto {
	tensor := proto{}.num(1, int(elem))
	if dims != "?" {
		var shape proto
		for _, d := range strings.Fields(dims) {
			if n, err := strconv.Atoi(d); err == nil {
				shape = shape.bytes(1, proto{}.num(1, n))
			} else {
				shape = shape.bytes(1, proto{}.str(2, d))
			}
		}
		tensor = tensor.bytes(2, shape)
	}
	return proto{}.str(1, name).bytes(2, proto{}.bytes(1, tensor))
}

// node is a NodeProto: inputs and outputs are lists of names.
func node(op, inputs, outputs string) proto {
	var n proto
	for _, i := range strings.Fields(inputs) {
		n = n.str(1, i)
	}
	for _, o := range strings.Fields(outputs) {
		n = n.str(2, o)
	}
	return n.str(4, op)
}

// model is a ModelProto of opset 13.
func model(inputs, outputs []proto, nodes ...proto) []byte {
	var g proto
	for _, n := range nodes {
		g = g.bytes(1, n)
	}
	g = g.str(2, "test")
	for _, v := range inputs {
		g = g.bytes(11, v)
	}
	for _, v := range outputs {
		g = g.bytes(12, v)
	}
	return proto{}.num(1, 8).bytes(7, g).bytes(8, proto{}.num(2, 13))
}

// unary is a model y = op(x), both with the given type and shape.
func unary(op string, elem onnx.DataType, dims string) []byte {
	return model([]proto{value("x", elem, dims)}, []proto{value("y", elem, dims)}, node(op, "x", "y"))
}

// binary is a model c = op(a, b) of float32.
func binary(op, a, b, c string) []byte {
	return model([]proto{value("a", onnx.Float, a), value("b", onnx.Float, b)},
		[]proto{value("c", onnx.Float, c)}, node(op, "a b", "c"))
}

// open opens a model and closes it when the test ends.
func open(t testing.TB, m []byte, in, out string, o Options) *Session {
	t.Helper()
	s, err := Open(context.Background(), m, strings.Fields(in), strings.Fields(out), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
