package samplers

import (
	"math"

	"github.com/gradhop/gradhop/samplers/rng"
)

// These methods serve forms of SGDLD that know one energy, as those of package special.

// Sitewise reports whether k makes jumps of every site, by minibatches, with the weights √t.
func (k *SGDLD) Sitewise() bool {
	return k.batch > 0 && k.moves == nil && !k.single && k.balance == Sqrt && !k.quenched
}

// Batch returns the number of terms in a minibatch.
func (k *SGDLD) Batch() int { return k.batch }

// Caches reports whether minibatches are kept while a state stays.
func (k *SGDLD) Caches() bool { return k.caches }

// Minibatch fills terms with those of a chain in a step. It is not safe for concurrent use.
func (k *SGDLD) Minibatch(terms []int32, stream *rng.Stream, seed uint64, id, step int64) {
	k.draw(terms, stream, seed, id, step)
}

// Time returns h of a step, or its simulation time where that is fixed.
func (k *SGDLD) Time(step int64) float64 { return k.time(step) }

// LogTime returns the logarithm of the simulation time of a step with that Time, given LogLeaveAny.
func (k *SGDLD) LogTime(time, logLeaveAny float64) float64 {
	if k.polyak == nil {
		return math.Log(time)
	}
	return math.Log(time) - logLeaveAny
}

// Weight returns the weight of a draw given LogTime of the step to come.
func (k *SGDLD) Weight(logTime float64) float64 {
	return math.Exp(min(max(logTime, -weightRange), weightRange))
}
