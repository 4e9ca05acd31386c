package prompttune

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/internal/checksums"
	"github.com/gradhop/gradhop/samplers/store"
)

// scores keeps the cosines of texts that were evaluated apart from the chains in a file of
// the run's folder, so that they need not be when it goes on. Nothing depends on the file
// but time: a line that is not whole, or lost, is a text that is evaluated again. A line is
//
//	sha256 of the text (first 16 bytes)  bits of the cosine  CRC-32 of the two
//
// in hex, with a space between.
type scores struct {
	path  string
	known map[string]float64 // by the first word of their line; nil once they are not needed
	file  *os.File           // nil before there is something to write
}

var _ Scores = (*scores)(nil)

// scoresFile is the name of the file.
const scoresFile = "scores.txt"

// openScores reads the file of a run, where there is one. Errors: *store.Error.
func openScores(dir string) (*scores, error) {
	s := &scores{path: filepath.Join(dir, scoresFile), known: map[string]float64{}}
	text, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &store.Error{Path: s.path, Reason: "cannot be read", Err: err}
	}
	for line := range strings.Lines(string(text)) {
		if key, cosine, ok := parseScore(line); ok {
			s.known[key] = cosine
		}
	}
	return s, nil
}

// scoreLine writes a line.
func scoreLine(text string, cosine float64) string {
	line := fmt.Sprintf("%s %016x", scoreKey(text), math.Float64bits(cosine))
	return fmt.Sprintf("%s %08x\n", line, crc32.ChecksumIEEE([]byte(line)))
}

func scoreKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// parseScore reads a line; ok is false where it is not whole.
func parseScore(line string) (key string, cosine float64, ok bool) {
	words := strings.Fields(line)
	if len(words) != 3 {
		return "", 0, false
	}
	bits, err := strconv.ParseUint(words[1], 16, 64)
	if err != nil || words[2] != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(words[0]+" "+words[1]))) {
		return "", 0, false
	}
	return words[0], math.Float64frombits(bits), true
}

// Get implements Scores.
func (s *scores) Get(text string) (float64, bool) {
	if s.known == nil {
		return 0, false
	}
	cosine, ok := s.known[scoreKey(text)]
	return cosine, ok
}

// Put implements Scores. Errors: *store.Error.
func (s *scores) Put(texts []string, cosines []float64) error {
	var b strings.Builder
	if s.file == nil {
		var err error
		if s.file, err = os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			return store.CannotWrite(s.path, err)
		}
		b.WriteByte('\n') // after a line that a kill cut off
	}
	for i, text := range texts {
		b.WriteString(scoreLine(text, cosines[i]))
	}
	if _, err := s.file.WriteString(b.String()); err != nil {
		return store.CannotWrite(s.path, err)
	}
	return nil
}

// forget frees the memory of what was read.
func (s *scores) forget() { s.known = nil }

// close closes the file and records its checksum.
func (s *scores) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := checksums.Update(filepath.Dir(s.path), checksums.Files{Growing: []string{scoresFile}}, s.file.Close)
	if s.file = nil; err != nil {
		return store.CannotWrite(s.path, err)
	}
	return nil
}
