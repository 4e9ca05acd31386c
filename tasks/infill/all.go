package infill

import (
	"context"
	"errors"

	"github.com/gradhop/gradhop/samplers"
)

// Filled is what a search found for one of several texts.
type Filled struct {
	// Answer has the sentences; nil where Err is set.
	Answer *Answer
	// Err says why there is none; see [OfText].
	Err error
}

// OfText reports whether an error is one of a text: the settings, the model and the runtime are not at fault.
func OfText(err error) bool {
	var input *InputError
	var number *samplers.NonFiniteError
	return errors.As(err, &input) && input.OfText() || errors.As(err, &number)
}

// FillAll searches for the best fillings of texts, in their order. done, which may be nil, is called with the number of
// texts that are filled, from any goroutine. Equal texts are filled once. Errors are those of [Problem.Search], and of ctx even if
// there are some answers.
func (m *Model) FillAll(ctx context.Context, texts []string, words TextOptions, o SearchOptions, done func(n int)) ([]Filled, error) {
	list := make([]Filled, len(texts))
	for k, text := range texts {
		p, err := m.Text(text, words)
		if err == nil {
			list[k].Answer, err = p.Search(ctx, o)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && !OfText(err) {
			return nil, err
		}
		list[k].Err = err
		done(1)
	}
	return list, nil
}

// Settings returns the settings that the results of o depend on.
func (m *Model) Settings(o Options) Settings { return m.record(&o) }
