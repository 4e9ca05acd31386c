package gradient

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/grad/gradcheck"
)

// document is what the command prints.
type document struct {
	Gradhop string `json:"gradhop"`
	Model   struct {
		Path   string `json:"path"`
		SHA256 string `json:"sha256"`
		Opset  int64  `json:"opset"`
	} `json:"model"`
	// Out is empty where nothing was written.
	Out             string           `json:"out,omitempty"`
	Opset           int64            `json:"opset"`
	Of              string           `json:"of"`
	Reduce          string           `json:"reduce"`
	Bind            map[string]int64 `json:"bind,omitempty"`
	Seed            string           `json:"seed_input,omitempty"`
	Gradients       []gradient       `json:"gradients"`
	StraightThrough []string         `json:"straight_through"`
	Check           *check           `json:"check,omitempty"`
}

type gradient struct {
	Name   string `json:"name"`
	Wrt    string `json:"wrt"`
	OneHot bool   `json:"one_hot"`
	Type   string `json:"type"`
	Shape  []any  `json:"shape"`
	text   string
}

// number is a float that JSON writes as null where it is not finite.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// check is the report of a check, with the names that JSON readers see.
type check struct {
	Passed    bool             `json:"passed"`
	Seed      uint64           `json:"seed"`
	Precision string           `json:"precision"`
	Why       string           `json:"why_not_float64,omitempty"`
	Tolerance number           `json:"tolerance"`
	Sizes     map[string]int64 `json:"sizes,omitempty"`
	Output    number           `json:"output_difference"`
	Inputs    []checked        `json:"inputs"`
}

type checked struct {
	Name     string  `json:"name"`
	Passed   bool    `json:"passed"`
	OneHot   bool    `json:"one_hot"`
	Shape    []int64 `json:"shape"`
	Compared int     `json:"compared"`
	SetAside int     `json:"set_aside"`
	Float32  number  `json:"float32_difference"`
	Worst    worst   `json:"worst"`
}

type worst struct {
	Absolute   number  `json:"absolute_error"`
	Relative   number  `json:"relative_error"`
	Index      []int64 `json:"index"` // null for a direction
	Gradient   number  `json:"gradient"`
	Difference number  `json:"difference"`
	Allowed    number  `json:"allowed"`
}

func describe(o *Options, f *modelfile.File, r *grad.Result) *document {
	d := &document{Gradhop: app.Version(), Out: o.Out, Opset: r.Model.Opset(), Of: r.Of, Reduce: o.Reduce, Bind: o.Bind, Seed: r.Seed,
		StraightThrough: []string{}}
	if d.Reduce == "" {
		d.Reduce = "rows"
	}
	d.Model.Path, d.Model.SHA256, d.Model.Opset = f.Path, f.SHA256, f.Opset()
	for i, name := range r.Grads {
		v := r.Model.Graph.Output(name)
		in := r.Model.Graph.Input(o.Wrt[i])
		g := gradient{Name: name, Wrt: o.Wrt[i], Type: modelfile.TypeString(v.Type), text: modelfile.ShapeString(v.Type), OneHot: in != nil && !in.Type.Elem.IsFloat()}
		if dims, known := modelfile.Shape(v.Type); known {
			g.Shape = dims
		}
		d.Gradients = append(d.Gradients, g)
	}
	for _, n := range r.StraightThrough {
		d.StraightThrough = append(d.StraightThrough, n.Label())
	}
	return d
}

func (d *document) addCheck(r *gradcheck.Report) {
	c := &check{Passed: r.Passed, Seed: r.Seed, Precision: r.Precision, Why: r.Why, Tolerance: number(r.Tolerance), Sizes: r.Sizes, Output: number(r.Output)}
	for _, in := range r.Inputs {
		w := in.Worst
		c.Inputs = append(c.Inputs, checked{Name: in.Name, Passed: in.Passed, OneHot: in.OneHot, Shape: in.Shape, Compared: in.Compared,
			SetAside: in.SetAside, Float32: number(in.Float32), Worst: worst{number(w.Absolute), number(w.Relative), w.Index,
				number(w.Gradient), number(w.Difference), number(w.Allowed)}})
	}
	d.Check = c
}

func (d *document) print(o *Options) error {
	if o.Format == "json" {
		return app.JSON(o.App.Out, d)
	}
	t := tabwriter.NewWriter(o.App.Out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", app.Plain(name), app.Plain(fmt.Sprintf(format, args...)))
	}
	row("model", "%s (sha256 %.12s)", d.Model.Path, d.Model.SHA256)
	if d.Out != "" {
		row("written", "%s", d.Out)
	}
	for _, g := range d.Gradients {
		what := map[string]string{"rows": "each row of ", "sum": "the sum of ", "none": d.Seed + " · "}[d.Reduce] + d.Of
		by := g.Wrt
		if g.OneHot {
			by = "the one-hot encoding of " + g.Wrt
		}
		row(g.Name, "%s %s: gradient of %s by %s", g.Type, g.text, what, by)
	}
	if d.Check != nil {
		d.Check.rows(row)
	}
	return t.Flush()
}

// rows prints the check.
func (c *check) rows(row func(name, format string, args ...any)) {
	verdict := "passed"
	if !c.Passed {
		verdict = "FAILED"
	}
	how := c.Precision
	if c.Why != "" {
		how += " (" + c.Why + ")"
	}
	row("check", "%s: finite differences in %s, tolerance %.2g, seed %d", verdict, how, float64(c.Tolerance), c.Seed)
	var sizes []string
	for _, k := range slices.Sorted(maps.Keys(c.Sizes)) {
		sizes = append(sizes, fmt.Sprintf("%s=%d", k, c.Sizes[k]))
	}
	if sizes != nil {
		row("  sizes", "%s", strings.Join(sizes, " "))
	}
	row("  output", "differs from the original's by %.2g, relative", float64(c.Output))
	for _, in := range c.Inputs {
		row("  by "+in.Name, "worst error %.2g of %.2g allowed, %.2g relative, %s", float64(in.Worst.Absolute), float64(in.Worst.Allowed),
			float64(in.Worst.Relative), in.place())
		judged := fmt.Sprintf("%d of %d comparisons judged", in.Compared-in.SetAside, in.Compared)
		if w := in.Worst; w.Gradient == 0 && w.Difference == 0 {
			judged += ", all of them zero on both sides"
		}
		if in.SetAside > 0 {
			judged += fmt.Sprintf("; %d set aside, at kinks or lost in rounding", in.SetAside)
		}
		if in.Float32 > 0 {
			judged += fmt.Sprintf("; in float32 the gradient differs by %.2g", float64(in.Float32))
		}
		row("", "%s", judged)
	}
}

// place says where the worst error is.
func (c checked) place() string {
	if c.Worst.Index == nil {
		return "along a direction"
	}
	return fmt.Sprintf("at %s%v", c.Name, c.Worst.Index)
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
