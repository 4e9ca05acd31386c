package prompttune

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// Files that Run adds to the folder of a run.
const (
	ResultsFile = "prompts.json" // the Document
	TokensFile  = "tokens.json"  // what the numbers in the draws stand for
	TargetsFile = "targets.json" // images and texts, to say what of them has changed
)

// keeper records draws in the folder of the run; without one it does nothing.
type keeper struct {
	o      *Config
	w      *store.Writer
	scores *scores
	before float64 // seconds that earlier processes took
}

// newKeeper refuses a folder that holds something, before long work.
func (o *Config) newKeeper() (*keeper, error) {
	k := &keeper{o: o}
	if o.folder() == "" {
		return k, nil
	}
	if o.Resume == "" {
		if err := store.Vacant(o.Out); err != nil {
			return nil, unwritable(o.Out, err)
		}
	}
	var err error
	k.scores, err = openScores(o.folder())
	o.Search.Scores = k.scores
	return k, err
}

// folder is that of the run, "" for none.
func (o *Config) folder() string {
	if o.Resume != "" {
		return o.Resume
	}
	return o.Out
}

// start makes the first evaluation and the folder after it, so that a run that cannot
// begin leaves nothing behind; or it takes up the run of a folder, with all that was made
// of its steps.
func (k *keeper) start(ctx context.Context, r *Task, search *Finder, d *Document) (*samplers.Loop, error) {
	// Before all that may fail: a step that was made is kept.
	search.Config.Observers = append([]samplers.Observer{k}, search.Config.Observers...)
	if k.o.folder() == "" {
		return search.Loop(ctx)
	}
	h, err := k.header(r, search, d)
	if err != nil {
		return nil, err
	}
	if k.o.Resume != "" {
		return k.resume(ctx, r, search, h)
	}
	loop, err := search.Loop(ctx)
	if err != nil {
		return nil, err
	}
	if k.w, err = store.Create(k.o.Out, h, store.Options{Every: k.o.Every}); err != nil {
		return nil, unwritable(k.o.Out, err)
	}
	if err := k.describe(r, search); err != nil {
		return nil, errors.Join(err, k.abandon())
	}
	return loop, nil
}

// resume takes up the run in the folder.
func (k *keeper) resume(ctx context.Context, r *Task, search *Finder, h store.Header) (*samplers.Loop, error) {
	w, from, err := store.Resume(k.o.Resume, h, store.Options{Every: k.o.Every})
	if err != nil {
		return nil, k.explain(err, r)
	}
	k.w, search.Config.Resume = w, from
	loop, err := k.takeUp(ctx, r, search)
	if err != nil {
		return nil, errors.Join(err, k.abandon())
	}
	return loop, nil
}

// takeUp shows the steps that were made to search, and the user where the run stands.
func (k *keeper) takeUp(ctx context.Context, r *Task, search *Finder) (*samplers.Loop, error) {
	stored, err := store.Open(k.o.Resume)
	if err != nil {
		return nil, err
	}
	k.before = stored.Tally().Seconds
	if err := search.Replay(ctx, stored); err != nil {
		return nil, err
	}
	k.scores.forget()
	loop, err := search.Loop(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.describe(r, search); err != nil {
		return nil, err
	}
	step, all, log := stored.Step(), k.o.Search.steps(), k.o.Events.log
	switch {
	case loop.Done():
		log("%s: all %d steps are made; a larger --steps makes more", k.o.Resume, step)
		return loop, nil
	case search.stopped == StoppedPatience:
		log("%s: no better prompt in the last %d of %d steps; a larger --patience goes on, and 0 does to the end", k.o.Resume, k.o.Search.Patience, step)
		return loop, nil
	}
	log("%s: going on after step %d of %d", k.o.Resume, step, all)
	// What an earlier process came to is not what the run comes to.
	if err := os.Remove(filepath.Join(k.o.Resume, ResultsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, store.CannotWrite(filepath.Join(k.o.Resume, ResultsFile), err)
	}
	return loop, nil
}

// describe writes what the run's numbers stand for, and then what it was begun with: who
// finds the second finds the first.
func (k *keeper) describe(r *Task, search *Finder) error {
	type token struct {
		ID    int32  `json:"id"`
		Piece string `json:"piece"`
	}
	list := make([]token, len(r.Problem.Tokens))
	for code, id := range r.Problem.Tokens {
		list[code] = token{id, r.Problem.Piece(int32(code))}
	}
	if err := k.write(TokensFile, list, ""); err != nil {
		return err
	}
	if err := k.write(TargetsFile, r.listTargets(), "  "); err != nil {
		return err
	}
	beta := ""
	if search.Config.InverseTemperature != nil {
		beta = samplers.PinSchedule(k.o.Search.beta(), k.o.Search.steps())
	}
	return k.o.save(beta)
}

// Observe implements samplers.Observer.
func (k *keeper) Observe(s *samplers.State, info *samplers.Info) error {
	if k.w == nil {
		return nil
	}
	return k.w.Observe(s, info)
}

// end closes the folder and writes results and diagnostics into it.
func (k *keeper) end(d *Document) error {
	if k.w == nil {
		return nil
	}
	if err := k.abandon(); err != nil {
		return err
	}
	if err := k.write(ResultsFile, d, "  "); err != nil {
		return err
	}
	r, err := store.Open(k.o.folder())
	if err != nil {
		return err
	}
	k.again(d.Stopped == StoppedTime || d.Stopped == StoppedEvaluations || d.Stopped == StoppedInterrupted)
	if r.Draws(store.Sampling) == 0 {
		return nil
	}
	s, err := store.Summarize(r, store.TableOptions{})
	if err != nil {
		return err
	}
	return s.Write(k.o.folder())
}

// abandon closes the folder of a run that failed. What was drawn stays.
func (k *keeper) abandon() error {
	if k.w == nil {
		return nil
	}
	return errors.Join(k.w.Close(), k.scores.close())
}

// fail closes the folder of a run that failed with err at a step.
func (k *keeper) fail(err error) error {
	closed := k.abandon()
	var value *samplers.NonFiniteError // which would come again
	k.again(closed == nil && !errors.As(err, &value))
	return closed
}

// again says how a run that is not complete goes on, where it can.
func (k *keeper) again(can bool) {
	if !can || k.w == nil {
		return
	}
	if r, err := store.Open(k.o.folder()); err == nil {
		k.o.Events.log("%s: stopped after step %d of %d; resume it to go on", k.o.folder(), r.Step(), k.o.Search.steps())
	}
}

// write writes a file into the folder, whole or not at all.
func (k *keeper) write(name string, v any, indent string) error {
	text, err := Encode(v, indent)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(k.o.folder(), name), text)
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

// unwritable says that a folder cannot be created, which is the caller's matter unless the
// disk is full.
func unwritable(dir string, err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok || errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return &onnx.ArgumentError{Package: "prompttune", Argument: "folder " + dir, Reason: "it cannot be written: " + failed.Err.Error(), Err: failed}
}
