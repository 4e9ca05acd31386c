package store

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/gradhop/gradhop/samplers"
)

// Summary is what summary.json says of a run. Of two runs with the same settings
// only Seconds differs.
type Summary struct {
	// Header holds settings, seed, versions, model and chains.
	Header
	// Finished says that all planned steps are made; StepsMade counts them, warm-up
	// included, and Draws what was kept of each chain.
	Finished  bool  `json:"finished"`
	StepsMade int64 `json:"steps_made"`
	Draws     int   `json:"draws"`
	// Acceptance is the mean acceptance probability and Hops the mean number of
	// changed sites, over all steps after warm-up; Final holds the recorded variables
	// that chains ended with, such as tuned parameters. One number a chain, in the order of
	// chain_ids.
	Acceptance []Number            `json:"acceptance"`
	Hops       []Number            `json:"hops"`
	Final      map[string][]Number `json:"final,omitempty"`
	// MeanAcceptance and MeanHops are over all chains.
	MeanAcceptance Number `json:"mean_acceptance"`
	MeanHops       Number `json:"mean_hops"`
	// Evaluations counts states evaluated, warm-up included.
	Evaluations samplers.Counts `json:"evaluations"`
	// Seconds is the time of all processes that wrote the run, added up.
	Seconds float64 `json:"seconds"`
	// Exports are other files of the draws, by their paths in the folder, with their
	// sha256 in hex.
	Exports map[string]string `json:"exports,omitempty"`
	// Diagnostics is the table of Diagnose; nil if it was not computed.
	Diagnostics *Table `json:"diagnostics,omitempty"`
}

// Summarize sums a run up. Errors are those of Diagnose.
func Summarize(r *Reader, o TableOptions) (*Summary, error) {
	table, err := Diagnose(r, o)
	if err != nil {
		return nil, err
	}
	s := Totals(r)
	s.Diagnostics = table
	return s, nil
}

// Totals is the summary of a run without diagnostics. It reads no draws, so that it takes
// the same time for a run of any length.
func Totals(r *Reader) *Summary {
	tally := r.Tally()
	s := &Summary{Header: r.header, Finished: r.Finished(), StepsMade: r.Step(), Draws: r.Draws(Sampling), Seconds: tally.Seconds}
	if p := r.Snapshot(); p != nil {
		s.Evaluations = p.Evaluations
		s.Final = map[string][]Number{}
		for _, name := range r.header.Vars {
			for _, x := range p.Var(name) {
				s.Final[name] = append(s.Final[name], Number(x))
			}
		}
	}
	kept := float64(tally.Kept)
	for c := range tally.Accept {
		s.Acceptance = append(s.Acceptance, Number(tally.Accept[c]/kept)) // NaN without a step
		s.Hops = append(s.Hops, Number(float64(tally.Hops[c])/kept))
	}
	s.MeanAcceptance, s.MeanHops = average(s.Acceptance), average(s.Hops)
	return s
}

func average(list []Number) Number {
	sum := Number(0)
	for _, n := range list {
		sum += n
	}
	if len(list) == 0 {
		return Number(math.NaN())
	}
	return sum / Number(len(list))
}

// Write writes summary.json to a run's folder.
func (s *Summary) Write(dir string) error {
	if s.Diagnostics != nil && s.Diagnostics.Warnings == nil {
		s.Diagnostics.Warnings = []string{}
	}
	return WriteSealed(dir, summaryName, s)
}

// WriteSummary sums up the run in dir and writes its summary.json. Call it after
// Writer.Close.
func WriteSummary(dir string, o TableOptions) (*Summary, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	s, err := Summarize(r, o)
	if err != nil {
		return nil, err
	}
	return s, s.Write(dir)
}

// ReadSummary reads summary.json, nil where there is none. Errors are *Error.
func ReadSummary(dir string) (*Summary, error) {
	s := &Summary{}
	if err := ReadSealed(dir, summaryName, s); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	return s, nil
}

// AddExport records the sha256 of a file in the folder dir of the run, for [Verify].
func (s *Summary) AddExport(dir, name string) error {
	sum, err := digest(filepath.Join(dir, name))
	if err != nil {
		return &Error{Path: filepath.Join(dir, name), Reason: "cannot be read", Err: err}
	}
	if s.Exports == nil {
		s.Exports = map[string]string{}
	}
	s.Exports[filepath.ToSlash(name)] = sum
	return nil
}
