package prompttune

import (
	task "github.com/gradhop/gradhop/tasks/prompttune"

	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/recall"
	"github.com/gradhop/gradhop/samplers/store"
)

// commandName is the name of the command.
const commandName = "prompt-tune"

// paths are flags whose value is a path, or may be.
var paths = recall.Paths{
	"images": recall.WeightedPath, "model": recall.WeightedPath, "allow": recall.Path, "block": recall.Path, "report": recall.Output,
}

// checkFolder refuses flags about the folder that contradict each other.
func (o *Options) checkFolder() error {
	switch {
	case o.Resume != "" && o.Out != "":
		return app.Usagef("--out and --resume are given; one of them is wanted")
	case o.Continue && o.Out == "":
		return app.Usagef("--continue goes with --out; --resume needs nothing else")
	}
	return nil
}

// recall sets what is not given to what the run that is to go on was started with. It
// does nothing for a new one.
func (o *Options) recall(flags *pflag.FlagSet) error {
	o.flags = flags
	if o.Continue && store.Begun(o.Out) {
		o.Resume, o.Out = o.Out, ""
	}
	if o.Resume == "" {
		return nil
	}
	c, err := recall.Resume(o.Resume, commandName, flags, paths)
	if err == nil && c == nil && len(o.Goal.Images)+len(o.Goal.Texts) == 0 {
		err = recall.Forgotten(o.Resume, "pictures or texts")
	}
	return err
}

// remember writes what the run was started with into its folder. beta is the schedule of
// the run, pinned so that steps that are made keep their temperature when it is made longer.
func (o *Options) remember(dir, beta string) error {
	if o.flags == nil { // as in tests: nothing was typed
		return nil
	}
	c := recall.Command{
		Name: commandName, Files: []string{task.TokensFile, task.TargetsFile}, Joined: []string{task.ScoresFile}, Outputs: []string{"report"},
		Results: "the best prompts of all chains, and writes them to " + task.ResultsFile,
	}
	if err := c.Remember(o.flags, o.Search.Seed); err != nil {
		return err
	}
	if beta != "" {
		c.Flags["beta"] = []string{beta}
	}
	if o.inside() {
		c.Flags["report"], c.Inside = []string{filepath.Base(o.Report)}, []string{"report"}
	}
	return c.Write(dir)
}
