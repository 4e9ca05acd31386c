package prompttune

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Targets say what prompts are to be near to, and by which models.
type Targets struct {
	Images, Texts []string // with weights, as on the command line
	Models        []string // NAME or NAME:WEIGHT; none means the built-in one
	// NoImageCache encodes all pictures afresh and keeps nothing.
	NoImageCache bool
	MaxPixels    int64
	MaxBatch     int
}

// AddFlags defines a flag for each field.
func (t *Targets) AddFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&t.Images, "images", nil, "`FOLDER[:WEIGHT]` of pictures, or one picture; may be repeated, and a weight may be negative")
	fs.StringArrayVar(&t.Texts, "target-text", nil, "`TEXT[:WEIGHT]` whose meaning prompts are to have; may be repeated")
	fs.StringArrayVar(&t.Models, "model", nil, "built-in CLIP, folder, or owner/name[@revision][#variant] on the Hugging Face Hub, `NAME[:WEIGHT]`; may be repeated (default: clip-pictures)")
	fs.BoolVar(&t.NoImageCache, "no-image-cache", false, "encode all pictures afresh, and keep none of their vectors (else the last used 256 MiB are kept, in vectors/ of $GRADHOP_CACHE or of gradhop/ in the user's cache folder)")
	fs.Int64Var(&t.MaxPixels, "max-pixels", 0, "largest `number` of pixels that a picture may have (default: 67,108,864)")
	fs.IntVar(&t.MaxBatch, "max-batch", 0, "largest `number` of chains that a model runs on at once, where memory is short (default: all)")
}

// parse reads the flags.
func (t *Targets) parse() (sets []task.ImageSet, texts []task.TextTarget, err error) {
	for _, arg := range t.Images {
		s, err := task.ParseImageSet(arg)
		if err != nil {
			return nil, nil, err
		}
		sets = append(sets, s)
	}
	for _, arg := range t.Texts {
		x, err := task.ParseTextTarget(arg)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, x)
	}
	if t.MaxPixels < 0 {
		return nil, nil, app.Usagef("--max-pixels %d: want 1 or more", t.MaxPixels)
	}
	if len(sets)+len(texts) == 0 {
		return nil, nil, app.Usagef("no target: name a folder of pictures with --images, or a text with --target-text")
	}
	for _, s := range sets {
		if s.Weight > 0 {
			return sets, texts, nil
		}
	}
	for _, x := range texts {
		if x.Weight > 0 {
			return sets, texts, nil
		}
	}
	return nil, nil, app.Usagef("every weight is negative; at least one of --images and --target-text must be positive")
}

