package infill

import (
	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
)

// completions tells the shell what flags may be set to.
func completions(cmd *cobra.Command) {
	values := map[string][]string{
		"sampler": samplers.Names(), "energy": {"pll", "pll-raw", "mrf"}, "mask-embedding": {"mask", "zero"},
		"gradient": {"exact", "direct"}, "init": {"search", "mask", "argmax", "random"}, "rank": {"logp", "per-word"}, "format": {"text", "json", "jsonl"},
	}
	for flag, list := range values {
		// The only error is a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return models.MLMs(), cobra.ShellCompDirectiveFilterDirs
	})
}
