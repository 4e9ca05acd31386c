// Package firstrun evaluates an energy at a few states, to find out whether it works on this machine.
package firstrun

import (
	"context"
	"fmt"
	"math"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
)

// States is the number of states in the batch.
const States = 4

// Evaluate evaluates U at four random states in one batch, then U with its gradient if e has one. The
// first run of a model verifies its provider; see neural.OpenSession. Errors are those of e, and an
// error for NaN and +Inf.
func Evaluate(ctx context.Context, e energies.Oracle) error {
	ids := make([]int64, States)
	for c := range ids {
		ids[c] = int64(c)
	}
	x := samplers.RandomCodes(e.Space(), 1, ids)
	for _, want := range []energies.Capability{energies.Density, energies.Gradient} {
		if !e.Capabilities().Answers.Has(want) {
			continue
		}
		q := energies.Query{Want: want, X: x, U: make([]float64, States)}
		if want == energies.Gradient {
			q.Grad = make([]float32, len(x.Codes)*x.Space.Values)
		}
		if err := e.Answer(ctx, q); err != nil {
			return err
		}
		for _, u := range q.U {
			if math.IsNaN(u) || math.IsInf(u, 1) {
				return fmt.Errorf("at a random state U is %v", u)
			}
		}
	}
	return nil
}
