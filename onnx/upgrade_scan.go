package onnx

import "fmt"

func init() { upgradeAt(9, scanBatches, "Scan") }

// scanBatches: Scan went over a batch, on axis 0, and over the sequence, on axis 1.
// It is a scan over the batch whose body is a scan over the sequence, on axis 0 of
// what is left.
func scanBatches(u *upgrader, n *Node) []*Node {
	body, count := n.Attr("body"), n.Int("num_scan_inputs", 0)
	directions := u.attr(n, "directions")
	if body == nil || body.G == nil || len(n.Inputs) < 2 || count < 1 || int(count) > len(n.Inputs)-1 || len(body.G.Inputs) != len(n.Inputs)-1 {
		u.fail(n, "its body and its inputs do not fit together")
		return nil
	}
	if n.Inputs[0] != "" {
		u.fail(n, "sequences of different lengths have no equal in Scan of operator set 9")
		return nil
	}
	inner := &Node{Op: "Scan", Name: u.fresh(n, "sequence"), Attrs: n.Attrs}
	if directions != nil {
		inner.Attrs = withAttrs(inner.Attrs, IntsAttr("scan_input_directions", directions.Ints...))
	}
	g := &Graph{Name: inner.Name}
	for i, v := range body.G.Inputs {
		name := u.fresh(n, fmt.Sprintf("in_%d", i))
		inner.Inputs = append(inner.Inputs, name)
		g.Inputs = append(g.Inputs, &ValueInfo{Name: name, Type: Type{Elem: v.Type.Elem}})
	}
	for i, v := range body.G.Outputs {
		name := u.fresh(n, fmt.Sprintf("out_%d", i))
		inner.Outputs = append(inner.Outputs, name)
		g.Outputs = append(g.Outputs, &ValueInfo{Name: name, Type: Type{Elem: v.Type.Elem}})
	}
	g.Nodes = []*Node{inner}
	n.Inputs = n.Inputs[1:]
	n.Attrs = []*Attribute{{Name: "body", Type: AttrGraph, G: g}, IntAttr("num_scan_inputs", int64(len(n.Inputs)))}
	return []*Node{n}
}
