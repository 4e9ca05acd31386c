package export

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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

// TestCSV: a run as CSV has the table of the run, with its weights and without its warm-up.
func TestCSV(t *testing.T) {
	space := &energies.Space{Sites: 2, Values: 9, Kind: energies.Ordinal, Low: -4}
	for name, weight := range map[string]func(k, c int) float64{"plain": nil, "weighted": func(k, c int) float64 { return 0.1 + hash(k, c, 7) }} {
		r := fake(t, space, []int64{0, 3}, 100, 25, func(k, c, i int) int32 { return int32(9 * hash(k, c, i)) }, weight)
		paths, err := WriteCSV(r, filepath.Join(r.Dir(), "csv"))
		if err != nil || len(paths) != 2 || filepath.Base(paths[1]) != "draws-3.csv" {
			t.Fatal(paths, err)
		}
		c, err := OpenCmdStan(paths...)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(c.Columns(), "weight__") != (weight != nil) {
			t.Errorf("%s: columns %v", name, c.Columns())
		}
		got, err := c.Diagnose(store.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := store.Diagnose(r, store.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range want.Rows[1:] { // the files count from 1
			want.Rows[1+k].Name = fmt.Sprintf("x[%d]", k+1)
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || got.Draws != 100 {
			t.Errorf("%s: %+v\nwant\n%+v", name, got, want)
		}
		worst, err := c.Diagnose(store.TableOptions{Rows: 1, Bytes: 1})
		if err != nil || len(worst.Rows) != 2 || worst.Sites != 2 {
			t.Errorf("%v, %v", worst, err)
		}
	}
}

// TestCmdStanFiles reads what CmdStan itself writes, with warm-up told by the
// comment in the middle, and refuses what it does not.
func TestCmdStanFiles(t *testing.T) {
	head := "# stan_version_major = 2\n# method = sample (Default)\n#     num_warmup = 3\n#     save_warmup = %s\n#     thin = 1 (Default)\nlp__,accept_stat__,theta,z.1.2\n"
	rows := "-7,1,0.1,1\n-6,0.5,0.2,2\n-5,1,0.3,3\n# Adaptation terminated\n# Step size = 0.8\n-7.5,1,0.25,4\n-7.25,0.9,nan,-inf\n# Elapsed Time: 0.005 seconds (Warm-up)\n"
	put := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := put("a.csv", fmt.Sprintf(head, "1")+rows), put("b.csv", fmt.Sprintf(head, "true")+strings.ReplaceAll(rows, "\n", "\r\n"))
	c, err := OpenCmdStan(a, b)
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.Read(0, 2)
	if err != nil || c.Draws() != 2 || fmt.Sprint(x) != "[[[-7.5 -7.25] [-7.5 -7.25]] [[0.25 NaN] [0.25 NaN]]]" {
		t.Errorf("%v, %v", x, err)
	}
	table, err := c.Diagnose(store.TableOptions{})
	if err != nil || len(table.Rows) != 3 || table.Rows[1].Name != "theta" || table.Rows[2].Name != "z[1,2]" {
		t.Errorf("%+v, %v", table, err)
	}
	plain := put("plain.csv", fmt.Sprintf(head, "0")+rows)
	if c, err = OpenCmdStan(plain); err != nil || c.Draws() != 5 {
		t.Errorf("warm-up not saved: %v, %v", c, err)
	}
	for says, text := range map[string]string{
		"line 8: 2 numbers for 4 columns": fmt.Sprintf(head, "0") + "1,2,3,4\n1,2\n",
		"no line with column names":       "# nothing\n",
		"want column names":               "1,2,3\n",
		"columns differ from":             "lp__,theta\n1,2\n",
		"1 draws, but":                    fmt.Sprintf(head, "0") + "1,2,3,4\n",
	} {
		var bad *store.Error
		if _, err := OpenCmdStan(plain, put("bad.csv", text)); !errors.As(err, &bad) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	c, err = OpenCmdStan(put("word.csv", fmt.Sprintf(head, "0")+"1,2,x,4\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Diagnose(store.TableOptions{}); err == nil || !strings.Contains(err.Error(), `line 7: column theta: "x" is not a number`) {
		t.Errorf("a word: %v", err)
	}
	if _, err := OpenCmdStan(); err == nil {
		t.Error("no file passes")
	}
}
