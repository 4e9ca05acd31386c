package samplers

import (
	"context"
	"slices"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers/rng"
)

// estimate is an evaluation of some chains.
type estimate struct {
	Local        // rows by position in chains
	chains []int // which, increasing
	x      energies.Batch
	batch  [][]int32 // terms, [position, term]
	stream rng.Stream
}

// take makes e one of the listed chains of x, whose numbers are ids.
func (e *estimate) take(x energies.Batch, ids []int64) {
	e.x = energies.Batch{Space: x.Space, Codes: e.x.Codes[:0], IDs: e.x.IDs[:0]}
	for _, c := range e.chains {
		e.x.Codes = append(e.x.Codes, x.Chain(c)...)
		e.x.IDs = append(e.x.IDs, ids[c])
	}
}

// setChain copies chain j of src to chain c of l; d sites of S values.
func (l *Local) setChain(c int, src *Local, j, d, values int) {
	l.U[c] = src.U[j]
	set := func(dst, src []float32, n int) {
		if dst != nil {
			copy(dst[c*n:(c+1)*n], src[j*n:(j+1)*n])
		}
	}
	set(l.Grad, src.Grad, d*values)
	set(l.Tilt, src.Tilt, d*values)
	copy(l.rest[c*d:(c+1)*d], src.rest[j*d:(j+1)*d])
	if l.Tilt != nil {
		nb := d * blocks(values)
		copy(l.block[c*nb:(c+1)*nb], src.block[j*nb:(j+1)*nb])
	}
}

// exact evaluates the energy itself at x.
func (k *SGDLD) exact(ctx context.Context, l *Local, x energies.Batch, s *State) error {
	if !k.barker {
		return k.evalFor(ctx, l, x, s)
	}
	l.U, l.Grad = resize(l.U, x.Chains()), resize(l.Grad, len(x.Codes)*x.Space.Values)
	if err := k.energy.Answer(ctx, energies.Query{Want: energies.Gradient, X: x, U: l.U, Grad: l.Grad}); err != nil {
		return err
	}
	return k.temperRates(ctx, l, x, s.InverseTemperature())
}

// noisy estimates U and gradient of e's chains from the minibatches of a step, and
// takes the mean with what the chain's cache holds since step k.first: old has the mean
// so far, [chain].
func (k *SGDLD) noisy(ctx context.Context, e *estimate, s *State, old *Local, step int64) error {
	n, row := len(e.chains), s.X.Space.Sites*s.X.Space.Values
	e.U, e.Grad = resize(e.U, n), resize(e.Grad, n*row)
	for len(e.batch) < n {
		e.batch = append(e.batch, make([]int32, k.batch))
	}
	for j, c := range e.chains {
		k.draw(e.batch[j], &e.stream, s.Seed, s.ChainIDs[c], step)
	}
	if err := k.energy.Answer(ctx, energies.Query{Want: energies.Estimate, X: e.x, U: e.U, Grad: e.Grad, Terms: e.batch[:n]}); err != nil {
		return err
	}
	for j, c := range e.chains {
		count := step - k.first[c] + 1
		if count == 1 {
			continue
		}
		e.U[j] = old.U[c] + (e.U[j]-old.U[c])/float64(count)
		average(e.Grad[j*row:(j+1)*row], old.Grad[c*row:(c+1)*row], 1/float32(count))
	}
	return nil
}

// average replaces x by old + (x-old)·share, the running mean.
func average(x, old []float32, share float32) {
	for v, o := range old {
		x[v] = o + (x[v]-o)*share
	}
}

// draw fills terms with those of a chain's minibatch in a step, distinct and uniform.
func (k *SGDLD) draw(terms []int32, stream *rng.Stream, seed uint64, id, step int64) {
	stream.Reset(seed, id, step, useBatch)
	for j := range terms { // Fisher and Yates as far as needed
		at := j + stream.IntN(len(k.order)-j)
		k.order[j], k.order[at] = k.order[at], k.order[j]
		terms[j] = int32(k.order[j])
	}
	// Put all back in order, so that a draw depends on its stream alone. A position past
	// the first ones was touched only if its own number was drawn.
	for _, v := range terms {
		k.order[v] = int(v)
	}
	for j := range terms {
		k.order[j] = j
	}
}

