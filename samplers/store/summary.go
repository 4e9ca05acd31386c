package store

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/gradhop/gradhop/samplers"
)

// Summary is the content of summary.json. Runs with equal settings differ only in Seconds.
type Summary struct {
	// Header holds settings, seed, versions, model and chains.
	Header
	// Finished means that all planned steps were made. StepsMade counts them, warm-up included; Draws
	// is the number of saved draws per chain.
	Finished  bool  `json:"finished"`
	StepsMade int64 `json:"steps_made"`
	Draws     int   `json:"draws"`
	// Acceptance is the mean acceptance probability and Hops the mean number of changed sites over all
	// steps after warm-up; Final holds the last values of the recorded variables, such as tuned
	// parameters. Each is [chain], in the order of chain_ids.
	Acceptance []Number            `json:"acceptance"`
	Hops       []Number            `json:"hops"`
	Final      map[string][]Number `json:"final,omitempty"`
	// MeanAcceptance and MeanHops are averages over chains.
	MeanAcceptance Number `json:"mean_acceptance"`
	MeanHops       Number `json:"mean_hops"`
	// Evaluations counts evaluated states, warm-up included.
	Evaluations samplers.Counts `json:"evaluations"`
	// Seconds is the total time of all processes that wrote the run.
	Seconds float64 `json:"seconds"`
	// Exports maps exported files, by path in the folder, to their SHA-256 in hex.
	Exports map[string]string `json:"exports,omitempty"`
	// Diagnostics is the table of Diagnose; nil if it was not computed.
	Diagnostics *Table `json:"diagnostics,omitempty"`
}

// Summarize returns the summary of a run. Errors are those of Diagnose.
func Summarize(r *Reader, o TableOptions) (*Summary, error) {
	table, err := Diagnose(r, o)
	if err != nil {
		return nil, err
	}
	s := Totals(r)
	s.Diagnostics = table
	return s, nil
}

// Totals returns the summary of a run without diagnostics. It reads no draws, so its time does not
// depend on the length of the run.
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
		s.Acceptance = append(s.Acceptance, Number(tally.Accept[c]/kept)) // NaN without steps
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

// WriteSummary computes and writes the summary of the run in dir. Call it after Writer.Close.
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

// ReadSummary reads summary.json, nil if it does not exist. Errors are *Error.
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

// AddExport records the SHA-256 of a file in the run's folder dir, for [Verify].
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
