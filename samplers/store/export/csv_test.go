package export

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// fake writes a run whose draws are as told: value(step, chain, site) is a code, and weight
// may be nil.
func fake(t *testing.T, space *energies.Space, chains []int64, steps, warmup int, value func(k, c, i int) int32, weight func(k, c int) float64) *store.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	h := store.Header{
		Gradhop: "v0", Space: store.SpaceOf(space), Sampler: "none", ChainIDs: chains, Steps: steps, Warmup: warmup, Thin: 1, SaveWarmup: true,
	}
	if weight != nil {
		h.Vars = []string{store.Weight}
	}
	w, err := store.Create(dir, h, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := len(chains)
	s := &samplers.State{Point: samplers.Point{X: energies.NewBatch(space, n)}, ChainIDs: chains}
	s.U = make([]float64, n)
	if weight != nil {
		s.Declare([]samplers.VarSpec{{Name: store.Weight, Record: true}})
	}
	for k := range warmup + steps {
		info := &samplers.Info{}
		info.Reset(n)
		s.Step, s.Warmup, info.Keep = int64(k+1), k < warmup, k >= warmup
		for c := range n {
			s.U[c] = -hash(k, c, 99)
			if weight != nil {
				s.Var(store.Weight)[c] = weight(k, c)
			}
			for i := range space.Sites {
				s.X.Chain(c)[i] = value(k, c, i)
			}
		}
		if err := w.Observe(s, info); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hash is a number in [0, 1) for three others.
func hash(k, c, i int) float64 {
	x := math.Sin(float64(k)*12.9898+float64(c)*78.233+float64(i)*37.719) * 43758.5453
	return x - math.Floor(x)
}

// TestCSV: comments, column names, and the draws of a chain with its warm-up and weights.
func TestCSV(t *testing.T) {
	space := &energies.Space{Sites: 2, Values: 9, Kind: energies.Ordinal, Low: -4}
	code := func(k, c, i int) int32 { return int32(9 * hash(k, c, i)) }
	for name, weight := range map[string]func(k, c int) float64{"plain": nil, "weighted": func(k, c int) float64 { return 0.1 + hash(k, c, 7) }} {
		const warmup, steps = 25, 100
		r := fake(t, space, []int64{0, 3}, steps, warmup, code, weight)
		paths, err := WriteCSV(r, filepath.Join(r.Dir(), "csv"))
		if err != nil || len(paths) != 2 || filepath.Base(paths[1]) != "draws-3.csv" {
			t.Fatal(paths, err)
		}
		text, err := os.ReadFile(paths[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"# num_samples = 100\n", "# num_warmup = 25\n", "# save_warmup = 1\n", "# id = 3\n"} {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s: no line %q", name, line)
			}
		}
		in := csv.NewReader(bytes.NewReader(text))
		in.Comment = '#'
		rows, err := in.ReadAll()
		if err != nil || len(rows) != 1+warmup+steps {
			t.Fatalf("%s: %d rows, %v", name, len(rows), err)
		}
		head := []string{"lp__", "accept_stat__", "n_hops__", "x.1", "x.2"}
		if weight != nil {
			head = slices.Insert(head, 3, "weight__")
		}
		if !slices.Equal(rows[0], head) {
			t.Fatalf("%s: columns %v, want %v", name, rows[0], head)
		}
		for k, row := range rows[1:] {
			want := map[string]float64{"lp__": -hash(k, 1, 99), "x.1": float64(code(k, 1, 0) - 4), "x.2": float64(code(k, 1, 1) - 4)}
			if weight != nil {
				want["weight__"] = weight(k, 1)
			}
			for column, value := range want {
				if got, err := strconv.ParseFloat(row[slices.Index(head, column)], 64); err != nil || got != value {
					t.Fatalf("%s, row %d: %s is %v (%v), want %v", name, k, column, got, err, value)
				}
			}
		}
	}
}