// models reads --model. The weights come out positive, with sum 1.
func (t *Targets) models() (names []string, weights []float64, err error) {
	sum := 0.0
	for _, arg := range t.Models {
		name, w := arg, 1.0
		if i := strings.LastIndexByte(arg, ':'); i >= 0 {
			if x, err := strconv.ParseFloat(arg[i+1:], 64); err == nil && !exists(arg) {
				name, w = arg[:i], x
			}
		}
		if !(w > 0) || math.IsInf(w, 1) {
			return nil, nil, app.Usagef("--model %s: the weight of a model is a number above zero", arg)
		}
		names, weights, sum = append(names, name), append(weights, w), sum+w
	}
	if len(names) == 0 {
		return []string{""}, []float64{1}, nil
	}
	for i := range weights {
		weights[i] /= sum
	}
	return names, weights, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Prompt says what prompts look like.
type Prompt struct {
	Length                   int
	LengthSet                bool // it was given
	Prefix, Suffix, Template string
	Tokens                   string // a task.Choice
	Allow, Block             []string
	RoundTrip                bool
}

// DefaultPrompt returns the settings that flags start from.
func DefaultPrompt() Prompt { return Prompt{Length: 8, Tokens: task.ListedWords.String()} }

// AddFlags defines a flag for each field.
func (p *Prompt) AddFlags(fs *pflag.FlagSet) {
	fs.IntVarP(&p.Length, "length", "l", p.Length, "`number` of blanks of the prompt, one token each")
	fs.StringVar(&p.Prefix, "prefix", "", "fixed `text` before the blanks")
	fs.StringVar(&p.Suffix, "suffix", "", "fixed `text` after them")
	fs.StringVar(&p.Template, "template", "", "fixed words with blanks, in place of the three: `TEXT` with _ for each blank")
	fs.StringVar(&p.Tokens, "tokens", p.Tokens, "what is proposed: listed (the words of the model's words.txt, where it has one), words (all tokens that are words of their own) or all (pieces of words too)")
	fs.StringArrayVar(&p.Allow, "allow", nil, "propose these words only, in place of --tokens: `WORDS` with commas between them, or a file with a word a line")
	fs.StringArrayVar(&p.Block, "block", nil, "keep these words out of all results: `WORDS` with commas between them, or a file with a word a line")
	fs.BoolVar(&p.RoundTrip, "round-trip", false, "leave out prompts that do not encode to the tokens they were made from")
}

// template reads the flags about the prompt's form.
func (p *Prompt) template() (*task.Template, error) {
	if p.Template == "" {
		return task.Blanks(p.Prefix, p.Length, p.Suffix)
	}
	if p.Prefix != "" || p.Suffix != "" || p.LengthSet {
		return nil, app.Usagef("--template says all about the prompt: leave out --length, --prefix and --suffix")
	}
	return task.ParseTemplate(p.Template)
}

// proposals reads the flags about its words.
func (p *Prompt) proposals() (task.Proposals, error) {
	from, ok := task.ParseChoice(p.Tokens)
	if !ok {
		return task.Proposals{}, app.Usagef("--tokens %q: want listed, words or all", p.Tokens)
	}
	out := task.Proposals{From: from}
	for _, l := range []struct {
		flags []string
		words *[]string
	}{{p.Allow, &out.Allow}, {p.Block, &out.Block}} {
		for _, list := range l.flags {
			words, err := task.ReadWords(list)
			if err != nil {
				return task.Proposals{}, err
			}
			*l.words = append(*l.words, words...)
		}
	}
	return out, nil
}

// Search says how prompts are looked for.
type Search struct {
	Sampler       string
	Options       samplers.Settings
	Chains        int
	ChainIDs      []int64 // the chains' numbers in a larger run; nil for 0..Chains-1
	Steps, Warmup int
	Beta          string // schedule of the inverse temperature
	BetaSet       bool   // it was given
	ImageBatch    int    // 0 for the exact mean
	Seed          uint64
	Top           int
	Patience      int // 0 for no end to it
	TimeLimit     time.Duration
	Scores        task.Scores // cosines from one process to the next; nil keeps none
}

// steps is the number of all steps, warm-up included.
func (s *Search) steps() int { return s.Warmup + s.Steps }

// DefaultSearch returns the settings that flags start from.
func DefaultSearch() Search {
	return Search{Sampler: "gwg", Options: samplers.Settings{}, Chains: 8, Steps: 500, Beta: "1..1000", Top: 5}
}

// AddFlags defines a flag for each field but Seed and Options, which come elsewhere.
func (s *Search) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Sampler, "sampler", s.Sampler, "sampler `name`, see gradhop samplers")
	fs.IntVar(&s.Chains, "chains", s.Chains, "`number` of chains, all in one batch")
	fs.IntVar(&s.Steps, "steps", s.Steps, "`number` of steps after warm-up")
	fs.IntVar(&s.Warmup, "warmup", s.Warmup, "`number` of steps before, in which step sizes are adapted")
	fs.StringVar(&s.Beta, "beta", s.Beta, "inverse temperature: a number, a `SCHEDULE` in the step t as 0.1t, or a range over all steps as 1..1000, over the first 500 as 1..1000@500")
	fs.IntVar(&s.ImageBatch, "image-batch", s.ImageBatch, "pictures and texts that each step of a stochastic sampler draws, a `number` (default: all, the exact mean)")
	fs.IntVar(&s.Top, "top", s.Top, "`number` of distinct prompts to keep, the best of all that were visited")
	fs.IntVar(&s.Patience, "patience", 0, "stop after this `number` of steps without a better prompt (default: never)")
	fs.DurationVar(&s.TimeLimit, "time-limit", 0, "stop the steps after this `time`, as 2m (default: never)")
}

// check returns an error for settings that no model can make right.
func (s *Search) check() error {
	bad := func(flag string, value any, want string) error {
		return app.Usagef("--%s %s: want %s", flag, fmt.Sprint(value), want)
	}
	switch {
	case s.Chains < 1:
		return bad("chains", s.Chains, "1 or more")
	case s.Steps < 0 || s.Warmup < 0 || s.Steps+s.Warmup == 0:
		return app.Usagef("--steps %d --warmup %d: want 0 or more each, and not both 0", s.Steps, s.Warmup)
	case s.Top < 1:
		return bad("top", s.Top, "1 or more")
	case s.Patience < 0:
		return bad("patience", s.Patience, "0 or more")
	case s.TimeLimit < 0:
		return bad("time-limit", s.TimeLimit, "a time above zero")
	case s.ImageBatch < 0:
		return bad("image-batch", s.ImageBatch, "0 or more")
	case s.Patience > 0 && s.ChainIDs != nil:
		return app.Usagef("--patience looks at all chains, so --chain-ids cannot run some of them")
	}
	return nil
}
