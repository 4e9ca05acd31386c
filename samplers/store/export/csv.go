// Package export writes the draws of a run in the formats of other programs, CmdStan's
// CSV, NumPy's NPZ and PNG pictures.
package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/onnx/atomicfile"
	"github.com/gradhop/gradhop/samplers/store"
)

// Names of statistics in CmdStan's files, as known to arviz.from_cmdstan.
var stanNames = map[string]string{
	store.LogDensity: "lp__", store.Acceptance: "accept_stat__", store.Hops: "n_hops__", store.StepSize: "stepsize__", store.Weight: "weight__",
}

// stanName returns the column name of a statistic; it ends in two underscores.
func stanName(name string) string {
	if stan, ok := stanNames[name]; ok {
		return stan
	}
	return name + "__"
}

// CSVWidth is the number of sites beyond which a run is not written as CSV by default.
const CSVWidth = 64

// WriteCSV writes the draws in CmdStan's format to draws-ID.csv in dir, one file per chain, and returns
// the paths. Comments at the top list every setting. Columns are lp__, accept_stat__, n_hops__,
// stepsize__, weight__ (if present) and x.1, x.2, ... Warm-up comes first if its states were saved.
// Numbers are written without loss. Errors are *store.Error.
func WriteCSV(r *store.Reader, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, store.CannotWrite(dir, err)
	}
	var paths []string
	for c, id := range r.Header().ChainIDs {
		path := filepath.Join(dir, fmt.Sprintf("draws-%d.csv", id))
		if err := writeWhole(path, func(w io.Writer) error { return writeChain(r, w, c) }); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// writeChain writes one chain, given by its index in Header.ChainIDs, in the format of WriteCSV.
func writeChain(r *store.Reader, out io.Writer, chain int) error {
	w := bufio.NewWriterSize(out, 1<<16)
	csvHead(r, w, chain)
	for _, p := range []store.Phase{store.Warmup, store.Sampling} {
		if !r.HasStates(p) {
			continue
		}
		if err := csvRows(r, w, p, chain); err != nil {
			return err
		}
	}
	return w.Flush()
}

// csvHead writes comments and column names. w keeps errors.
func csvHead(r *store.Reader, w *bufio.Writer, chain int) {
	h := r.Header()
	space, _ := json.Marshal(h.Space) // strings and integers cannot fail
	warm := 0
	if r.HasStates(store.Warmup) {
		warm = 1
	}
	line := func(name string, value any) { fmt.Fprintf(w, "# %s = %v\n", name, value) }
	line("gradhop", h.Gradhop)
	for _, k := range slices.Sorted(maps.Keys(h.Versions)) {
		line(k, h.Versions[k])
	}
	line("model", h.Model)
	line("model_sha256", h.ModelSHA256)
	line("space", string(space))
	line("method", "sample")
	line("num_samples", h.Steps)
	line("num_warmup", h.Warmup)
	line("save_warmup", warm)
	line("thin", h.Thin)
	line("algorithm", h.Sampler)
	for _, k := range slices.Sorted(maps.Keys(h.Settings)) {
		line("  "+k, h.Settings[k])
	}
	line("id", h.ChainIDs[chain])
	line("seed", h.Seed)
	for k, name := range r.Statistics(store.Sampling) {
		if k > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.WriteString(stanName(name))
	}
	for i := range h.Space.Sites {
		_, _ = w.WriteString(",x." + strconv.Itoa(i+1))
	}
	_ = w.WriteByte('\n')
}

// csvRows writes the draws of a phase.
func csvRows(r *store.Reader, w *bufio.Writer, p store.Phase, chain int) error {
	var next []func() (float64, error, bool)
	for _, name := range r.Statistics(p) {
		pull, stop := iter.Pull2(r.Values(p, name, chain))
		defer stop()
		next = append(next, pull)
	}
	var row []byte
	for x, err := range r.States(p, chain) {
		if err != nil {
			return err
		}
		row = row[:0]
		for _, pull := range next {
			v, err, ok := pull()
			if err != nil || !ok {
				return errors.Join(err, w.Flush())
			}
			row = append(strconv.AppendFloat(row, v, 'g', -1, 64), ',')
		}
		for _, v := range x {
			row = append(strconv.AppendInt(row, int64(v), 10), ',')
		}
		row[len(row)-1] = '\n'
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes a file atomically.
func writeWhole(path string, body func(io.Writer) error) error {
	err := atomicfile.Write(path, body)
	var bad *store.Error
	if err != nil && !errors.As(err, &bad) { // the error names the file that cannot be read
		return store.CannotWrite(path, err)
	}
	return err
}
