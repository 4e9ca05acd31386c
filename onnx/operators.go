package onnx

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// operatorTable is written by scripts/reference/operators.py from the standard's
// reference implementation.
//
//go:embed operators.tsv
var operatorTable string

// OperatorInfo describes an operator of the standard.
type OperatorInfo struct {
	// Domain is "" for the standard set, or "ai.onnx.ml".
	Domain, Op string
	// Since lists the operator sets that defined the operator or changed it, in
	// rising order.
	Since []int64
	// Deprecated lists those of Since in which it was deprecated.
	Deprecated []int64
	// Attributes are the types of its attributes, in the newest form that has them.
	Attributes map[string]AttrType
}

// At returns the operator set in which the form of the operator that set opset has
// was defined, and whether that form is deprecated; 0 where there was none yet.
func (o OperatorInfo) At(opset int64) (since int64, deprecated bool) {
	for _, v := range o.Since {
		if v <= opset {
			since = v
		}
	}
	return since, slices.Contains(o.Deprecated, since)
}

// Operators lists the operators of the standard, those of its own set first, by
// name. The caller may keep and change the list, but not what it holds.
func Operators() []OperatorInfo { return slices.Clone(operatorList().all) }

// Operator returns what the standard says of an operator, and whether it has one of
// that name.
func Operator(domain, op string) (OperatorInfo, bool) {
	l := operatorList()
	i, ok := l.index[[2]string{domain, op}]
	if !ok {
		return OperatorInfo{}, false
	}
	return l.all[i], true
}

// Known reports whether an operator set has an operator, deprecated ones included.
func Known(domain, op string, opset int64) bool {
	info, _ := Operator(domain, op)
	since, _ := info.At(opset)
	return since > 0
}

type operatorIndex struct {
	all   []OperatorInfo
	index map[[2]string]int
}

var operatorList = sync.OnceValue(func() operatorIndex {
	l := operatorIndex{index: map[[2]string]int{}}
	for line := range strings.Lines(operatorTable) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || f[0] == "domain" {
			continue
		}
		if len(f) != 5 {
			panic(fmt.Sprintf("onnx: operators.tsv has the line %q", line))
		}
		if f[0] == "ai.onnx" {
			f[0] = ""
		}
		l.index[[2]string{f[0], f[1]}] = len(l.all)
		l.all = append(l.all, OperatorInfo{Domain: f[0], Op: f[1], Since: versions(f[2]), Deprecated: versions(f[3]), Attributes: attributes(f[4])})
	}
	return l
})

// versions reads a list of numbers of the embedded table.
func versions(s string) []int64 {
	var out []int64
	for v := range strings.SplitSeq(s, ",") {
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("onnx: operators.tsv has the version %q", v))
		}
		out = append(out, n)
	}
	return out
}

// attributes reads a list of names and types of the embedded table.
func attributes(s string) map[string]AttrType {
	out := map[string]AttrType{}
	for v := range strings.SplitSeq(s, ",") {
		name, kind, ok := strings.Cut(v, ":")
		if !ok {
			continue
		}
		t := slices.Index(attrNames[:], kind)
		if t < 0 {
			panic(fmt.Sprintf("onnx: operators.tsv has the attribute %q", v))
		}
		out[name] = AttrType(t)
	}
	return out
}
