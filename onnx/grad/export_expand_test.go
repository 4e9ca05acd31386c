package grad

// ExpandAll is expandAll, for tests.
var ExpandAll = expandAll

// ExpansionOf returns the expansion of an operator in a version of its domain's
// set, or nil.
func ExpansionOf(domain, op string, opset int64) Expansion {
	if v := lookup(domain, op, opset); v != nil {
		return v.expansion
	}
	return nil
}

// HasExpansion reports whether an operator is written by others in any version.
func HasExpansion(domain, op string) bool {
	for _, v := range known[opKey{domain, op}] {
		if v.expansion != nil {
			return true
		}
	}
	return false
}
