package prompttune

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// TestFluency compares U with the sum of the two models' own scores of the printed text, and
// the gradient, along changes, with that of the language model by its own vocabulary.
func TestFluency(t *testing.T) {
	ctx := t.Context()
	if err := ort.Init(ctx, ort.Options{}); err != nil {
		t.Fatal(err)
	}
	const weight = 0.03
	task, err := Open(ctx, &Goal{Texts: []string{"a dog"}, Fluency: weight, Runtime: ort.Options{Threads: 1}}, &Form{Template: "the _ and the _"}, &Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
	p, l := task.Problem, task.language
	if len(p.Tokens) < 500 {
		t.Fatalf("only %d words are proposed", len(p.Tokens))
	}
	x := energies.Batch{Space: p.Energy.Space(), Codes: []int32{3, 70, 411, 9}}
	u, g := make([]float64, 2), make([]float32, len(x.Codes)*len(p.Tokens))
	if err := p.Energy.LogDensityGrad(ctx, u, g, x); err != nil {
		t.Fatal(err)
	}
	plain, err := newProblem(p.members, p.Template, proposals{Allow: texts(p)})
	if err != nil {
		t.Fatal(err)
	}
	u0, g0 := make([]float64, 2), make([]float32, len(g))
	if err := plain.Energy.LogDensityGrad(ctx, u0, g0, energies.Batch{Space: plain.Energy.Space(), Codes: x.Codes}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plain.Tokens, p.Tokens) {
		t.Fatal("other tokens")
	}
	for c := range u {
		text := p.render(x.Chain(c))
		ids, err := l.encode(text)
		if err != nil {
			t.Fatal(err)
		}
		whole := slices.Concat(l.tok.Begin, ids, l.tok.End)
		blanks := []int{len(l.tok.Begin) + 1, len(l.tok.Begin) + 4}
		terms := make([]float64, 2)
		if err := l.mlm.Terms(ctx, terms, []mlm.Position{{IDs: whole, At: blanks[0]}, {IDs: whole, At: blanks[1]}}); err != nil {
			t.Fatal(err)
		}
		if want := u0[c] + weight*(terms[0]+terms[1]); math.Abs(u[c]-want) > 1e-5 {
			t.Errorf("%q: U = %v, want %v", text, u[c], want)
		}
		e, err := l.mlm.Infill(mlm.Text{IDs: whole, Blanks: blanks})
		if err != nil {
			t.Fatal(err)
		}
		values := e.Space().Values
		lu, lg := make([]float64, 1), make([]float32, 2*values)
		if err := e.LogDensityGrad(ctx, lu, lg, energies.Batch{Space: e.Space(), Codes: []int32{whole[blanks[0]], whole[blanks[1]]}}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			for _, v := range []int32{0, 17, 250, x.Chain(c)[i]} {
				id, err := l.encode(p.piece(v)[:len(p.piece(v))-len("</w>")])
				if err != nil || len(id) != 1 {
					t.Fatalf("%q: %v, %v", p.piece(v), id, err)
				}
				k := (c*2+i)*len(p.Tokens) + int(v)
				if want := float64(g0[k]) + weight*float64(lg[i*values+int(id[0])]); math.Abs(float64(g[k])-want) > 1e-5*max(1, math.Abs(want)) {
					t.Errorf("%q, blank %d, %q: gradient %v, want %v", text, i, p.piece(v), g[k], want)
				}
			}
		}
	}
	found := []Prompt{{Text: p.render(x.Chain(0)), U: u[0]}}
	if found[0].IDs, err = p.v.plain(found[0].Text); err != nil {
		t.Fatal(err)
	}
	if err := p.fluencies(ctx, found); err != nil || math.Abs(found[0].Fluency-(u[0]-u0[0])/weight) > 1e-3 {
		t.Errorf("fluency %v, %v", found[0].Fluency, err)
	}
}

// texts are the words that a problem proposes.
func texts(p *Problem) []string {
	list := make([]string, len(p.Tokens))
	for i, token := range p.Tokens {
		list[i] = p.v.Text(token)
	}
	return list
}

func TestFluencyErrors(t *testing.T) {
	src, err := models.Open(t.Context(), "", hub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loadLanguage(src, mlm.Options{Runtime: ort.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	task, err := Open(t.Context(), &Goal{Texts: []string{"a dog"}, Runtime: ort.Options{Threads: 1}}, &Form{Length: 2}, &Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
	var warned []string
	l.Warn = func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) }
	for text, want := range map[string]string{"a photo of a ☃ and _ _": "does not know 1 of 8 tokens", "☃ ☃ _ _": ""} {
		warned = nil
		task, err := Open(t.Context(), &Goal{Texts: []string{"a dog"}, Runtime: ort.Options{Threads: 1}}, &Form{Template: text}, &Events{})
		if err != nil {
			t.Fatal(err)
		}
		defer task.Close()
		switch err := task.Problem.addFluency(l, 1); {
		case want == "" && !is[*onnx.ArgumentError](err):
			t.Errorf("%s: %v", text, err)
		case want != "" && (err != nil || len(warned) != 1 || !strings.Contains(warned[0], want)):
			t.Errorf("%s: %v, warned %q", text, err, warned)
		}
	}
	for _, weight := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if err := task.Problem.addFluency(l, weight); !is[*onnx.ArgumentError](err) {
			t.Errorf("weight %g: %v", weight, err)
		}
	}
}
