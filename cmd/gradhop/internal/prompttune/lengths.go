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

// Models are the models, Sets and Texts the targets, as results name them.
func (r *Runner) Models() []ModelID { return r.models }

// Sets returns the sets of pictures.
func (r *Runner) Sets() []Set { return r.sets }

// Texts returns the texts that are targets.
func (r *Runner) Texts() []Text { return r.texts }
