package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/samplers"
)

// Tally is what a run adds up besides its draws, thinned or not, over all the
// processes that worked on it.
type Tally struct {
	// Kept is the number of steps after warm-up.
	Kept int64 `json:"kept"`
	// Accept sums acceptance probabilities and Hops changed sites over these
	// steps, [chain].
	Accept []float64 `json:"accept"`
	Hops   []int64   `json:"hops"`
	// Seconds is the time that Writers were open.
	Seconds float64 `json:"seconds"`
}

// checkpoint is what is needed to go on.
type checkpoint struct {
	Snapshot samplers.Snapshot `json:"snapshot"`
	Tally    Tally             `json:"tally"`
	// Earlier are the steps of the checkpoints that were kept so far.
	Earlier []int64 `json:"earlier,omitempty"`
}

// The file is this line, with the sha256 of the rest, and JSON.
const checkpointHead = "gradhop checkpoint 1 %x\n"

func (c *checkpoint) encode() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, checkpointHead, sha256.Sum256(body)), body...), nil
}

// readCheckpoint reads one of a run's checkpoints, nil where there is none. Errors are
// *Error: it is damaged, or not of this run.
func readCheckpoint(dir, name string, h Header) (*checkpoint, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Path: path, Reason: "cannot be read", Err: err}
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	if string(head)+"\n" != fmt.Sprintf(checkpointHead, sha256.Sum256(body)) {
		return nil, &Error{Path: path, Reason: "damaged: its sha256 is not that of its contents"}
	}
	var c checkpoint
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, &Error{Path: path, Reason: "damaged", Err: err}
	}
	n := len(h.ChainIDs)
	if len(c.Snapshot.ChainIDs) != n || len(c.Snapshot.Codes) != n*h.Space.Sites || len(c.Tally.Accept) != n || len(c.Tally.Hops) != n {
		return nil, &Error{Path: path, Reason: "not of this run: it has other chains"}
	}
	return &c, nil
}

// earlierCount is how many parts a run is divided into: the first checkpoint in each is
// kept, so that a run with damaged draws need not begin again.
const earlierCount = 8

// earlierPart is the part of a run that a step is in, from 0.
func (h Header) earlierPart(step int64) int64 {
	return min(earlierCount*step/int64(max(h.Warmup+h.Steps, 1)), earlierCount)
}

// earlierPath is the file of a checkpoint that is kept.
func earlierPath(step int64) string { return path.Join(earlierName, strconv.FormatInt(step, 10)) }

// earlierPoints lists the steps of the checkpoints that were kept, the last one first.
func earlierPoints(dir string) []int64 {
	entries, err := os.ReadDir(filepath.Join(dir, earlierName))
	if err != nil {
		return nil // none yet
	}
	var steps []int64
	for _, e := range entries {
		if step, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return steps
}
