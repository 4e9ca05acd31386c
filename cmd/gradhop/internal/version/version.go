// Package version implements the command that prints the versions of the program's components.
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/internal/library"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "gradhop %s\n%s %s/%s, onnxruntime %s or later (%s is fetched)\n",
				app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, library.Need, library.Pinned)
			return err
		},
	}
}
