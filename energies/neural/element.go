package neural

import (
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
)

// addElement makes an element of an output an output of m: logits[1] is column 1 of logits, and scores[0,2] is element
// (0, 2) of the last two axes. Other names, and those that m has, are left to the caller.
func addElement(m *onnx.Model, name string) error {
	of, rest, found := strings.Cut(name, "[")
	list, closed := strings.CutSuffix(rest, "]")
	if !found || !closed || m.Graph.Output(name) != nil || m.Graph.Output(of) == nil {
		return nil
	}
	b, err := build.New(m, "element/", nil)
	if err != nil {
		return err
	}
	v, parts := build.Value(of), strings.Split(list, ",")
	for k, part := range parts {
		axis := int64(len(parts) - k)
		i, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		bad := func(reason string) error {
			return &onnx.ArgumentError{Package: "neural", Argument: "output", Value: name, Reason: reason}
		}
		if err != nil || i < 0 {
			return bad("want indices from 0, as " + of + "[1]")
		}
		if dims, known := b.Shape(v); known {
			if int64(len(dims)) < axis {
				return bad(of + " has fewer axes")
			}
			if n, fixed := dims[int64(len(dims))-axis].Const(); fixed && i >= n {
				return bad("the index " + part + " is beyond the last, " + strconv.FormatInt(n-1, 10))
			}
			axis = int64(len(dims)) - axis
		} else {
			axis = -axis
		}
		v = b.Op("Gather", []build.Value{v, b.Const(onnx.NewInt64("", nil, []int64{i}))}, onnx.IntAttr("axis", axis))
	}
	b.Output(name, v)
	return b.Err()
}
