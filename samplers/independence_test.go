package samplers_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/samplertest"
)

// Independence has no place in the registry, since its proposals come from a program. The suite gets it under a name.
func init() {
	samplers.Register(samplers.Registration{Name: "independence", Doc: "mwg, then a proposal of a whole state", Paper: "Tierney 1994", Needs: energies.ModelConditional},
		func(e energies.Energy, _ struct{}) (*samplers.Independence, error) {
			inner, err := samplers.NewMetropolisWithinGibbs(e, samplers.MetropolisWithinGibbsOptions{})
			if err != nil {
				return nil, err
			}
			return samplers.NewIndependence(inner, slope{}, 1)
		})
}

// slope gives the values of each site weights that rise with the value and the site, but those that are not
// allowed none.
type slope struct{}

func (slope) weight(s *energies.Space, site, value int) float64 {
	if list := s.AllowedAt(site); list != nil {
		value = indexOf(list, int32(value))
	}
	if value < 0 {
		return 0
	}
	return 1 + float64((site+1)*value)
}

func indexOf(list []int32, v int32) int {
	for i, w := range list {
		if w == v {
			return i
		}
	}
	return -1
}

// Draw implements samplers.Whole.
func (q slope) Draw(_ context.Context, x energies.Batch, logQ []float64, uniform func(c int) float64) error {
	for c := range x.Chains() {
		y := x.Chain(c)
		for i := range y {
			total := 0.0
			for v := range x.Space.Values {
				total += q.weight(x.Space, i, v)
			}
			at := uniform(c) * total
			for v := range x.Space.Values {
				if at -= q.weight(x.Space, i, v); at < 0 {
					y[i] = int32(v)
					break
				}
			}
		}
	}
	return q.LogQ(context.Background(), x, logQ)
}

// LogQ implements samplers.Whole. The constant is left out.
func (q slope) LogQ(_ context.Context, x energies.Batch, logQ []float64) error {
	for c := range x.Chains() {
		logQ[c] = 0
		for i, v := range x.Chain(c) {
			logQ[c] += math.Log(q.weight(x.Space, i, int(v)))
		}
	}
	return nil
}

// independenceLaw is a step of mwg, and then Metropolis-Hastings with a proposal from slope.
var independenceLaw = samplertest.Law{
	Few: true,
	Row: func(p *samplertest.Problem, set samplers.Settings, step int64, k int) []float64 {
		row := mwgLaw.Row(p, set, step, k)
		n := len(row)
		q, total := make([]float64, n), 0.0
		for to := range q {
			q[to] = 1
			for i, v := range p.Law.X.Chain(to) {
				q[to] *= slope{}.weight(p.Space(), i, int(v))
			}
			total += q[to]
		}
		out := make([]float64, n)
		for from, arrived := range row {
			stays := arrived
			for to := range out {
				if to == from || arrived == 0 || p.Law.P[to] == 0 {
					continue
				}
				moves := arrived * min(q[to]/total, q[from]/total*p.Law.P[to]/p.Law.P[from])
				out[to] += moves
				stays -= moves
			}
			out[from] += stays
		}
		return out
	},
}

// broken is a proposal that fails after some calls.
type broken struct {
	slope
	left *int
}

func (q broken) Draw(ctx context.Context, x energies.Batch, logQ []float64, uniform func(c int) float64) error {
	if *q.left--; *q.left < 0 {
		return errors.New("broken")
	}
	return q.slope.Draw(ctx, x, logQ, uniform)
}

// TestIndependenceTakesBack: where a proposal fails, the state is as before the step.
func TestIndependenceTakesBack(t *testing.T) {
	p, left := samplertest.Problems(t)[0], 2
	inner, err := samplers.New("gibbs", p.Energy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := samplers.NewIndependence(inner, slope{}, 0); err == nil {
		t.Error("a proposal after every 0 steps is taken")
	}
	k, err := samplers.NewIndependence(inner, broken{left: &left}, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := energies.NewBatch(p.Space(), 4)
	s, info := &samplers.State{Point: samplers.Point{X: x}, ChainIDs: []int64{0, 1, 2, 3}}, &samplers.Info{}
	if err := k.Init(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := k.Step(context.Background(), s, info); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Snapshot()
	if err := k.Step(context.Background(), s, info); err == nil || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
	after := s.Snapshot()
	for i, v := range before.Codes {
		if after.Codes[i] != v || after.Step != before.Step {
			t.Fatalf("step %d: %v, before the failure step %d: %v", after.Step, after.Codes, before.Step, before.Codes)
		}
	}
}
