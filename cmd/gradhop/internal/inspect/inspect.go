// Package inspect is the command that says what is in an ONNX file, by what it can
// be differentiated, and what stands in the way.
package inspect

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
)

// Options are the flags of the command.
type Options struct {
	App    *app.App
	Path   string
	Of     string
	Wrt    []string
	Hash   bool
	Format string
}

// New returns the command.
func New(a *app.App) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "inspect MODEL.onnx",
		Short: "Show what is in an ONNX file and by what it can be differentiated",
		Long: `Print the inputs, outputs, operators and weights of a model, and for each of its
outputs and inputs whether gradhop grad can differentiate the one by the other: if
not, what stands in the way, node by node; if only once dimensions are bound to
numbers, which. Nothing is run.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Path = args[0]
			return Run(o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Of, "of", "", "the `output` to differentiate; without it, each")
	f.StringSliceVar(&o.Wrt, "wrt", nil, "the `inputs` or initialisers to differentiate by; without it, each input")
	f.BoolVar(&o.Hash, "hash", false, "compute the sha256 of files of weights too")
	app.Format(cmd, &o.Format, "text", "json")
	return cmd
}

// Report is what is in a file.
type Report struct {
	Gradhop    string            `json:"gradhop"`
	Model      Model             `json:"model"`
	IRVersion  int64             `json:"ir_version"`
	Producer   string            `json:"producer,omitempty"`
	Opsets     map[string]int64  `json:"opsets"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Inputs     []Value           `json:"inputs"`
	Outputs    []Value           `json:"outputs"`
	Parameters Parameters        `json:"parameters"`
	External   []External        `json:"external_data"`
	Functions  []Function        `json:"functions"`
	Operators  []Operator        `json:"operators"`
	Gradients  []Gradient        `json:"gradients"`
}

// Model names the file.
type Model struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Value is an input or output.
type Value struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Shape holds numbers, names, and null for what is not known; it is null itself
	// where not even the rank is.
	Shape []any `json:"shape"`
	// Default says that the input may be left out.
	Default bool `json:"default,omitempty"`
	text    string
}

// Parameters counts the constants.
type Parameters struct {
	Tensors int   `json:"tensors"`
	Count   int64 `json:"count"`
	Bytes   int64 `json:"bytes"`
}

// External is a file of weights beside the model.
type External struct {
	File    string `json:"file"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Function is a model-local operator.
type Function struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
	Nodes  int    `json:"nodes"`
}

// Operator is an operator that the model uses, in functions and subgraphs too.
type Operator struct {
	Op       string `json:"op"`
	Domain   string `json:"domain"`
	Count    int    `json:"count"`
	Gradient string `json:"gradient"`
}

// Run inspects and prints.
func Run(o *Options) error {
	f, err := modelfile.Open(o.Path)
	if err != nil {
		return err
	}
	r := describe(f, o.Hash)
	if r.Gradients, err = gradients(f.Model, o.Of, o.Wrt); err != nil {
		return app.Classify(err)
	}
	if o.Format == "text" {
		return r.text(o.App.Out)
	}
	return app.JSON(o.App.Out, r)
}

// describe fills in all but the gradients.
func describe(f *modelfile.File, hash bool) *Report {
	r := &Report{Gradhop: app.Version(), IRVersion: f.IRVersion, Opsets: map[string]int64{}, Metadata: f.Metadata,
		Model:    Model{Path: f.Path, SHA256: f.SHA256, Bytes: f.Bytes},
		External: []External{}, Functions: []Function{}}
	r.Producer = f.ProducerName
	if f.ProducerVersion != "" {
		r.Producer += " " + f.ProducerVersion
	}
	for domain, v := range f.Opsets {
		r.Opsets[domainName(domain)] = v
	}
	r.Inputs, r.Outputs = values(f.Graph, f.Graph.Inputs), values(f.Graph, f.Graph.Outputs)
	p := &r.Parameters
	p.Tensors, p.Count, p.Bytes = f.Parameters()
	for _, e := range f.External() {
		x := External{File: e.Location, Tensors: e.Tensors, Bytes: e.Bytes}
		switch {
		case e.Err != nil:
			x.Problem = e.Err.Error()
		case hash: // seconds for each GB
			if sum, _, err := modelfile.Hash(filepath.Join(f.Dir, filepath.FromSlash(e.Location))); err == nil {
				x.SHA256 = sum
			}
		}
		r.External = append(r.External, x)
	}
	for _, fn := range f.Functions {
		r.Functions = append(r.Functions, Function{Name: fn.Name, Domain: fn.Domain, Nodes: len(fn.Nodes)})
	}
	r.Operators = operators(f.Model)
	return r
}

func domainName(d string) string {
	if d == "" {
		return "ai.onnx"
	}
	return d
}

func values(g *onnx.Graph, list []*onnx.ValueInfo) []Value {
	out := make([]Value, len(list))
	for i, v := range list {
		out[i] = Value{Name: v.Name, Type: modelfile.TypeString(v.Type), text: modelfile.ShapeString(v.Type), Default: g.Initializer(v.Name) != nil}
		if dims, known := modelfile.Shape(v.Type); known {
			out[i].Shape = dims
		}
	}
	return out
}

// operators counts the operators of m, with what is known of their gradients.
func operators(m *onnx.Model) []Operator {
	known := map[[2]string]string{}
	for _, c := range grad.Coverage() {
		known[[2]string{c.Domain, c.Op}] = string(c.Gradient)
	}
	for _, f := range m.Functions {
		known[[2]string{f.Domain, f.Name}] = "function"
	}
	for _, op := range []string{"If"} {
		known[[2]string{"", op}] = "if constant"
	}
	count := map[[2]string]int{}
	var add func(nodes []*onnx.Node)
	add = func(nodes []*onnx.Node) {
		for _, n := range nodes {
			count[[2]string{n.Domain, n.Op}]++
			for _, a := range n.Attrs {
				for _, g := range append([]*onnx.Graph{a.G}, a.Graphs...) {
					if g != nil {
						add(g.Nodes)
					}
				}
			}
		}
	}
	add(m.Graph.Nodes)
	for _, f := range m.Functions {
		add(f.Nodes)
	}
	out := []Operator{}
	for _, k := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		g := known[k]
		if g == "" {
			g = string(grad.HasNone)
		}
		out = append(out, Operator{Op: k[1], Domain: domainName(k[0]), Count: count[k], Gradient: g})
	}
	return out
}
