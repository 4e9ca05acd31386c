package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// explain says what is wrong with a model, in the words of the command's flags.
func explain(err error) error {
	var (
		name   *grad.NameError
		inputs *neural.InputsError
		rows   *grad.RowsError
		ran    *neural.ShapeError
	)
	switch {
	case errors.As(err, &name) && name.Name == "":
		what := "takes the state"
		if name.What == "output" {
			what = "is the log-density"
		}
		return app.Usagef("no --%s: the model has the %ss %s; say which one %s", name.What, name.What, onnx.List(name.Have), what)
	case errors.As(err, &name):
		return app.Usagef("--%s: the model has no %s %q%s", name.What, name.What, name.Name, onnx.Nearest(name.Name, name.Have))
	case errors.As(err, &inputs):
		return app.Usagef("the model needs its other inputs too, %s: give each a --feed NAME=FILE", onnx.List(inputs.Names))
	case errors.As(err, &rows):
		return app.Usagef("output %q has shape %s; an energy is one number a chain", rows.Output, rows.Shape)
	case errors.As(err, &ran):
		return app.Usagef("%s came out with shape %v for %d chains; an energy is one number a chain", ran.Output, ran.Have, ran.Want)
	}
	return modelfile.Classify(err)
}

// explainStart says why chains cannot start. Nothing was written yet.
func (p *plan) explainStart(err error) error {
	var zero *samplers.ZeroProbabilityError
	var ran *ort.RunError
	var tensor *ort.TensorError
	var value *samplers.NonFiniteError
	switch {
	case errors.As(err, &value) && p.config.RejectNonFinite:
		return app.Usagef("chain %d would start at state %s, where the log-density is %g; name others with --init", value.Chain, p.write(value.State), value.Value)
	case errors.As(err, &zero):
		return app.Usagef("chain %d would start at a state of probability zero (U is -Inf), %s; name others with --init", zero.Chain, p.write(zero.State))
	case errors.As(err, &tensor):
		return &app.UsageError{Err: fmt.Errorf("the model does not take what --feed or --space gives it: %w", err)}
	case errors.As(err, &ran) && len(p.o.Feed) > 0:
		return &app.UsageError{Err: fmt.Errorf("the model fails on its first run, for which --feed may be the reason: %w", err)}
	}
	return p.explainNonFinite(err, "")
}

// explainNonFinite names the state at which the model gave NaN or +Inf: in dir, where
// there is one, it is written to a file that --init takes.
func (p *plan) explainNonFinite(err error, dir string) error {
	var e *samplers.NonFiniteError
	if !errors.As(err, &e) {
		return explain(err)
	}
	what := fmt.Sprintf("the log-density is %g", e.Value)
	if e.What == "gradient" {
		what = "the gradient is not finite"
	}
	where := "state " + p.write(e.State)
	if dir != "" {
		path := filepath.Join(dir, "nonfinite.json")
		text, _ := json.Marshal([][]int64{p.numbers(e.State)}) // lists of integers: no error
		if failed := os.WriteFile(path, append(text, '\n'), 0o644); failed != nil {
			return errors.Join(err, &store.WriteError{Path: path, Err: failed})
		}
		where += ", kept in " + path
	}
	return &nonFiniteError{fmt.Sprintf("chain %d, step %d: %s at %s (--on-nonfinite reject takes such states for impossible)", e.Chain, e.Step, what, where), err}
}

// nonFiniteError is a *samplers.NonFiniteError in the command's words.
type nonFiniteError struct {
	text string
	err  error
}

func (e *nonFiniteError) Error() string { return e.text }

func (e *nonFiniteError) Unwrap() error { return e.err }

// numbers returns what codes stand for, as draws and files have it.
func (p *plan) numbers(codes []int32) []int64 {
	s := p.energy.Space()
	out := make([]int64, len(codes))
	for i, v := range codes {
		out[i] = int64(s.Number(v))
	}
	return out
}

// write prints a state, shortened where it is long.
func (p *plan) write(codes []int32) string {
	const most = 32
	x := p.numbers(codes)
	if len(x) <= most {
		return fmt.Sprint(x)
	}
	return fmt.Sprintf("%s ... (%d sites)", strings.TrimSuffix(fmt.Sprint(x[:most]), "]"), len(x))
}
