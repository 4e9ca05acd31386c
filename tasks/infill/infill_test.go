package infill

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
)

// tiny is a random BERT of 80 tokens and 32 positions with the vocabulary in testdata.
func tiny(t *testing.T, change func(fstest.MapFS)) (*Model, error) {
	return tinyWith(t, mlm.Options{}, change)
}

func tinyWith(t *testing.T, o mlm.Options, change func(fstest.MapFS)) (*Model, error) {
	t.Helper()
	files := fstest.MapFS{}
	for name, path := range map[string]string{
		"model.onnx":  "../../energies/neural/mlm/testdata/bert/legacy-17-sdpa/model.onnx",
		"vocab.txt":   "testdata/tiny/vocab.txt",
		"config.json": "testdata/tiny/config.json",
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	if change != nil {
		change(files)
	}
	m, err := Load(models.Model{Name: "tiny", FS: files, ONNX: "model.onnx"}, o)
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	return m, err
}

func load(t *testing.T) *Model {
	t.Helper()
	m, err := tiny(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ids(t *testing.T, m *Model, pieces ...string) []int32 {
	t.Helper()
	var out []int32
	for _, p := range pieces {
		id, ok := m.tok.ID(p)
		if !ok {
			t.Fatalf("no piece %q", p)
		}
		out = append(out, id)
	}
	return out
}

func TestTextFindsBlanks(t *testing.T) {
	m := load(t)
	p, err := m.Text("The [MASK] SAT,\u00a0on [MASK][MASK].", TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// [CLS] the [MASK] sat , on [MASK] [MASK] . [SEP]
	want := []Blank{{4, 10, 2}, {20, 26, 6}, {26, 32, 7}}
	if !slices.Equal(p.Blanks, want) || p.Tokens != 10 {
		t.Errorf("blanks %v of %d tokens, want %v of 10", p.Blanks, p.Tokens, want)
	}
	if sp := p.Energy.Space(); sp.Sites != 3 || sp.Values != 80 {
		t.Errorf("space %d x %d", sp.Sites, sp.Values)
	}
}

func TestAllowed(t *testing.T) {
	m := load(t)
	allowed := func(text string, site int, o TextOptions) func(string) bool {
		p, err := m.Text(text, o)
		if err != nil {
			t.Fatal(err)
		}
		return func(piece string) bool { return p.Energy.Space().Allows(site, ids(t, m, piece)[0]) }
	}
	plain := allowed("the [MASK]", 0, TextOptions{})
	pieces := allowed("the [MASK]", 0, TextOptions{Pieces: true})
	first := allowed("[MASK] cat [MASK]", 0, TextOptions{Pieces: true})
	second := allowed("[MASK] cat [MASK]", 1, TextOptions{Pieces: true})
	for _, c := range []struct {
		piece                        string
		plain, pieces, first, second bool
	}{
		{"cat", true, true, true, true},
		{"##s", false, true, false, true},
		{".", true, true, true, true},
		{"[PAD]", false, false, false, false},
		{"[UNK]", false, false, false, false},
		{"[CLS]", false, false, false, false},
		{"[SEP]", false, false, false, false},
		{"[MASK]", false, false, false, false},
		{"[unused1]", false, false, false, false},
	} {
		got := []bool{plain(c.piece), pieces(c.piece), first(c.piece), second(c.piece)}
		if want := []bool{c.plain, c.pieces, c.first, c.second}; !slices.Equal(got, want) {
			t.Errorf("%s: allowed %v, want %v", c.piece, got, want)
		}
	}
}

func TestTextErrors(t *testing.T) {
	m := load(t)
	for _, c := range []struct {
		text string
		say  string
	}{
		{"", "empty"},
		{" \t\u00a0", "empty"},
		{"\ufeff", "empty"},
		{"the cat", "[MASK]"},
		{"the [mask]", "[MASK]"},
		{"the [MASK] \xff", "byte 11"},
		{strings.Repeat("cat ", 30) + "[MASK]", "33 tokens, the model takes 32"},
	} {
		_, err := m.Text(c.text, TextOptions{})
		var input *InputError
		if !errors.As(err, &input) || !input.ofText() || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if _, err := m.Text(strings.Repeat("cat ", 29)+"[MASK]", TextOptions{}); err != nil {
		t.Errorf("a text that just fits: %v", err)
	}
}

func TestRender(t *testing.T) {
	m := load(t)
	for _, c := range []struct {
		text  string
		fills []string
		want  string
	}{
		{"The  [MASK]\tSat ,", []string{"cat"}, "The  cat\tSat ,"},
		{"[MASK]", []string{"dog"}, "dog"},
		{"thé[MASK][MASK]thé", []string{"cat", "dog"}, "thé cat dog thé"},
		{"he [MASK] [MASK] .", []string{"walk", "##ed"}, "he walked ."},
		{"he [MASK]\u00a0 [MASK] [MASK] .", []string{"walk", "##er", "##s"}, "he walkers ."},
	} {
		p, err := m.Text(c.text, TextOptions{Pieces: true})
		if err != nil {
			t.Fatal(err)
		}
		codes := ids(t, m, c.fills...)
		if got, exact := p.Render(codes); got != c.want || !exact {
			t.Errorf("%q: got %q (read as scored: %v), want %q", c.text, got, exact, c.want)
		}
		if got := p.Fills(codes); !slices.Equal(got, c.fills) {
			t.Errorf("%q: fills %q, want %q", c.text, got, c.fills)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		say    string
	}{
		"vocabulary of the wrong size": {func(f fstest.MapFS) {
			f["vocab.txt"].Data = append(slices.Clone(f["vocab.txt"].Data), "more\n"...)
		}, "81 tokens, its logits have 80"},
		"no vocabulary": {func(f fstest.MapFS) { delete(f, "vocab.txt") }, "vocab.txt"},
		"truncated":     {func(f fstest.MapFS) { f["model.onnx"].Data = f["model.onnx"].Data[:40000] }, "model.onnx"},
	} {
		_, err := tiny(t, c.change)
		var load *neural.ModelError
		if !errors.As(err, &load) || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStarts(t *testing.T) {
	m := load(t)
	p, err := m.Text("the [MASK] sat on [MASK] .", TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bg := context.Background()
	streams := func(chain int64) func() float64 { return rand.New(rand.NewPCG(7, uint64(chain))).Float64 }
	for _, how := range []Start{StartSearch, StartMask, StartArgmax, StartRandom} {
		all, err := p.Starts(bg, how, []int64{0, 1, 2, 3, 4, 5, 6, 7}, streams)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Energy.Space().CheckBatch(energies.Batch{Space: p.Energy.Space(), Codes: all}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		some, err := p.Starts(bg, how, []int64{5, 2}, streams)
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Concat(all[10:12], all[4:6]); !slices.Equal(some, want) {
			t.Errorf("%s: chains 5 and 2 alone start at %v, among others at %v", how, some, want)
		}
	}
	var option *InputError
	if _, err := p.Starts(bg, "middle", []int64{0}, streams); !errors.As(err, &option) || option.ofText() {
		t.Errorf("unknown start: %v", err)
	}
}

// TestStartLaw compares the starts of many chains with the model's prediction, which
// is computed here from log-probabilities over the whole vocabulary.
func TestStartLaw(t *testing.T) {
	m := load(t)
	p, err := m.Text("the [MASK] sat on [MASK] .", TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20000
	chains := make([]int64, n)
	for k := range chains {
		chains[k] = int64(k)
	}
	r := rand.New(rand.NewPCG(1, 2))
	codes, err := p.Starts(context.Background(), StartMask, chains, func(int64) func() float64 { return r.Float64 })
	if err != nil {
		t.Fatal(err)
	}
	most, err := p.Starts(context.Background(), StartArgmax, chains[:1], func(int64) func() float64 { return r.Float64 })
	if err != nil {
		t.Fatal(err)
	}
	masked := energies.Batch{Space: p.Energy.Space(), Codes: []int32{m.tok.Mask, m.tok.Mask}}
	for site := range 2 {
		lp := make([]float64, 80)
		if err := p.Energy.LogPrediction(context.Background(), lp, site, masked); err != nil {
			t.Fatal(err)
		}
		total, chi, top := 0.0, 0.0, 0
		for v := range lp {
			total += math.Exp(lp[v])
			if lp[v] > lp[top] {
				top = v
			}
		}
		count := make([]float64, 80)
		for k := range n {
			count[codes[2*k+site]]++
		}
		cells := 0
		for v := range lp {
			want := n * math.Exp(lp[v]) / total
			if want == 0 && count[v] > 0 {
				t.Errorf("site %d: word %d has probability zero and was drawn", site, v)
			}
			if want > 0 {
				chi += (count[v] - want) * (count[v] - want) / want
				cells++
			}
		}
		// The 1 - 1e-6 quantile, by the normal approximation with a margin.
		if df := float64(cells - 1); chi > df+5*math.Sqrt(2*df) {
			t.Errorf("site %d: chi-squared %.1f on %.0f degrees of freedom", site, chi, df)
		}
		if most[site] != int32(top) {
			t.Errorf("site %d: argmax %d, want %d", site, most[site], top)
		}
	}
}
