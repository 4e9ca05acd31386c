package samplers

import (
	"math"
	"math/bits"
)

// packedLangevin is the proposal of [langevin] on packed sites. The class of a site is the number of its
// neighbours that agree with it, and its code, unless codes behave alike, as they do without a field. A
// class has one probability to change, so that log-probabilities are sums of numbers of sites times
// entries of a table.
type packedLangevin struct {
	levelLangevin
	*packing
	classes int
	next    *Point // where proposals are drawn
	tables  classTables
	reverse []float64 // log q(x|x'), [chain]
}

// newPackedLangevin returns l on packed sites. Proposals are drawn to next.
func newPackedLangevin(l levelLangevin, p *packing, next *Point) *packedLangevin {
	degree, most := p.pairs.Degree, 0.0
	k := &packedLangevin{levelLangevin: l, packing: p, classes: degree + 1, next: next}
	for _, odds := range l.odds {
		most = max(most, math.Abs(odds))
	}
	for n, odds := range l.odds {
		if math.Abs(odds+l.odds[degree-n]) > 1e-12*most { // the log-odds of changing depend on the code
			k.classes = 2 * (degree + 1)
		}
	}
	return k
}

// prepare makes room for a step, and the tables of its step sizes and temperatures.
func (l *packedLangevin) prepare(s *State) {
	n, degree := s.Chains(), l.pairs.Degree
	l.tables.reserve(n)
	l.reverse = resize(l.reverse, n)
	for c := range n {
		alpha, beta := l.alpha(s, c), s.InverseTemperature(c)
		if !l.tables.stale(c, alpha, beta) {
			continue
		}
		t := l.tables.of(c)
		for class := range l.classes {
			odds := l.odds[degree-class%(degree+1)] // of code 1 where the site has code 0
			if class > degree {
				odds = -l.odds[class-degree-1]
			}
			leave, stay := l.change(odds, alpha, beta)
			t.set(class, 1/(1+math.Exp(-leave)))
			t.stay[class], t.odds[class] = stay, leave
		}
	}
}

// numbers of words of a chain in Point.classes: three bits of each site's number of neighbours that agree
// with it, then the number of sites of each class.
func (l *packedLangevin) derived() int { return 3*l.size + mostClasses }

// reserve makes room in p.
func (l *packedLangevin) reserve(p *Point) {
	n := p.X.Chains()
	p.packed, p.classes = resize(p.packed, n*l.size), resize(p.classes, n*l.derived())
}

// ofClasses returns what p has of chain c in classes.
func (l *packedLangevin) ofClasses(p *Point, c int) (agree, count []uint64) {
	all := p.classes[c*l.derived() : (c+1)*l.derived()]
	return all[:3*l.size], all[3*l.size:][:l.classes]
}

// sitesOf writes the sites of each class of word w.
func (l *packedLangevin) sitesOf(to *[mostClasses]uint64, agree []uint64, w int, codes uint64) []uint64 {
	byNumber(to, agree[3*w], agree[3*w+1], agree[3*w+2], l.used[w])
	if n := l.pairs.Degree + 1; l.classes > n {
		for k := range n {
			to[n+k] = to[k] & codes
			to[k] &^= codes
		}
	}
	return to[:l.classes]
}

// fill computes what p keeps of chain c from its codes.
func (l *packedLangevin) fill(p *Point, c int) {
	state := l.of(p, c)
	l.pack(state, p.X.Chain(c))
	l.count(p, c, state)
}

// count fills U and the classes of chain c of p. It returns the number of sites of each class whose codes
// are others than in before.
func (l *packedLangevin) count(p *Point, c int, before []uint64) (changed [mostClasses]int) {
	var to [mostClasses]uint64
	state, ones := l.of(p, c), 0
	agree, count := l.ofClasses(p, c)
	clear(count)
	for w, x := range state {
		n0, n1, n2 := l.neighbours(state, w, ^x)
		agree[3*w], agree[3*w+1], agree[3*w+2] = n0, n1, n2
		ones += bits.OnesCount64(x)
		differ := x ^ before[w]
		for k, sites := range l.sitesOf(&to, agree, w, x) {
			count[k] += uint64(bits.OnesCount64(sites))
			changed[k] += bits.OnesCount64(sites & differ)
		}
	}
	agreeing := 0 // ends of edges
	for k, n := range count {
		agreeing += k % (l.pairs.Degree + 1) * int(n)
	}
	// Of the edges, agreeing/2 join equal codes; Degree·ones is 2·(both ends 1) + (one end 1).
	edges := (2*l.pairs.Degree*ones - l.pairs.Degree*l.sites + agreeing) / 4
	p.U[c] = l.pairs.Density(ones, edges)
	return changed
}

// logProposal is the log-probability of changing so many sites of each class, and no other.
func (t *classTable) logProposal(count []uint64, changed *[mostClasses]int) float64 {
	sum := 0.0
	for k, n := range count {
		sum += float64(n)*t.stay[k] + float64(changed[k])*t.odds[k]
	}
	return sum
}

// Draw implements Proposal. It fills chain c of l.next, too.
func (l *packedLangevin) Draw(w *Worker, s *State, c int, next []int32) float64 {
	var to [mostClasses]uint64
	var changed [mostClasses]int
	t := l.tables.of(c)
	x, y := l.of(&s.Point, c), l.of(l.next, c)
	agree, count := l.ofClasses(&s.Point, c)
	for word, codes := range x {
		classes := l.sitesOf(&to, agree, word, codes)
		change := t.draw(classes, l.used[word], &w.Stream)
		y[word] = codes ^ change
		for k, sites := range classes {
			changed[k] += bits.OnesCount64(sites & change)
		}
	}
	l.unpack(next, y)
	back := l.count(l.next, c, x)
	_, after := l.ofClasses(l.next, c)
	l.reverse[c] = t.logProposal(after, &back)
	return t.logProposal(count, &changed)
}

// LogReverse implements Proposal.
func (l *packedLangevin) LogReverse(_ *Worker, _ *State, c int, _ *Point) float64 {
	return l.reverse[c]
}
