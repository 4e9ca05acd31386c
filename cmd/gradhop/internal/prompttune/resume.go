package prompttune

import (
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/recall"
	"github.com/gradhop/gradhop/samplers"
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
	if err == nil && c == nil && len(o.Targets.Images)+len(o.Targets.Texts) == 0 {
		err = recall.Forgotten(o.Resume, "pictures or texts")
	}
	return err
}

// remember writes what the run was started with into its folder.
func (o *Options) remember(search *Finder) error {
	c := recall.Command{
		Name: commandName, Files: []string{tokensFile, targetsFile}, Joined: []string{scoresFile}, Outputs: []string{"report"},
		Results: "the best prompts of all chains, and writes them to " + resultsFile,
	}
	if o.flags == nil { // as in tests: nothing was typed
		return nil
	}
	if err := c.Remember(o.flags, o.Search.Seed); err != nil {
		return err
	}
	if search.Config.InverseTemperature != nil {
		// Steps that are made keep their temperature when the run is made longer.
		c.Flags["beta"] = []string{samplers.PinSchedule(o.Search.Beta, o.Search.steps())}
	}
	if o.inside() {
		c.Flags["report"], c.Inside = []string{filepath.Base(o.Report)}, []string{"report"}
	}
	return c.Write(o.folder())
}

// chains reads --chain-ids.
func (o *Options) chains() error {
	if o.ChainIDs == "" {
		return nil
	}
	ids, err := recall.ParseIDs(o.ChainIDs)
	if err != nil {
		return err
	}
	o.Search.ChainIDs, o.Search.Chains = ids, len(ids)
	return nil
}
