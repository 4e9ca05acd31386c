package onnx_test

import (
	"slices"
	"testing"

	"github.com/gradhop/gradhop/onnx"
)

func TestOperatorAt(t *testing.T) {
	tests := []struct {
		domain, op string
		opset      int64
		want       bool
	}{
		{"", "Relu", 7, true}, {"", "Attention", 22, false}, {"", "Attention", 23, true}, {"", "Scatter", 8, false},
		{"", "Scatter", 18, true}, {"", "relu", 18, false}, {"ai.onnx", "Relu", 18, false}, {"ai.onnx.ml", "Scaler", 1, true},
		{"com.microsoft", "Gelu", 1, false}, {"", "Relu", 0, false},
	}
	for _, c := range tests {
		info, _ := onnx.Operator(c.domain, c.op)
		if since, _ := info.At(c.opset); (since > 0) != c.want {
			t.Errorf("%q %q is in set %d since %d", c.domain, c.op, c.opset, since)
		}
	}
}

// TestOperators: the table is sorted, complete enough and says what is deprecated.
func TestOperators(t *testing.T) {
	all := onnx.Operators()
	if len(all) < 200 || all[0].Op != "Abs" || all[0].Domain != "" {
		t.Fatalf("%d operators, the first %v", len(all), all[0])
	}
	for _, o := range all {
		if len(o.Since) == 0 || !slices.IsSorted(o.Since) || o.Since[0] < 1 {
			t.Errorf("%v", o)
		}
	}
	up, ok := onnx.Operator("", "Upsample")
	if since, gone := up.At(9); !ok || since != 9 || gone {
		t.Errorf("Upsample in set 9: %d, %v", since, gone)
	}
	if since, gone := up.At(18); since != 10 || !gone {
		t.Errorf("Upsample in set 18: %d, %v", since, gone)
	}
	if _, ok := onnx.Operator("", "Nothing"); ok {
		t.Error("Nothing is an operator")
	}
}
