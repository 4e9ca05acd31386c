package prompttune

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/models"
	task "github.com/gradhop/gradhop/tasks/prompttune"
	"github.com/gradhop/gradhop/tasks/prompttune/search"
)

// AddGoalFlags defines the flags about targets and models.
func AddGoalFlags(cmd *cobra.Command, g *task.Goal) {
	f := cmd.Flags()
	f.StringArrayVar(&g.Images, "images", nil, "target images: `FOLDER[:WEIGHT]` or one file; may be repeated, and a negative weight repels")
	f.StringArrayVar(&g.Texts, "target-text", nil, "target `TEXT[:WEIGHT]`; may be repeated")
	f.StringArrayVar(&g.Models, "model", nil, "built-in CLIP, folder, or owner/name[@revision][#variant] on the Hugging Face Hub, `NAME[:WEIGHT]`; may be repeated (default: clip-pictures)")
	f.StringArrayVar(&g.Guides, "guide", nil, "add WEIGHT times a term of a model of text, in nats, to U: the log-density of the words under a masked language model, as bert-books:0.01, that of the text under a causal one, or log p(LABEL | text) of a classifier, `MODEL[#LABEL]:WEIGHT`; may be repeated, and a negative weight repels")
	app.Int(f, &g.MaxPixels, "max-pixels", 0, 0, "largest `number` of pixels of an image (default: 67,108,864)")
	app.Int(f, &g.MaxBatch, "max-batch", 0, 0, "largest `number` of chains in one run of a model, to save memory (default: all)")
	app.CompleteModels(cmd, models.CLIPs())
}

// DeclareGoal declares the flags of AddGoalFlags and rules of others. resumed reports whether a run is
// continued, whose targets are remembered.
func DeclareGoal(a *app.App, cmd *cobra.Command, g *task.Goal, resumed func() bool, rules ...app.Rule) {
	a.Declare(cmd, append(rules,
		app.Always("images", "target-text", "model", "guide", "max-batch", app.RuntimeFlags),
		app.Idle("without --images", func() bool { return len(g.Images) == 0 && !resumed() }, "max-pixels"))...)
}

// AddFormFlags defines the flags about the form of prompts.
func AddFormFlags(cmd *cobra.Command, p *task.Form) {
	f := cmd.Flags()
	app.Int(f, &p.Length, "length", 8, 1, "`number` of blanks of the prompt, one token each")
	f.Lookup("length").Shorthand = "l"
	f.StringVar(&p.Template, "template", "", "fixed words with _ for each blank, as `TEXT`, instead of --length")
	p.Tokens = task.Choices()[0]
	app.Choice(cmd, &p.Tokens, "tokens", "tokens to propose: the words of the model's words.txt, if it has one; all whole words; or pieces of words too", task.Choices()...)
	f.StringArrayVar(&p.Allow, "allow", nil, "propose only these words, instead of --tokens: `WORDS` separated by commas, or a file with one word a line")
	f.StringArrayVar(&p.Block, "block", nil, "no result has these words: `WORDS` separated by commas, or a file with one word a line")
	f.BoolVar(&p.RoundTrip, "round-trip", false, "leave out prompts whose text encodes to other tokens")
}

// AddSearchFlags defines the flags about the search, but not the seed nor the options of
// samplers. Their defaults are the values that s has.
func AddSearchFlags(cmd *cobra.Command, s *task.Search) {
	f := cmd.Flags()
	app.SamplerFlag(cmd, &s.Sampler, "search method or sampler", search.Names()...)
	app.Int(f, &s.Chains, "chains", s.Chains, 1, "`number` of chains, all in one batch (default: 1 for search, gcg and mtm, 8 for other samplers)")
	app.Int(f, &s.Steps, "steps", s.Steps, 0, "`number` of steps after warm-up (default: 550 for search, 120 for gcg, 170 for mtm, 500 for other samplers)")
	app.Int(f, &s.Warmup, "warmup", s.Warmup, 0, "`number` of warm-up steps, in which the sampler is tuned")
	app.Int(f, &s.Start, "start", s.Start, -1, "`number` of search steps before the sampler, 200 of PEZ and then sweeps; the sampler starts at the best prompt found; -1 for none (default: 300 for mtm, none for others)")
	f.StringVar(&s.Beta, "beta", s.Beta, "inverse temperature: a number, a `SCHEDULE` in the step t as 0.1t, or a range over all steps as 1..1000 (1..1000@500: over the first 500); without it mtm uses 5000, other samplers 1..1000")
	app.Int(f, &s.ImageBatch, "image-batch", s.ImageBatch, 0, "`number` of targets that each step of a stochastic sampler draws (default: all, the exact mean)")
	app.Int(f, &s.Top, "top", s.Top, 1, "`number` of distinct prompts to keep")
	f.BoolVar(&s.Interrogate, "interrogate", false, "also rank single words, alone and in \"a photo of a _\", as a baseline")
	app.Int(f, &s.Patience, "patience", 0, 0, "stop after this `number` of steps without a better prompt (default: never)")
	app.Int(f, &s.Evaluations, "evaluations", 0, 0, "stop after this `number` of evaluations of the models, a gradient counted as two (default: never)")
	app.Duration(f, &s.TimeLimit, "time-limit", 0, "stop after this `time`, as 2m (default: never)")
}

// given checks flags that must not be zero, and sets those whose default depends on others.
func given(fs *pflag.FlagSet, p *task.Form, s *task.Search) error {
	if !fs.Changed("length") {
		p.Length = 0
	}
	if fs.Changed("steps") && s.Steps+s.Warmup == 0 {
		return app.Usagef("--steps 0 --warmup 0: want one of them above 0")
	}
	s.Fill()
	return nil
}
