package samplers

import (
	"math"
	"math/bits"
)

// packedGibbs draws sweeps of coloured Gibbs on packed sites. The class of a site is the number of its
// neighbours with code 1.
type packedGibbs struct {
	*packing
	odds   []float64 // of code 1, by class
	tables classTables
}

// init packs the codes of s.
func (g *packedGibbs) init(s *State) {
	s.packed = make([]uint64, s.Chains()*g.size)
	for c := range s.Chains() {
		g.pack(g.of(&s.Point, c), s.X.Chain(c))
	}
}

// prepare makes room for a step, and the tables of its temperatures.
func (g *packedGibbs) prepare(s *State, next *Point) {
	next.packed = resize(next.packed, len(s.packed))
	g.tables.reserve(s.Chains())
	for c := range s.Chains() {
		beta := s.InverseTemperature(c)
		if !g.tables.stale(c, 1, beta) {
			continue
		}
		for class, odds := range g.odds {
			g.tables.of(c).set(class, 1/(1+math.Exp(-beta*odds)))
		}
	}
}

// sweep redraws all sites of chain c, colour by colour, and returns U.
func (g *packedGibbs) sweep(w *Worker, c int, state []uint64) float64 {
	var classes [mostClasses]uint64
	ones, edges, t := 0, 0, g.tables.of(c)
	for word, used := range g.used {
		n0, n1, n2 := g.neighbours(state, word, 0)
		byNumber(&classes, n0, n1, n2, used)
		x := t.draw(classes[:len(g.odds)], used, &w.Stream)
		state[word] = x
		ones += bits.OnesCount64(x)
		if word >= g.size/2 { // every edge has one end of the second colour
			edges += bits.OnesCount64(x&n0) + 2*bits.OnesCount64(x&n1) + 4*bits.OnesCount64(x&n2)
		}
	}
	return g.pairs.Density(ones, edges)
}
