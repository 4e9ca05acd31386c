package samplers_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/samplertest"
)

var ncgLaw = func() samplertest.Law {
	law := metropolis(langevin)
	law.Few = true
	return law
}()

// bySite is the probability of a product of softmaxes with weights w.
func bySite(p *samplertest.Problem, from, to int, w func(i int, v, current int32) float64) float64 {
	q := 1.0
	for i, current := range p.Law.X.Chain(from) {
		sum := 0.0
		for _, v := range p.Values(i) {
			sum += w(i, v, current)
		}
		q *= w(i, p.Law.X.Chain(to)[i], current) / sum
	}
	return q
}

// dlmcLaw moves every site with the probabilities of Sun et al. (2023), τ being p.Alpha/3.
var dlmcLaw = func() samplertest.Law {
	law := metropolis(func(p *samplertest.Problem, set samplers.Settings, _ int64, from, to int) float64 {
		q := 1.0
		for i, current := range p.Law.X.Chain(from) {
			sum, leave, mine := 0.0, 0.0, 0.0
			for _, v := range p.Values(i) {
				sum += math.Exp(p.D(from, i, v))
			}
			for _, v := range p.Values(i) {
				if v == current {
					continue
				}
				nu := math.Exp(p.D(from, i, v)) / sum
				rate := p.Alpha / 3 * balanced(set, math.Exp(p.D(from, i, v)))
				move := nu * (1 - math.Exp(-rate/nu))
				if set["solver"] == "euler" {
					move = math.Min(rate, nu)
				}
				leave += move
				if v == p.Law.X.Chain(to)[i] {
					mine = move
				}
			}
			if p.Law.X.Chain(to)[i] == current {
				mine = 1 - leave
			}
			q *= mine
		}
		return q
	})
	law.Variants = []samplers.Settings{{}, {"solver": "euler"}, {"balance": "barker"}}
	law.Dense = true
	law.Preset = func(p *samplertest.Problem, _ samplers.Settings, s *samplers.State) {
		v := samplers.Var{VarSpec: samplers.VarSpec{Name: "time"}}
		for range s.Chains() {
			v.Data = append(v.Data, p.Alpha/3)
		}
		s.Vars = []samplers.Var{v}
	}
	return law
}()

// avgLaw draws a copy z ~ N(s, δ²) of the vector s of a state (its numbers, or its one-hot codes), proposes states by the
// expansion of U to first order times N(z; s', δ²), and accepts by the joint law of state and copy.
var avgLaw = samplertest.Law{
	Few: true, Dense: true, Spread: true,
	Draw: func(at func(int64) *samplertest.Problem, _ samplers.Settings, first int64, n, k int, u func() float64) int {
		for step := first; step < first+int64(n); step++ {
			k = copyStep(at(step), k, u)
		}
		return k
	},
}

// copyStep moves from state k.
func copyStep(p *samplertest.Problem, k int, u func() float64) int {
	e := expandAll(p)
	z := slices.Clone(e.vectors[k])
	for j := range z {
		z[j] += p.Alpha * math.Sqrt(-2*math.Log(u())) * math.Sin(2*math.Pi*u())
	}
	logp := func(k int) float64 { // log N(z; s, δ²) of the vector of a state
		d := floats.Distance(z, e.vectors[k], 2)
		return -d * d / (2 * p.Alpha * p.Alpha)
	}
	proposal := func(from int) []float64 {
		q := slices.Clone(e.expansions[from])
		for to := range q {
			q[to] += logp(to)
		}
		total := floats.LogSumExp(q)
		for to := range q {
			q[to] = math.Exp(q[to] - total)
		}
		return q
	}
	q, to, left := proposal(k), 0, u()
	for left -= q[0]; left > 0 && to < len(q)-1; left -= q[to] {
		to++
	}
	if ratio := math.Exp(logp(to)-logp(k)) * p.Law.P[to] / (p.Law.P[k] * q[to]); p.Law.P[to] > 0 && u() < ratio*proposal(to)[k] {
		return to
	}
	return k
}

// expanded has the vectors that stand for the states of a problem, and the expansion of U at each of them, at all others.
type expanded struct{ vectors, expansions [][]float64 }

