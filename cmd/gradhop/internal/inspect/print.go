package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
)

// text prints the report as tables.
func (r *Report) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i, c := range cells {
			cells[i] = app.Plain(c)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	row("model", fmt.Sprintf("%s (sha256 %.12s, %s)", r.Model.Path, r.Model.SHA256, modelfile.Size(r.Model.Bytes)))
	var sets []string
	for _, d := range slices.Sorted(maps.Keys(r.Opsets)) {
		sets = append(sets, fmt.Sprintf("%s %d", d, r.Opsets[d]))
	}
	row("format", fmt.Sprintf("IR version %d; operator sets %s", r.IRVersion, strings.Join(sets, ", ")))
	if r.Producer != "" {
		row("producer", r.Producer)
	}
	row("parameters", fmt.Sprintf("%d in %d tensors, %s", r.Parameters.Count, r.Parameters.Tensors, modelfile.Size(r.Parameters.Bytes)))
	for _, e := range r.External {
		line := fmt.Sprintf("%s: %d tensors, %s", e.File, e.Tensors, modelfile.Size(e.Bytes))
		if e.SHA256 != "" {
			line += fmt.Sprintf(" (sha256 %.12s)", e.SHA256)
		}
		if e.Problem != "" {
			line = fmt.Sprintf("%s: CANNOT BE USED: %s", e.File, e.Problem)
		}
		row("weights in", line)
	}
	for _, f := range r.Functions {
		row("function", fmt.Sprintf("%s.%s, %d nodes", f.Domain, f.Name, f.Nodes))
	}
	for _, list := range []struct {
		name   string
		values []Value
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		for _, v := range list.values {
			text := v.Type + " " + v.text
			if v.Default {
				text += ", may be left out"
			}
			row(list.name, v.Name, text)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	row("OPERATOR", "COUNT", "GRADIENT")
	for _, o := range r.Operators {
		name := o.Op
		if o.Domain != "ai.onnx" {
			name = o.Domain + "." + o.Op
		}
		row(name, fmt.Sprint(o.Count), o.Gradient)
	}
	fmt.Fprintln(t)
	row("GRADIENT OF", "BY", "")
	for _, g := range r.Gradients {
		row(g.Of, g.Wrt, g.verdict())
		for _, n := range g.Nodes {
			row("", "", "  "+n)
		}
	}
	return t.Flush()
}

// verdict is one line about a gradient.
func (g Gradient) verdict() string {
	if !g.Differentiable {
		return "no: " + g.Obstacle
	}
	s := "yes"
	if g.OneHot {
		s += ", at the one-hot encoding of " + g.Values + " values"
	}
	if len(g.Bind) > 0 {
		s += ", with numbers for " + strings.Join(g.Bind, ", ") + " (--bind)"
	}
	if n := len(g.StraightThrough); n > 0 {
		s += fmt.Sprintf(", straight through the rounding of %d node(s)", n)
	}
	return s
}
