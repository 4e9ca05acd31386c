package prompttune

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/tasks/internal/run"
)

// Files that Run adds to the folder of a run.
const (
	ResultsFile = "prompts.json" // the Document
	tokensFile  = "tokens.json"  // what the numbers in the draws stand for
)

// folder is that of the run, "" for none.
func (o *Config) folder() string {
	if o.Resume != "" {
		return o.Resume
	}
	return o.Out
}

// begin makes the first evaluation and the folder after it, or takes up the run of a folder, with all
// that was made of its steps.
func (o *Config) begin(ctx context.Context, r *Task, search *Finder, d *Document) (*run.Run, error) {
	search.ctx = ctx
	p := run.Plan{Config: search.Config}
	if p.Dir = o.folder(); p.Dir == "" {
		return run.Begin(ctx, p)
	}
	var err error
	if p.Header, err = o.header(r, search, d); err != nil {
		return nil, err
	}
	p.Resume, p.Command, p.Every, p.Results = o.Resume != "", command, o.Every, []string{ResultsFile}
	p.Log = func(line string) { o.Events.log("%s", line) }
	if p.Options, err = o.recorded(search); err != nil {
		return nil, err
	}
	if p.Files, err = r.describe(); err != nil {
		return nil, err
	}
	p.Replay = func(from *store.Reader) error { return search.replay(ctx, from) }
	begun, err := run.Begin(ctx, p)
	if err == nil && search.stopped == StoppedPatience && !begun.Loop.Done() {
		o.Events.log("%s: no better prompt in the last %d steps; a larger patience goes on, and 0 does to the end", p.Dir, o.Search.Patience)
	}
	return begun, explain(err)
}

// describe returns what the run's numbers stand for.
func (r *Task) describe() (map[string]any, error) {
	type token struct {
		ID    int32  `json:"id"`
		Piece string `json:"piece"`
	}
	list := make([]token, len(r.Problem.Tokens))
	for code, id := range r.Problem.Tokens {
		list[code] = token{id, r.Problem.piece(int32(code))}
	}
	text, err := Encode(list, "")
	return map[string]any{tokensFile: text}, err
}

// Encode returns v as JSON with one final newline. It does not escape HTML.
func Encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}
