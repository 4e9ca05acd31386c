package onnx

import "slices"

// NewestUpgrade is the opset version that models can be upgraded to.
const NewestUpgrade = 18

// SetOpset sets the version of domain to v.
func (m *Model) SetOpset(domain string, v int64) {
	if m.Opsets == nil {
		m.Opsets = map[string]int64{}
	}
	m.Opsets[domain] = v
}

// fileVersion lists the first IR version that allows an opset version.
var fileVersion = []struct{ opset, ir int64 }{{9, 4}, {10, 5}, {11, 6}, {12, 7}, {15, 8}, {19, 9}, {21, 10}, {23, 11}}

// RaiseIR raises the IR version to the first that allows opset.
func (m *Model) RaiseIR(opset int64) {
	old := m.IRVersion
	for _, v := range fileVersion {
		if opset >= v.opset {
			m.IRVersion = max(m.IRVersion, v.ir)
		}
	}
	if old >= 4 || m.IRVersion < 4 {
		return
	}
	constant := map[string]bool{}
	for _, t := range m.Graph.Initializers {
		constant[t.Name] = true
	}
	m.Graph.Inputs = slices.DeleteFunc(m.Graph.Inputs, func(v *ValueInfo) bool { return constant[v.Name] })
}