func expandAll(p *samplertest.Problem) expanded {
	return remember([2]any{p, "expanded"}, func() expanded {
		var e expanded
		for from := range p.Law.Len() {
			row := make([]float64, p.Law.Len())
			for to := range row {
				for i, v := range p.Law.X.Chain(to) {
					row[to] += p.D(from, i, v)
				}
			}
			e.expansions, e.vectors = append(e.expansions, row), append(e.vectors, embed(p, from))
		}
		return e
	})
}

// embed is the vector that stands for a state.
func embed(p *samplertest.Problem, k int) []float64 {
	var vector []float64
	for _, v := range p.Law.X.Chain(k) {
		if p.Space().Kind.String() != "categorical" {
			vector = append(vector, float64(p.Space().Number(v)))
			continue
		}
		hot := make([]float64, p.Space().Values)
		hot[v] = 1
		vector = append(vector, hot...)
	}
	return vector
}

// mtmLaw sums over all sets of candidates, forward and backward, and accepts as the general
// formula has it: by the probabilities of drawing and of choosing a candidate in both
// directions.
var mtmLaw = samplertest.Law{
	Spread: true,
	Variants: []samplers.Settings{
		{"tries": "2"}, {"tries": "1", "sharpness": "1"}, {"tries": "3", "balance": "barker"},
		{"tries": "2", "balance": "min"}, {"tries": "2", "balance": "max", "sharpness": "0.2"},
	},
	Row: func(p *samplertest.Problem, set samplers.Settings, _ int64, k int) []float64 {
		rows := remember([3]any{p, "mtm", fmt.Sprint(set)}, func() [][]float64 { return make([][]float64, p.Law.Len()) })
		rowsMutex.Lock()
		defer rowsMutex.Unlock()
		if rows[k] == nil {
			rows[k] = multipleTries(p, set, k)
		}
		return slices.Clone(rows[k])
	},
}

var rowsMutex sync.Mutex

// multipleTries is the row of state k of multiple-try Metropolis.
func multipleTries(p *samplertest.Problem, set samplers.Settings, k int) []float64 {
	tries := number(set, "tries", 32)
	row, stay := make([]float64, p.Law.Len()), 1.0
	here := candidates(p, set, k)
	eachSet(here, tries, func(drawn float64, ys []candidate) {
		for j, y := range ys {
			forward := chosen(ys, j)
			if drawn*forward == 0 {
				continue
			}
			there := candidates(p, set, y.state)
			back := there[slices.IndexFunc(there, func(c candidate) bool { return c.state == k })]
			eachSet(there, tries-1, func(again float64, xs []candidate) {
				backward := chosen(append(xs[:tries-1:tries-1], back), tries-1)
				ratio := p.Law.P[y.state] * back.draw * backward / (p.Law.P[k] * y.draw * forward)
				q := drawn * forward * again * math.Min(1, ratio)
				row[y.state] += q
				stay -= q
			})
		}
	})
	row[k] += stay
	return row
}

// candidate is a neighbour, the probability of drawing it and its weight among those drawn.
type candidate struct {
	state        int
	draw, weight float64
}

// candidates lists the neighbours of state k.
func candidates(p *samplertest.Problem, set samplers.Settings, k int) []candidate {
	sharpness, err := strconv.ParseFloat(set["sharpness"], 64)
	if err != nil {
		sharpness = 0.5
	}
	var list []candidate
	sum := 0.0
	for i, current := range p.Law.X.Chain(k) {
		for _, v := range p.Values(i) {
			if v == current {
				continue
			}
			c := candidate{state: p.With(k, i, v), draw: math.Exp(sharpness * p.D(k, i, v))}
			if to := p.Law.P[c.state]; to > 0 {
				c.weight = balanced(set, to/p.Law.P[k]) / c.draw
			}
			sum += c.draw
			list = append(list, c)
		}
	}
	for j := range list {
		list[j].draw /= sum
	}
	return list
}

// eachSet calls f for all ordered sets of n candidates, with their probabilities.
func eachSet(from []candidate, n int, f func(probability float64, set []candidate)) {
	set := make([]candidate, n)
	var fill func(j int, probability float64)
	fill = func(j int, probability float64) {
		if j == n {
			f(probability, set)
			return
		}
		for _, c := range from {
			set[j] = c
			fill(j+1, probability*c.draw)
		}
	}
	fill(0, 1)
}

// chosen is the probability of choosing candidate j of a set.
func chosen(set []candidate, j int) float64 {
	sum := 0.0
	for _, c := range set {
		sum += c.weight
	}
	if sum == 0 {
		return 0
	}
	return set[j].weight / sum
}
