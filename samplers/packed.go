package samplers

import (
	"math"
	"math/bits"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// On a torus and other graphs with two colours whose neighbours stand in few relative positions, coloured
// Gibbs redraws 64 sites of a chain at once (multi-spin coding: Zorn, Herrmann and Rebbi 1981). A word
// holds the codes of 64 sites of a colour. Shifted words of the other colour, added bit by bit, give the
// numbers of neighbours with code 1, which are the levels of the sites. A site gets code 1 if a uniform
// number is below the probability of its level: 64 such numbers are compared bit by bit, from the most
// significant bit on, until all comparisons are decided, which takes about 7 random words.

// packing says how the sites of a graph lie in words.
type packing struct {
	colours [][]int32 // bit k%64 of word k/64 of colour c is the code of site colours[c][k]
	links   [2][]link // from the sites of a colour to those of the other
	pairs   *energies.Pairs
	pad     int // words before and after those of a colour, so that shifts stay in range
	size    int // words of a colour, with padding
}

// link is a relative position of neighbours: that of bit k is bit k + 64·word + shift of the other colour.
type link struct {
	word  int
	shift uint
	mask  []uint64 // the sites that have such a neighbour
}

const (
	mostLinks  = 16 // beyond, site by site is as fast
	mostDegree = 7  // numbers of neighbours have three bits
)

// newPacking returns nil if the energy does not lend itself to it.
func newPacking(p *energies.Pairs, colours [][]int32) *packing {
	if p == nil || len(colours) != 2 || p.Degree > mostDegree {
		return nil
	}
	k := &packing{colours: colours, pairs: p}
	place := make([]int, len(colours[0])+len(colours[1])) // [site]
	for _, sites := range colours {
		for m, i := range sites {
			place[i] = m
		}
	}
	for c, sites := range colours {
		at := map[int]int{} // by distance, the index in links
		for m, i := range sites {
			for _, j := range p.To[int(i)*p.Degree : (int(i)+1)*p.Degree] {
				distance := place[j] - m
				n, seen := at[distance]
				if !seen {
					if n = len(k.links[c]); n == mostLinks {
						return nil
					}
					word := distance >> 6
					k.links[c] = append(k.links[c], link{word, uint(distance & 63), make([]uint64, words(len(sites)))})
					k.pad = max(k.pad, word+1, -word)
					at[distance] = n
				}
				k.links[c][n].mask[m/64] |= 1 << (m % 64)
			}
		}
	}
	k.size = 2*k.pad + max(words(len(colours[0])), words(len(colours[1])))
	return k
}

// words is the number of words for so many bits.
func words(n int) int { return (n + 63) / 64 }

// packedOdds has the probabilities of code 1 at an inverse temperature: bit b, counted from the most
// significant one, of that of level l is set if bit[b][l] is all ones, and not set if it is zero.
type packedOdds struct {
	beta float64
	bit  [64][mostDegree + 1]uint64
}

func newPackedOdds(odds []float64, beta float64) *packedOdds {
	t := &packedOdds{beta: beta}
	for level, x := range odds {
		p := uint64(math.MaxUint64)
		if scaled := math.Ldexp(1/(1+math.Exp(-beta*x)), 64); scaled < 1<<64 {
			p = uint64(scaled)
		}
		for b := range t.bit {
			t.bit[b][level] = -(p >> (63 - b) & 1)
		}
	}
	return t
}

// preparePacked makes the table of each chain, and packs its codes where s lacks them in this form.
// Chains at one temperature share a table.
func (j *levelJob) preparePacked(s *State, next *Point) {
	n, p := s.Chains(), j.packing
	if s.packed == nil {
		s.packed = make([]uint64, 2*n*p.size)
		for c := range n {
			for colour, state := range p.of(&s.Point, c) {
				p.pack(state, p.colours[colour], s.X.Chain(c))
			}
		}
	}
	next.packed = resize(next.packed, len(s.packed)) // the padding of new memory is zero, and stays so
	if len(j.packed) < n {
		j.packed = append(j.packed, make([]*packedOdds, n-len(j.packed))...)
	}
	for c := range n {
		beta := s.InverseTemperature(c)
		switch {
		case j.packed[c] != nil && j.packed[c].beta == beta:
		case c > 0 && j.packed[c-1].beta == beta:
			j.packed[c] = j.packed[c-1]
		default:
			j.packed[c] = newPackedOdds(j.odds, beta)
		}
	}
}

// packedChain makes the sweeps of chain c.
func (j *levelJob) packedChain(w *Worker, c int) {
	k, s, p := j.kernel, j.state, j.packing
	x := k.next.X.Chain(c)
	old, state := p.of(&s.Point, c), p.of(&k.next, c)
	copy(state[1], old[1]) // the first colour is redrawn from the second alone
	var ones, edges int
	perStep := int64(k.updates / len(x))
	for sweep := range perStep {
		w.Reset(s.Seed, s.ChainIDs[c], s.Step*perStep+sweep, UseProposal)
		ones, _ = p.draw(state, 0, j.packed[c], &w.Stream)
		more, both := p.draw(state, 1, j.packed[c], &w.Stream)
		ones, edges = ones+more, both // every edge has one end of the second colour
	}
	for colour, sites := range p.colours {
		p.unpack(x, sites, state[colour])
		for w, v := range state[colour] {
			j.info.Hops[c] += bits.OnesCount64(v ^ old[colour][w])
		}
	}
	k.next.U[c] = p.pairs.Density(ones, edges)
}

// of returns the packed codes of both colours of chain c.
func (p *packing) of(at *Point, c int) [2][]uint64 {
	all := at.packed[2*c*p.size : 2*(c+1)*p.size]
	return [2][]uint64{all[:p.size], all[p.size:]}
}

// draw redraws the sites of a colour. It returns the number that have code 1, and the number of their
// neighbours that have it too.
func (p *packing) draw(state [2][]uint64, colour int, t *packedOdds, r *rng.Stream) (ones, edges int) {
	own, other, links, left := state[colour][p.pad:], state[1-colour], p.links[colour], len(p.colours[colour])
	for w := 0; left > 0; w, left = w+1, left-64 {
		var n0, n1, n2 uint64 // bits of the numbers of neighbours with code 1
		for l := range links {
			link := &links[l]
			from := other[w+p.pad+link.word:]
			b := (from[0]>>link.shift | from[1]<<1<<(63-link.shift)) & link.mask[w]
			carry := n0 & b
			n0 ^= b
			n2 |= n1 & carry
			n1 ^= carry
		}
		l0, l1, l2, l3 := ^(n0 | n1 | n2), n0&^(n1|n2), n1&^(n0|n2), n0&n1&^n2
		l4, l5, l6, l7 := n2&^(n0|n1), n0&n2&^n1, n1&n2&^n0, n0&n1&n2
		x, open := uint64(0), ^uint64(0)
		if left < 64 {
			open >>= 64 - left
		}
		for b := 0; open != 0 && b < 64; b++ {
			row := &t.bit[b]
			threshold := l0&row[0] | l1&row[1] | l2&row[2] | l3&row[3] | l4&row[4]
			if p.pairs.Degree > 4 {
				threshold |= l5&row[5] | l6&row[6] | l7&row[7]
			}
			u := r.Uint64()
			x |= open & threshold &^ u
			open &^= threshold ^ u
		}
		own[w] = x
		ones += bits.OnesCount64(x)
		edges += bits.OnesCount64(x&n0) + 2*bits.OnesCount64(x&n1) + 4*bits.OnesCount64(x&n2)
	}
	return ones, edges
}

// pack writes the codes of sites to words.
func (p *packing) pack(to []uint64, sites, x []int32) {
	for w := p.pad; len(sites) > 0; w++ {
		n := min(len(sites), 64)
		v := uint64(0)
		for k, i := range sites[:n] {
			v |= uint64(x[i]) << k
		}
		to[w], sites = v, sites[n:]
	}
}

// unpack writes words to the codes of sites.
func (p *packing) unpack(x, sites []int32, from []uint64) {
	for w := p.pad; len(sites) > 0; w++ {
		n, v := min(len(sites), 64), from[w]
		for _, i := range sites[:n] {
			x[i] = int32(v & 1)
			v >>= 1
		}
		sites = sites[n:]
	}
}
