package pairwise

import (
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// levels is the arithmetic of a model with one coupling and one field. The log-odds of a site then
// depend on the number of its neighbours with code 1, and on that of all its neighbours alone; U is a
// function of three counts, which are exact.
type levels struct {
	start, to []int32
	edges     [][2]int32
	odds      []float64 // by level
	first     []uint8   // level of a site without a neighbour of code 1, [site]
	four      bool      // all sites have four neighbours and one first level, as on a torus
	// U = offset + perOne·(codes 1) + perDegree·(their neighbours) + perPair·(those with code 1).
	offset, perOne, perDegree, perPair float64
	low, high                          float32 // the numbers of codes
	perNumber                          float64 // log-odds over high - low
	pairs                              *energies.Pairs
}

// mostLevels bounds the levels, which are bytes.
const mostLevels = 256

// newLevels returns nil where couplings or fields differ, or where there are too many levels.
func (m *Model) newLevels() *levels {
	edges := m.graph.Edges
	if len(edges) == 0 {
		return nil
	}
	weight, field, d := edges[0].Weight, m.field[0], m.space.Sites
	ends := make([][2]int32, 0, len(edges))
	for _, e := range edges {
		if e.Weight != weight {
			return nil
		}
		ends = append(ends, [2]int32{e.I, e.J})
	}
	l := &levels{edges: ends, start: m.near.Start, to: m.near.To, first: make([]uint8, d), low: float32(m.number(0)), high: 1, perNumber: m.scale}
	most, degrees := 0, []int{} // degrees in the order of their levels
	for i, h := range m.field {
		degree := l.degree(i)
		if h != field {
			return nil
		}
		if most = max(most, degree); !slices.Contains(degrees, degree) {
			degrees = append(degrees, degree)
		}
	}
	if len(degrees)*(most+1) > mostLevels {
		return nil
	}
	for i := range d {
		l.first[i] = uint8(slices.Index(degrees, l.degree(i)) * (most + 1))
	}
	for _, degree := range degrees {
		base := field
		if m.scale == 2 {
			base -= float64(degree) * weight
		}
		for n := range most + 1 {
			l.odds = append(l.odds, m.scale*(base+m.scale*weight*float64(n)))
		}
	}
	l.four = len(degrees) == 1 && most == 4
	l.offset, l.perOne, l.perPair = m.offset, field, weight/2
	if m.scale == 2 { // s = 2·code - 1
		l.offset += weight*float64(len(edges)) - field*float64(d)
		l.perOne, l.perDegree, l.perPair = 2*field, -2*weight, 2*weight
	}
	if len(degrees) == 1 {
		l.pairs = &energies.Pairs{Degree: most, To: l.to, Density: func(ones, edges int) float64 { return l.sum(ones, most*ones, 2*edges) }}
	}
	return l
}

func (l *levels) degree(i int) int { return int(l.start[i+1] - l.start[i]) }

// at returns the level of site i.
func (l *levels) at(x []int32, i int32) uint8 {
	n := int32(l.first[i])
	for _, j := range l.to[l.start[i]:l.start[i+1]] {
		n += x[j]
	}
	return uint8(n)
}

// of writes the levels of sites.
func (l *levels) of(out []uint8, x, sites []int32) {
	if !l.four {
		for k, i := range sites {
			out[k] = l.at(x, i)
		}
		return
	}
	out = out[:len(sites)]
	for k, i := range sites {
		to := l.to[4*i : 4*i+4 : 4*i+4]
		out[k] = uint8(x[to[0]] + x[to[1]] + x[to[2]] + x[to[3]])
	}
}

// all writes the levels of all sites and returns U.
func (l *levels) all(out []uint8, x []int32) float64 {
	if !l.four {
		for i := range x {
			out[i] = l.at(x, int32(i))
		}
		return l.density(x)
	}
	ones, pairs, out := int32(0), int32(0), out[:len(x)]
	for i, v := range x {
		to := l.to[4*i : 4*i+4 : 4*i+4]
		n := x[to[0]] + x[to[1]] + x[to[2]] + x[to[3]]
		out[i] = uint8(n)
		ones += v
		pairs += v * n
	}
	return l.sum(int(ones), 4*int(ones), int(pairs))
}

// density returns U.
func (l *levels) density(x []int32) float64 {
	ones, degrees, edges := 0, 0, int32(0)
	for _, e := range l.edges {
		edges += x[e[0]] & x[e[1]]
	}
	for i, v := range x {
		ones += int(v)
		if !l.four {
			degrees += int(v) * l.degree(i)
		}
	}
	if l.four {
		degrees = 4 * ones
	}
	return l.sum(ones, degrees, 2*int(edges))
}

// sum is U of the counts.
func (l *levels) sum(ones, degrees, pairs int) float64 {
	return l.offset + l.perOne*float64(ones) + l.perDegree*float64(degrees) + l.perPair*float64(pairs)
}

// slopes returns U, and writes the gradient to g, [site, value], unless g is nil.
func (l *levels) slopes(x []int32, g []float32) float64 {
	if g != nil {
		for i := range x {
			f := float32(l.odds[l.at(x, int32(i))] / l.perNumber)
			g[2*i], g[2*i+1] = l.low*f, f
		}
	}
	return l.density(x)
}
