package samplers_test

import (
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/samplertest"
)

// exchangeLaw sums over the ways to get from one state to the other: one site alone, or two in either order.
var exchangeLaw = metropolis(func(p *samplertest.Problem, _ samplers.Settings, _ int64, from, to int) float64 {
	sites, loose := 0.0, false
	for i := range p.Space().Sites {
		if len(p.Values(i)) < 2 {
			continue
		}
		sites++
		fixed := false
		for _, c := range p.Space().Constraints {
			fixed = fixed || c.Least == c.Most && i >= c.First && i < c.Last
		}
		loose = loose || !fixed
	}
	alone := 0.0 // share of proposals of one site
	if loose {
		alone = 0.5
	}
	if sites == 1 {
		alone = 1
	}
	x, y, changed := p.Law.X.Chain(from), p.Law.X.Chain(to), differing(p, from, to)
	others := func(i int) float64 { return float64(len(p.Values(i)) - 1) }
	switch {
	case len(changed) == 1:
		return alone / (sites * others(changed[0]))
	case len(changed) == 2:
		i, j := changed[0], changed[1]
		if x[i]+x[j] == y[i]+y[j] {
			return (1 - alone) / (sites * (sites - 1)) * (1/others(i) + 1/others(j))
		}
	}
	return 0
})
