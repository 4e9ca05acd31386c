// Package inspect is the command that says what is in an ONNX file, by what it can
// be differentiated, and what stands in the way.
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
		Short: "Show what is in an ONNX file and by what it can be differentiated",
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
	f.StringVar(&o.Of, "of", "", "the `output` to differentiate (default: each)")
	f.StringSliceVar(&o.Wrt, "wrt", nil, "the `inputs` or initialisers to differentiate by (default: each input)")
	f.BoolVar(&o.Hash, "hash", false, "compute the sha256 of files of weights too")
	app.Format(cmd, &format, "text", "json")
	return cmd
}
