package samplers

import (
	"math"
	"runtime"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// dlp is the discrete Langevin proposal of Zhang, Liu and Liu (2022), eq. 4,
// which DULA accepts and DMALA corrects: all sites move at once,
//
//	q_i(v|x) ∝ exp( ½β·d[i,v] - D²(v,x_i)/(2α) ),   β = 1 but in annealed runs.
//
// Since the current value has weight one, a site leaves it with probability
// e^t/(1+e^t), t = log Σ_{v≠x_i} exp(½β·d[i,v] - D²/(2α)), for a value in
// proportion to its weight. Where D² is one number off the current value
// (binary, spin, categorical), t is Local's rest minus D²/(2α), so no sum is
// needed at draw time; ordinal rows are weighted value by value.
type dlp struct {
	gradient
	start   float64 // α to start from
	next    move
	workers []dlpWorker

	forward, backward []float64 // log q(x'|x), log q(x|x'), [chain]
}

type dlpWorker struct {
	stream rng.Stream
	row    ordinalRow
}

// newDLP checks the step size; zero means default times D² of neighbours, so
// that the penalty of the smallest move is the same in every kind of space.
func newDLP(sampler string, e energies.Energy, stepSize, byDefault float64, dense bool) (dlp, error) {
	g, err := newGradient(sampler, e, dense)
	if err != nil {
		return dlp{}, err
	}
	if stepSize == 0 {
		stepSize = byDefault * e.Space().SquaredDistance(0, 1)
	}
	if err := checkStepSize(sampler, stepSize); err != nil {
		return dlp{}, err
	}
	return dlp{gradient: g, start: stepSize, workers: make([]dlpWorker, runtime.GOMAXPROCS(0))}, nil
}

// propose draws k.next.X of every chain, and with it k.forward.
func (k *dlp) propose(s *State) {
	k.next.like(s)
	k.forward = resize(k.forward, s.Chains())
	k.chains(s, (*dlp).draw)
}

// reverse fills k.backward from the evaluated proposal.
func (k *dlp) reverse(s *State) {
	k.backward = resize(k.backward, s.Chains())
	k.chains(s, (*dlp).logReverse)
}

// chains calls f for every chain, in parallel where that pays.
func (k *dlp) chains(s *State, f func(*dlp, *dlpWorker, *State, int)) {
	n := s.Chains()
	work := len(s.X.Codes) * min(s.X.Space.Values, blockLen)
	if work < serialWork { // without a closure: no allocation
		for c := range n {
			f(k, &k.workers[0], s, c)
		}
		return
	}
	if p := runtime.GOMAXPROCS(0); p > len(k.workers) {
		k.workers = make([]dlpWorker, p)
	}
	parallel(n, work, func(worker, lo, hi int) {
		for c := lo; c < hi; c++ {
			f(k, &k.workers[worker], s, c)
		}
	})
}

// draw proposes for chain c and adds up the log-probability of what it drew.
func (k *dlp) draw(w *dlpWorker, s *State, c int) {
	w.stream.Reset(s.Seed, s.ChainIDs[c], s.Step, useProposal)
	x, y := s.X.Chain(c), k.next.X.Chain(c)
	sp := s.X.Space
	penalty := sp.SquaredDistance(0, 1) / (2 * s.StepSize[c])
	ordinal, logq := isOrdinal(sp), 0.0
	norm := newSoftplusSum()
	for i, cur := range x {
		r, v := c*sp.Sites+i, cur
		var t float64 // log odds of leaving
		if ordinal {
			t = w.row.weigh(&s.Local, sp, r, cur, s.StepSize[c])
		} else {
			t = s.rest[r] - penalty
		}
		if e := norm.add(t); w.stream.Float64()*(1+e) < leaves(t, e) {
			u := w.stream.Float64()
			if ordinal {
				v = w.row.pick(u)
			} else {
				v = s.pick(sp, r, cur, u)
			}
		}
		y[i] = v
		if v != cur {
			if ordinal {
				logq += w.row.logWeight(v)
			} else {
				logq += s.logWeight(r, sp.Values, cur, v) - penalty
			}
		}
	}
	k.forward[c] = logq - norm.value()
}

// logReverse computes log q(x|x') of chain c from what is known at x'.
func (k *dlp) logReverse(w *dlpWorker, s *State, c int) {
	k.backward[c] = 0
	if isZero(k.next.U[c]) {
		return // rejected whatever the way back
	}
	x, y := s.X.Chain(c), k.next.X.Chain(c)
	sp := s.X.Space
	penalty := sp.SquaredDistance(0, 1) / (2 * s.StepSize[c])
	ordinal, logq := isOrdinal(sp), 0.0
	norm := newSoftplusSum()
	for i, cur := range y {
		r := c*sp.Sites + i
		if ordinal {
			norm.add(w.row.weigh(&k.next.Local, sp, r, cur, s.StepSize[c]))
		} else {
			norm.add(k.next.rest[r] - penalty)
		}
		if x[i] != cur {
			if ordinal {
				logq += w.row.logWeight(x[i])
			} else {
				logq += k.next.logWeight(r, sp.Values, cur, x[i]) - penalty
			}
		}
	}
	k.backward[c] = logq - norm.value()
}

// isOrdinal says that D² differs between values other than the current one.
func isOrdinal(sp *energies.Space) bool { return sp.Kind == energies.Ordinal && sp.Values > 2 }

// softplusSum is Σ log(1+e^t) over many t, with one logarithm for hundreds of them: the
// sum of max(t, 0) and the logarithm of Π (1+e^-|t|), whose factors are at most 2. Its
// absolute error is some 1e-16 a term.
type softplusSum struct{ linear, product float64 }

func newSoftplusSum() softplusSum { return softplusSum{product: 1} }

// add adds log(1+e^t) and returns e^-|t|.
func (s *softplusSum) add(t float64) float64 {
	e := math.Exp(-math.Abs(t))
	s.linear += max(t, 0)
	if s.product *= 1 + e; s.product > 0x1p1000 {
		s.linear, s.product = s.linear+math.Log(s.product), 1
	}
	return e
}

func (s *softplusSum) value() float64 { return s.linear + math.Log(s.product) }

// leaves is the probability e^t/(1+e^t) of leaving, times 1+e, with e = e^-|t|.
func leaves(t, e float64) float64 {
	if t > 0 {
		return 1
	}
	return e
}
