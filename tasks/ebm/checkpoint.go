package ebm

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"os"
	"slices"
)

// checkpoint is what a restart needs. Draws of data and samplers follow from the seed
// and the number of updates.
type checkpoint struct {
	Version int
	Names   []string
	Weights [][]float32
	Moments moments
	Buffer  []int32
	Last    []int32
	// Identity is the sha256 of what determines the run; see Run.Start.
	Identity string
}

const checkpointVersion = 1

// Save writes a checkpoint. The file is complete or absent: it is written under another
// name, synced and renamed. identity is stored to recognise the run.
func (t *Trainer) Save(path, identity string) error {
	c := checkpoint{Version: checkpointVersion, Names: t.weights.Names, Moments: *t.moments, Buffer: t.buffer, Last: t.last, Identity: identity}
	for k := range t.weights.Names {
		c.Weights = append(c.Weights, t.weights.Data(k))
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(c); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:])
	return write(path, b.Bytes())
}

// Restore continues from a checkpoint of a run with the same identity. Errors are those
// of reading the file, or *Error.
func (t *Trainer) Restore(path, identity string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := len(data) - sha256.Size
	if at < 0 {
		return inputError("checkpoint %s is damaged: it is too short", path)
	}
	if sum := sha256.Sum256(data[:at]); !bytes.Equal(sum[:], data[at:]) {
		return inputError("checkpoint %s is damaged: its checksum does not match", path)
	}
	var c checkpoint
	if err := gob.NewDecoder(bytes.NewReader(data[:at])).Decode(&c); err != nil {
		return inputError("checkpoint %s: %v", path, err)
	}
	switch {
	case c.Version != checkpointVersion:
		return inputError("checkpoint %s has format %d; this program reads %d", path, c.Version, checkpointVersion)
	case c.Identity != identity:
		return inputError("checkpoint %s is of another run: its model, data or settings differ", path)
	case !slices.Equal(c.Names, t.weights.Names) || len(c.Buffer) != len(t.buffer):
		return inputError("checkpoint %s is of another model", path)
	}
	for k := range c.Names {
		copy(t.weights.Data(k), c.Weights[k])
	}
	*t.moments, t.buffer, t.last = c.Moments, c.Buffer, c.Last
	return nil
}
