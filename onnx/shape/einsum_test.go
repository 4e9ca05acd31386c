package shape_test

import (
	"strings"
	"testing"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/shape"
)

func init() {
	inferCases["Einsum"] = inferCase{since: 12, build: func(g *gen) {
		i, j, k := g.Dim(), g.Dim(), g.Dim()
		full := map[rune]shape.Dim{'i': i, 'j': j, 'k': k, 'A': k, '1': shape.D(1)}
		for _, c := range []struct{ equation, shapes string }{
			{"ij,jk->ik", "ij jk"}, {"ij,jk", "ij jk"}, {"ji", "ji"}, {"ii", "ii"}, {"iij->ji", "iij"}, {"ij->", "ij"},
			{"...ij,...jk->...ik", "kij kjk"}, {"...i,...i", "ji 1i"}, {"j...i->i...j", "jkki"}, {" i j , j k -> i k ", "ij jk"},
			{"ij,ij,k->ik", "ij 1j k"}, {"iA,Aj", "iA Aj"}, {"i,j,k->kji", "i j k"},
		} {
			var in []value
			for _, s := range strings.Fields(c.shapes) {
				var dims []shape.Dim
				for _, r := range s {
					dims = append(dims, full[r])
				}
				in = append(in, g.Float(dims, g.Signed))
			}
			g.Out(g.Op("Einsum", in, onnx.StringAttr("equation", c.equation)))
		}
	}}
}

// TestParseEinsum: labels in numpy's order, and equations that mean nothing.
func TestParseEinsum(t *testing.T) {
	e, err := shape.ParseEinsum("b...A,Ba", []int{4, 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Out, []int{-2, -1, 'A', 'B', 'a', 'b'}; len(got) != len(want) {
		t.Errorf("the result is %v", got)
	} else {
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("the result is %v, want %v", got, want)
			}
		}
	}
	for _, c := range []struct {
		equation string
		ranks    []int
		says     string
	}{
		{"ij,jk->ik", []int{2}, "2 operands, but the node has 1 inputs"},
		{"ij->ij", []int{3}, "operand 0 has rank 3"},
		{"...ijk->i", []int{2}, "operand 0 has rank 2"},
		{"i...->i", []int{2}, "no ellipsis"},
		{"ij->jj", []int{2}, `"the result names 'j' twice"`},
		{"ij->ik", []int{2}, `no operand has 'k'`},
		{"...i...", []int{2}, "two ellipses"},
		{"i.j", []int{3}, "is not a label"},
		{"i1->i", []int{2}, "is not a label"},
		{"", []int{1}, "operand 0 has rank 1"},
	} {
		_, err := shape.ParseEinsum(c.equation, c.ranks)
		if err == nil || !strings.Contains(err.Error(), strings.Trim(c.says, `"`)) {
			t.Errorf("%q of ranks %v: %v", c.equation, c.ranks, err)
		}
	}
	if _, err := shape.ParseEinsum("->", []int{0}); err != nil {
		t.Error(err)
	}
}