// replay fills the caches of s by drawing and evaluating their minibatches again.
func (k *SGDLD) replay(ctx context.Context, s *State) error {
	n, start := s.Chains(), s.Step
	k.first = resize(k.first, n)
	for c := range k.first {
		k.first[c] = s.Step
		if k.caches {
			k.first[c] = s.Since[c]
			start = min(start, s.Since[c])
		}
	}
	row := s.X.Space.Sites * s.X.Space.Values
	s.U, s.Grad, s.Tilt = resize(s.U, n), resize(s.Grad, n*row), nil
	for step := start; step <= s.Step; step++ {
		k.est.chains = k.est.chains[:0]
		for c, first := range k.first {
			if first <= step {
				k.est.chains = append(k.est.chains, c)
			}
		}
		k.est.take(s.X, s.ChainIDs)
		if err := k.noisy(ctx, &k.est, s, &s.Local, step); err != nil {
			return err
		}
		for j, c := range k.est.chains {
			s.U[c] = k.est.U[j]
			copy(s.Grad[c*row:(c+1)*row], k.est.Grad[j*row:(j+1)*row])
		}
		s.Evaluations.Gradient += int64(len(k.est.chains))
	}
	return k.temperRates(ctx, &s.Local, s.X, s.InverseTemperature())
}

// arrive evaluates the proposed states into k.est, or, where one cannot be a state,
// what there is to know of the old one; s is not changed.
func (k *SGDLD) arrive(ctx context.Context, s *State, info *Info) error {
	e, n := &k.est, s.Chains()
	e.chains = e.chains[:0]
	k.first = resize(k.first, n)
	for c := range n {
		moved := !slices.Equal(s.X.Chain(c), k.next.X.Chain(c))
		k.first[c] = s.Step + 1
		if !moved && k.caches {
			k.first[c] = s.Since[c]
		}
		if moved || k.estimates {
			e.chains = append(e.chains, c)
		}
		info.Accept[c], info.Accepted[c] = 1, true
	}
	if err := k.evaluate(ctx, e, s, info); err != nil {
		return err
	}
	back := k.retry.chains[:0]
	for j, c := range e.chains {
		stayed := slices.Equal(s.X.Chain(c), k.next.X.Chain(c))
		err := e.checkAt(j, s.ChainIDs[c], s.Step, stayed)
		if err != nil && (stayed || !s.RejectNonFinite) {
			return err
		}
		if err != nil || isZero(e.U[j]) && !stayed {
			back = append(back, c)
		}
	}
	k.retry.chains = back
	if len(back) == 0 {
		return nil
	}
	return k.turnBack(ctx, s, info)
}

// checkAt is Local.check of the chain at position j, where a chain that stays must not
// find a term of probability zero either: there is no gradient to leave by.
func (e *estimate) checkAt(j int, id, step int64, stays bool) error {
	if stays && isZero(e.U[j]) {
		return &NonFiniteError{Chain: id, Step: step, What: "log-density", Value: e.U[j], State: cloneCodes(e.x, j)}
	}
	return e.check(j, &e.x, id, step)
}

// turnBack keeps the chains in k.retry where they were, with a minibatch more.
func (k *SGDLD) turnBack(ctx context.Context, s *State, info *Info) error {
	e, back := &k.est, &k.retry
	d, values := s.X.Space.Sites, s.X.Space.Values
	for _, c := range back.chains {
		copy(k.next.X.Chain(c), s.X.Chain(c))
		info.Accept[c], info.Accepted[c] = 0, false
		if k.caches {
			k.first[c] = s.Since[c]
		}
	}
	if !k.estimates { // what s keeps of them stands
		kept := 0
		for j, c := range e.chains {
			if slices.Contains(back.chains, c) {
				continue
			}
			if kept != j {
				e.setChain(kept, &e.Local, j, d, values)
			}
			e.chains[kept] = c
			kept++
		}
		e.chains = e.chains[:kept]
		return nil
	}
	if err := k.evaluate(ctx, back, s, info); err != nil {
		return err
	}
	for j, c := range back.chains {
		if err := back.checkAt(j, s.ChainIDs[c], s.Step, true); err != nil {
			return err
		}
		e.setChain(c, &back.Local, j, d, values) // e has every chain
	}
	return nil
}

// evaluate fills e for its chains at the proposed states, for the step after s's.
func (k *SGDLD) evaluate(ctx context.Context, e *estimate, s *State, info *Info) error {
	if len(e.chains) == 0 {
		return nil
	}
	e.take(k.next.X, s.ChainIDs)
	info.Evaluations.Gradient += int64(len(e.chains))
	if !k.estimates {
		return k.exact(ctx, &e.Local, e.x, s)
	}
	if err := k.noisy(ctx, e, s, &s.Local, s.Step+1); err != nil {
		return err
	}
	return k.temperRates(ctx, &e.Local, e.x, s.InverseTemperature())
}
