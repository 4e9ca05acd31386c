package rewrite

import (
	"fmt"
	"github.com/gradhop/gradhop/onnx"
	"maps"
	"slices"
)

// Bind sets symbolic dimensions of the inputs of m to numbers, in place. Keys are names of dimensions,
// or "INPUT[AXIS]" for a dimension without a name. It returns an *onnx.ArgumentError if a key matches
// no dimension, a number is below 1, or a dimension already has another size.
func Bind(m *onnx.Model, sizes map[string]int64) error {
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		n := sizes[key]
		bad := func(reason string) error {
			return &onnx.ArgumentError{Package: "onnx", Argument: "bind", Value: fmt.Sprintf("%s=%d", key, n), Reason: reason}
		}
		if n < 1 {
			return bad("a size must be at least 1")
		}
		if !bindAxis(m, key, n) && !bindName(m, key, n) {
			return bad("it matches no dimension" + onnx.Nearest(key, OpenDims(m)))
		}
	}
	return nil
}

// bindName replaces a named dimension everywhere in the file. It reports whether the name occurs.
func bindName(m *onnx.Model, name string, n int64) bool {
	found := false
	for _, v := range m.Graph.Inputs {
		found = found || slices.ContainsFunc(v.Type.Shape, func(d onnx.ShapeDim) bool { return d.Param == name })
	}
	if !found {
		return false
	}
	for _, list := range []*[]*onnx.ValueInfo{&m.Graph.Inputs, &m.Graph.Outputs, &m.Graph.ValueInfos} {
		for i, v := range *list {
			k := *v
			k.Type.Shape = slices.Clone(v.Type.Shape)
			for j, d := range k.Type.Shape {
				if d.Param == name {
					k.Type.Shape[j].Param, k.Type.Shape[j].Value = "", n
				}
			}
			(*list)[i] = &k
		}
	}
	return true
}

// bindAxis sets the dimension that key, "INPUT[AXIS]", refers to. It reports whether there is one.
func bindAxis(m *onnx.Model, key string, n int64) bool {
	for _, v := range m.Graph.Inputs {
		for j, d := range v.Type.Shape {
			if key != fmt.Sprintf("%s[%d]", v.Name, j) {
				continue
			}
			if d.Param != "" {
				return bindName(m, d.Param, n)
			}
			if d.Value >= 0 && d.Value != n {
				return false
			}
			v.Type.Shape[j].Value = n
			return true
		}
	}
	return false
}

// OpenDims returns the keys of all dimensions that [Bind] can set.
func OpenDims(m *onnx.Model) []string {
	var out []string
	for _, v := range m.Graph.Inputs {
		for j, d := range v.Type.Shape {
			switch {
			case d.Param != "" && !slices.Contains(out, d.Param):
				out = append(out, d.Param)
			case d.Param == "" && d.Value < 0:
				out = append(out, fmt.Sprintf("%s[%d]", v.Name, j))
			}
		}
	}
	return out
}
