package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

// readCheckpoint reads a run's checkpoint, nil where there is none yet. Errors
// are *FormatError: it is damaged, or not of this run.
func readCheckpoint(dir string, h Header) (*checkpoint, error) {
	path := filepath.Join(dir, checkpointName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FormatError{path, "cannot be read", err}
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	if string(head)+"\n" != fmt.Sprintf(checkpointHead, sha256.Sum256(body)) {
		return nil, &FormatError{Path: path, Reason: "damaged: its checksum is not that of its contents"}
	}
	var c checkpoint
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, &FormatError{path, "damaged", err}
	}
	n := len(h.ChainIDs)
	if len(c.Snapshot.ChainIDs) != n || len(c.Snapshot.Codes) != n*h.Space.Sites || len(c.Tally.Accept) != n || len(c.Tally.Hops) != n {
		return nil, &FormatError{Path: path, Reason: "not of this run: it has other chains"}
	}
	return &c, nil
}
