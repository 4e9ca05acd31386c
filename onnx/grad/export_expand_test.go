package grad

import "github.com/gradhop/gradhop/onnx/grad/internal/driver"

// ExpandAll is expandAll, for tests.
var ExpandAll = driver.ExpandAll

// ExpansionOf returns the expansion of an operator in a version of its domain's
// set, or nil.
func ExpansionOf(domain, op string, opset int64) driver.Expansion {
	if v := driver.Lookup(domain, op, opset); v != nil {
		return v.Expansion
	}
	return nil
}

// Otherwise reports whether an operator that has an expansion has a rule too, for forms that stay as they are.
func Otherwise(domain, op string, opset int64) bool {
	return driver.Lookup(domain, op, opset).Rule != nil
}

// HasExpansion reports whether an operator is written by others in any version.
func HasExpansion(domain, op string) bool {
	for _, v := range driver.Known[driver.OpKey{Domain: domain, Op: op}] {
		if v.Expansion != nil {
			return true
		}
	}
	return false
}
