// Package verify implements the command that checks the files of a run.
package verify

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "verify RUN",
		Short: "Check every file of a run for damage",
		Long: `Check every file of a run against its checksum: chunks of draws, metadata, checkpoints, and what
checksums.json lists: settings, summary, exports, and all files of a training (ebm train). Standard output lists the damaged files, with the chains
and steps of the draws in them. The exit code is 1 if there are any.
gradhop sample --resume RUN makes damaged draws again.`,
		Example: "  gradhop verify run/",
		Args:    app.Args("the folder of one run"),
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := store.Verify(args[0])
			if err != nil {
				return err
			}
			if format == "json" {
				err = app.JSON(a.Out, append([]store.Damage{}, found...))
			} else {
				for _, d := range found {
					if _, e := fmt.Fprintln(a.Out, app.Plain(d.String())); e != nil {
						err = e
					}
				}
			}
			if err == nil && len(found) > 0 {
				return &app.Error{Code: 1, Err: fmt.Errorf("%s: %d damaged file(s)", args[0], len(found))}
			}
			if err == nil {
				a.Logf("%s: intact", args[0])
			}
			return err
		},
	}
	app.Format(cmd, &format, "text", "json")
	a.Declare(cmd, app.Always("format"))
	return cmd
}
