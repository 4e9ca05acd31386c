package expand

import (
	"slices"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad/internal/driver"
)

// scan writes the steps as a Scan over what the gates get from the inputs, whose body is a step. Its gradient
// keeps the states of each step.
func (d *direction) scan(cell Cell) {
	b := d.b
	inputs := []driver.Value{d.h0}
	if d.c0 != "" {
		inputs = append(inputs, d.c0)
	}
	each := []driver.Value{cell.inputs(d)}
	if d.mask != "" {
		each = append(each, d.mask)
	}
	weights := cell.weights(d)
	name := b.Fresh("Scan")
	k, err := b.Inside(&onnx.Graph{Name: name}, nil, name+"/")
	if err != nil {
		b.Fail(err)
		return
	}
	for _, v := range slices.Concat(weights, d.peepholes) {
		k.Capture(v)
	}
	inner := *d.recurrent
	inner.b = k.Builder
	step := *d
	step.recurrent = &inner
	var states, now []driver.Value
	for _, v := range inputs {
		states = append(states, k.Receive(b.Info(v)))
	}
	for _, v := range each {
		info := *b.Info(v)
		info.Shape = info.Shape[min(1, len(info.Shape)):]
		now = append(now, k.Receive(&info))
	}
	before := append(states[:len(states):len(states)], "")
	h, c := cell.step(&step, now[0], weights, before[0], before[1])
	next, y := []driver.Value{step.inText(now[1:], 0, h, before[0])}, h
	if c != "" {
		next = append(next, step.inText(now[1:], 0, c, before[1]))
	}
	if d.mask != "" {
		y = k.Mul(h, now[1])
	}
	body := k.Close("body", append(next, y))
	k.Accept(append(states, now...))
	attrs := []*onnx.Attribute{body, onnx.IntAttr("num_scan_inputs", int64(len(each)))}
	if d.reverse {
		attrs = append(attrs, onnx.IntsAttr("scan_input_directions", []int64{1, 1}[:len(each)]...), onnx.IntsAttr("scan_output_directions", 1))
	}
	out := b.OpN("", "Scan", len(next)+1, append(inputs, each...), attrs...)
	if b.Err() != nil {
		return
	}
	d.h, d.y = out[0], b.Squeeze(out[len(next)], 1)
	if c != "" {
		d.c = out[1]
	}
}
