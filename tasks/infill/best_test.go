package infill

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
)

// TestBest compares the collector with sorting everything that was shown.
func TestBest(t *testing.T) {
	m := load(t)
	p, err := m.Text("he [MASK] [MASK] .", TextOptions{Pieces: true})
	if err != nil {
		t.Fatal(err)
	}
	words := ids(t, m, "walk", "talk", "##ed", "##s", "ran", "run", "the", "##er")
	r := rand.New(rand.NewPCG(3, 4))
	level := map[[2]int32]float64{} // few levels, so that there are ties
	for trial := range 200 {
		keep := trial % 7
		best := newBest(p, keep)
		first := map[string]Visited{}
		for step := range int64(10) {
			x := energies.NewBatch(p.Energy.Space(), 4)
			u := make([]float64, 4)
			for c := range u {
				key := [2]int32{words[r.IntN(len(words))], words[r.IntN(len(words))]}
				if _, ok := level[key]; !ok {
					level[key] = float64(r.IntN(6))
				}
				copy(x.Chain(c), key[:])
				u[c] = level[key]
				s := Visited{p.Sentence(key[:], u[c]), int64(10 + c), step}
				if old, ok := first[s.Text]; !ok || s.LogP > old.LogP {
					first[s.Text] = s
				}
			}
			best.Add(step, []int64{10, 11, 12, 13}, u, x)
		}
		var want []Visited
		for _, s := range first {
			want = append(want, s)
		}
		slices.SortFunc(want, func(a, b Visited) int {
			if a.LogP != b.LogP {
				return int(b.LogP - a.LogP)
			}
			return strings.Compare(a.Text, b.Text)
		})
		want = want[:min(keep, len(want))]
		got := best.Sentences()
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("keep %d:\ngot  %v\nwant %v", keep, got, want)
		}
	}
}

func equal(a, b Visited) bool {
	return a.Text == b.Text && slices.Equal(a.Fills, b.Fills) && a.LogP == b.LogP && a.Chain == b.Chain && a.Step == b.Step
}
