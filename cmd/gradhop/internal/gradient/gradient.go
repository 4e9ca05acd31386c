// Package gradient is the command that adds gradients to an ONNX file.
package gradient

import (
	"context"
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
	Format  string
}

// New returns the command. runF replaces the run in tests of flags; nil means the real
// one.
func New(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "grad MODEL.onnx --of OUTPUT --wrt INPUT[,INPUT...] -o OUT.onnx",
		Short: "Add gradients to an ONNX file",
		Long: `Write a model that computes what MODEL.onnx does and, as further outputs called
grad/INPUT, the gradient of one of its outputs by some of its inputs or initialisers.
It consists of standard operators only, so that any runtime can run it.

The output must be one number a row (of shape [], [n] or [n, 1]): rows are taken not
to depend on each other, and each gradient is that of its row's number. For other
outputs, --reduce sum differentiates the sum of all elements, and --reduce none adds
an input seed/OUTPUT, a vector whose product with the Jacobian is returned.

The gradient by a floating-point input has its shape. Integer inputs must index a
table; their gradient is that at their one-hot encoding, with one more axis.

--weights says where weights go. keep leaves them where they are: in the model, or in
files beside it, to which OUT.onnx then refers; refer has OUT.onnx refer to the
weights inside MODEL.onnx as well, so that it is small; copy writes them to
OUT.onnx.data; embed puts everything into OUT.onnx, if that is below 2 GB. A model
that refers to files must lie beside them, or above.

--check compares the gradients with finite differences on random inputs. These are
taken in float64 where that can be, convolutions and some others being written by other
operators for it, to a relative error of 1e-5 (1e-4 where the gradient itself has to
stay in float32); otherwise in float32, to 2e-3. What the differences themselves are
uncertain by is allowed on top; those at a kink are set aside, and others taken. The
error is relative to the size of the derivative along the direction
that is tried. If the check fails the exit code is 1, and nothing is written.`,
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
	f.StringVar(&o.Reduce, "reduce", "", "sum or none: what to do with an output of several numbers a row")
	f.StringToInt64Var(&o.Bind, "bind", nil, "`sizes` for dimensions: NAME=8, or INPUT[AXIS]=8 for one without a name")
	f.StringVar(&o.Weights, "weights", "keep", "keep, refer, copy or embed: where the weights go")
	f.BoolVar(&o.Check, "check", false, "compare the gradients with finite differences on random inputs")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the random inputs of --check")
	f.StringVar(&o.Format, "format", "text", "text or json")
	return cmd
}

var reductions = map[string]grad.Reduce{"": grad.ReduceRows, "sum": grad.ReduceSum, "none": grad.ReduceNone}

// validate checks what can be known before the model is read.
func (o *Options) validate() error {
	if o.Format != "text" && o.Format != "json" {
		return app.Usagef("--format %q: want text or json", o.Format)
	}
	if _, ok := reductions[o.Reduce]; !ok {
		return app.Usagef("--reduce %q: want sum or none", o.Reduce)
	}
	if !slices.Contains([]string{"keep", "refer", "copy", "embed"}, o.Weights) {
		return app.Usagef("--weights %q: want keep, refer, copy or embed", o.Weights)
	}
	for i, w := range o.Wrt {
		if slices.Contains(o.Wrt[:i], w) {
			return app.Usagef("--wrt has %q twice", w)
		}
	}
	switch {
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
		report, err := gradcheck.Check(ctx, f.Model, ask, r, gradcheck.Options{Seed: o.Seed, Runtime: o.App.Runtime()})
		if err != nil {
			return err
		}
		doc.addCheck(report)
		if !report.Passed {
			doc.Out = ""
			if err := doc.print(o); err != nil {
				return err
			}
			return failure(report)
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
	for _, h := range []struct {
		is   func(error) bool
		text string
	}{
		{is[*grad.RowsError], "--reduce sum or --reduce none"},
		{is[*grad.ShapeError], "--bind NAME=SIZE"},
	} {
		if h.is(err) {
			return fmt.Errorf("%w (%s)", err, h.text)
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
