package prompttune

import task "github.com/gradhop/gradhop/tasks/prompttune"

// With returns the problem of another prompt on the same models and targets, which are
// not encoded again. Errors are those of Open about the prompt.
func (r *Runner) With(p *Prompt) (*task.Problem, error) {
	template, err := p.template()
	if err != nil {
		return nil, err
	}
	return task.NewProblem(r.members, template, r.words)
}

// From says where the tokens of a problem come from: the word lists of the models
// ("listed"), the vocabulary ("words", "all") or the command line ("allow").
func (r *Runner) From(p *task.Problem) string {
	if r.words.Allow != nil {
		return "allow"
	}
	return p.From.String()
}

// Models are the models, Sets and Texts the targets, as results name them.
func (r *Runner) Models() []ModelID { return r.models }

// Sets returns the sets of pictures.
func (r *Runner) Sets() []Set { return r.sets }

// Texts returns the texts that are targets.
func (r *Runner) Texts() []Text { return r.texts }
