// Package inspect implements the command that describes an ONNX file: its contents, which gradients
// exist, and the obstacles to others.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/tasks/modelfile"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	o, format := modelfile.InspectOptions{Version: app.Version()}, ""
	cmd := &cobra.Command{
		Use:   "inspect MODEL.onnx",
		Short: "Describe an ONNX file and the gradients it can have",
		Long: `Print the inputs, outputs, operators and weights of a model, and for each output and each
input whether gradhop grad can differentiate the output by the input. If not, print what
stands in the way, node by node; if dimensions must be bound to numbers first, print which.
Nothing is run.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := modelfile.Open(args[0])
			if err != nil {
				return app.Classify(err)
			}
			r, err := f.Inspect(o)
			if err != nil {
				return app.Classify(err)
			}
			if format == "json" {
				return app.JSON(a.Out, r)
			}
			return text(a.Out, r)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Of, "of", "", "the `output` to differentiate (default: each)")
	f.StringSliceVar(&o.Wrt, "wrt", nil, "the `inputs` or initialisers to differentiate with respect to (default: each input)")
	f.BoolVar(&o.Hash, "hash", false, "also compute the sha256 of weight files")
	app.Format(cmd, &format, "text", "json")
	a.Declare(cmd, app.Always("of", "wrt", "hash", "format"))
	return cmd
}
