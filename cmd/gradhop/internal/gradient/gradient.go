// Package gradient is the command that adds gradients to an ONNX file.
package gradient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/grad/gradcheck"
)

// Options are the flags of the command.
type Options struct {
	App     *app.App
	Path    string
	Of      string
	Wrt     []string
	Out     string
	Reduce  string
	Bind    map[string]int64
	Weights string
	Check   bool
	Seed    uint64
	Feed    string
	Format  string
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "grad MODEL.onnx --of OUTPUT --wrt INPUT[,INPUT...] -o OUT.onnx",
		Short: "Add gradients to an ONNX file",
		Long: `Write a model that returns the outputs of MODEL.onnx and, as further outputs named
grad/INPUT, the gradient of one output with respect to some inputs or initialisers. The
result uses standard ONNX operators only, so any runtime can run it.

The output must hold one number a row (shape [], [n] or [n, 1]), and the rows must not
depend on each other: each row of the gradient is that of its own number. For other
outputs, --reduce sum differentiates the sum of all elements, and --reduce none adds an
input seed/OUTPUT and returns the product of this vector with the Jacobian.

The gradient with respect to a floating-point input has the shape of the input. Integer
inputs must index a table; their gradient is taken with respect to the one-hot encoding
and has one more axis.

--weights says where the weights are stored. keep: where they are now, in the model or in
files beside it. refer: OUT.onnx refers to the weights inside MODEL.onnx. copy: they are
written to OUT.onnx.data. embed: they are written into OUT.onnx, which must stay below
2 GB. A model that refers to files must be in the same folder, or above it.

--check compares the gradients with finite differences at random inputs, or at those of
--feed. The differences are taken in float64, and a relative error of 1e-5 is allowed
(1e-4 if the gradient can only be computed in float32); without float64 they are taken in
float32 and 2e-3 is allowed. The uncertainty of the differences is added. Differences at
a kink are not counted. The exit code is 1 if a gradient is wrong, and 2 if it cannot be
checked; in both cases nothing is written.`,
		Example: `  gradhop grad energy.onnx --of energy --wrt image -o energy.grad.onnx
  gradhop grad bert.onnx --of logits --wrt input_ids --reduce none --check`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Of, "of", "", "the `output` to differentiate; it may be left out where there is one")
	f.StringSliceVar(&o.Wrt, "wrt", nil, "the `inputs` or initialisers to differentiate by")
	f.StringVarP(&o.Out, "out", "o", "", "write the model to this `file`; only --check can do without")
	app.Choice(cmd, &o.Reduce, "reduce", "for an output of several numbers a row: differentiate their sum, or take a vector and return its product with the Jacobian", "sum", "none")
	f.StringToInt64Var(&o.Bind, "bind", nil, "`sizes` for dimensions: NAME=8, or INPUT[AXIS]=8 for one without a name")
	o.Weights = "keep"
	app.Choice(cmd, &o.Weights, "weights", "where the weights go", "keep", "refer", "copy", "embed")
	f.BoolVar(&o.Check, "check", false, "compare the gradients with finite differences on random inputs")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the random inputs of --check")
	f.StringVar(&o.Feed, "feed", "", "take the inputs of --check from this `FILE.npz`, by name")
	app.Format(cmd, &o.Format, "text", "json")
	return cmd
}

var reductions = map[string]grad.Reduce{"": grad.ReduceRows, "sum": grad.ReduceSum, "none": grad.ReduceNone}

// validate checks what can be known before the model is read.
func (o *Options) validate() error {
	for i, w := range o.Wrt {
		if slices.Contains(o.Wrt[:i], w) {
			return app.Usagef("--wrt has %q twice", w)
		}
	}
	switch {
	case o.Feed != "" && !o.Check:
		return app.Usagef("--feed is for --check")
	case o.Out == "" && !o.Check:
		return app.Usagef("name the file to write with -o, or ask for --check")
	case o.Out == "":
		return nil
	case modelfile.Same(o.Out, o.Path):
		return app.Usagef("-o %s is the model itself", o.Out)
	}
	// A folder that cannot be written is found now, not after the work is done.
	w, err := o.App.Create(o.Out)
	if err != nil {
		return err
	}
	w.Discard()
	return nil
}

// Run adds the gradients, checks them if that is asked for, and writes the model.
func Run(ctx context.Context, o *Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	f, err := modelfile.Open(o.Path)
	if err != nil {
		return err
	}
	for _, e := range f.External() {
		if e.Err != nil {
			return app.Classify(e.Err)
		}
		if o.Out != "" && modelfile.Same(o.Out, filepath.Join(f.Dir, filepath.FromSlash(e.Location))) {
			return app.Usagef("-o %s holds weights of the model", o.Out)
		}
	}
	ask := grad.Options{Of: o.Of, Wrt: o.Wrt, Reduce: reductions[o.Reduce], Bind: o.Bind}
	r, err := grad.Append(f.Model, ask)
	if err != nil {
		return app.Classify(hint(err))
	}
	o.note(f, r)
	doc := describe(o, f, r)
	if o.Check {
		c := gradcheck.Options{Seed: o.Seed, Runtime: o.App.Runtime()}
		if o.Feed != "" {
			if c.Feed, err = gradcheck.ReadFeed(o.Feed); err != nil {
				return app.Usagef("%v", err)
			}
		}
		report, err := gradcheck.Check(ctx, f.Model, ask, r, c)
		if err != nil {
			return err
		}
		doc.addCheck(report)
		if !report.Passed {
			doc.Out = ""
			if err := doc.print(o); err != nil {
				return err
			}
			return report.Err()
		}
	}
	if o.Out != "" {
		if err := save(o, f, r); err != nil {
			return err
		}
	}
	return doc.print(o)
}

// hint adds the flag that helps to errors of a package that knows nothing of flags.
func hint(err error) error {
	var none *grad.NotDifferentiableError
	if errors.As(err, &none) {
		switch none.Obstacle {
		case grad.NotRows:
			return fmt.Errorf("%w (--reduce sum or --reduce none)", err)
		case grad.UnknownShape:
			return fmt.Errorf("%w (--bind NAME=SIZE)", err)
		}
	}
	return err
}

// note tells people what they may not expect.
func (o *Options) note(f *modelfile.File, r *grad.Result) {
	if was, is := f.Opset(), r.Model.Opset(); was != is {
		o.App.Logf("the model is of operator set %d; the result is of %d", was, is)
	}
	if n := len(f.Functions); n > 0 {
		o.App.Logf("%d functions of the model are written out", n)
	}
	domains := map[string]bool{} // that nodes are of; files declare others too
	for _, n := range f.Graph.Nodes {
		domains[n.Domain] = n.Domain != "" && !slices.ContainsFunc(f.Functions, func(fn *onnx.Function) bool { return fn.Domain == n.Domain })
	}
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		if _, ok := r.Model.Opsets[d]; !ok && domains[d] {
			o.App.Logf("operators of %s are replaced by standard ones", app.Plain(d))
		}
	}
	if nodes := r.StraightThrough; len(nodes) > 0 {
		const most = 4
		names := make([]string, min(len(nodes), most))
		for i := range names {
			names[i] = app.Plain(nodes[i].Label())
		}
		if len(nodes) > most {
			names = append(names, fmt.Sprintf("%d more", len(nodes)-most))
		}
		o.App.Logf("the gradient is passed straight through the rounding of %d node(s): %s", len(nodes), strings.Join(names, "; "))
	}
}
