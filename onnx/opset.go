package onnx

import "slices"

// NewestUpgrade is the newest operator set that models are upgraded to.
const NewestUpgrade = 18

// SetOpset declares version v of an operator set.
func (m *Model) SetOpset(domain string, v int64) {
	if m.Opsets == nil {
		m.Opsets = map[string]int64{}
	}
	m.Opsets[domain] = v
}

// fileVersion is the first version of the file format that may use an operator set.
var fileVersion = []struct{ opset, ir int64 }{{9, 4}, {10, 5}, {11, 6}, {12, 7}, {15, 8}, {19, 9}, {21, 10}, {23, 11}}

// RaiseIR raises the version of the file format to the first that may use opset.
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
