package facility

import (
	"cmp"
	"math"
	"slices"

	"github.com/gradhop/gradhop/internal/logistic"
)

// Mean is the mean cost of a state over scenarios, and the mean change of it by every change of one site, under the
// same demands. What a change costs at a closed facility is linear in the demand, and follows from the mean demands:
// only open facilities keep a number for each customer. It is not safe for concurrent use.
type Mean struct {
	p *Problem
	// Facilities by the cost of a unit at them while they are closed, and that cost, [customer, rank].
	order []int32
	units []float64

	state []int32
	count float64
	cost  float64
	flip  []float64 // mean change by opening or closing, [facility]
	// Of each customer: the mean demand, and the mean cost of outsourcing that ends where it leaves.
	demand, relief []float64
	open           []int32   // open facilities
	rank           []int32   // their positions in open, [facility]
	added          []float32 // mean cost of outsourcing by a customer more, [position in open, customer]

	load, excess, row []float64 // scratch, [facility]
}

// NewMeans returns n means for p, without a state.
func NewMeans(p *Problem, n int) []Mean {
	facilities, customers := p.facilities(), p.Customers()
	order, units := make([]int32, 0, facilities*customers), make([]float64, 0, facilities*customers)
	for j := range customers {
		closed := func(i int32) float64 { return p.Ship[j*facilities+int(i)] + p.Outsource[i] }
		for i := range facilities {
			order = append(order, int32(i))
		}
		slices.SortStableFunc(order[j*facilities:], func(a, b int32) int { return cmp.Compare(closed(a), closed(b)) })
		for _, i := range order[j*facilities:] {
			units = append(units, closed(i))
		}
	}
	means := make([]Mean, n)
	for k := range means {
		means[k] = Mean{p: p, order: order, units: units, flip: make([]float64, facilities), demand: make([]float64, customers), relief: make([]float64, customers),
			rank: make([]int32, facilities), load: make([]float64, facilities), excess: make([]float64, facilities), row: make([]float64, facilities)}
	}
	return means
}

// Reset begins the mean of a state, [site].
func (m *Mean) Reset(state []int32) {
	m.state = append(m.state[:0], state...)
	m.count, m.cost, m.open = 0, 0, m.open[:0]
	for i := range m.flip {
		if state[i] == 1 {
			m.rank[i] = int32(len(m.open))
			m.open = append(m.open, int32(i))
		}
	}
	clear(m.flip)
	clear(m.demand)
	clear(m.relief)
	if n := len(m.open) * len(m.demand); cap(m.added) < n {
		m.added = make([]float32, n)
	} else {
		m.added = m.added[:n]
		clear(m.added)
	}
}

// Add adds a scenario with demands d, [customer].
func (m *Mean) Add(d []float64) {
	p, n := m.p, m.p.facilities()
	served := m.state[n:]
	m.count++
	share := 1 / m.count
	clear(m.load)
	cost := 0.0
	for j, i := range served {
		m.load[i] += d[j]
		cost += p.Ship[j*n+int(i)] * d[j]
	}
	for i, load := range m.load {
		without, with := p.Outsource[i]*load, p.Outsource[i]*max(load-p.Capacity[i], 0)
		change := p.Open[i] + with - without
		if m.state[i] == 0 {
			m.excess[i] = load
			cost += without
		} else {
			m.excess[i] = load - p.Capacity[i]
			cost += p.Open[i] + with
			change = -change
		}
		m.flip[i] += (change - m.flip[i]) * share
	}
	m.cost += (cost - m.cost) * share
	for j, i := range served {
		e := m.excess[i]
		m.demand[j] += (d[j] - m.demand[j]) * share
		m.relief[j] += (p.Outsource[i]*(max(e, 0)-max(e-d[j], 0)) - m.relief[j]) * share
	}
	for o, i := range m.open {
		e, g := m.excess[i], p.Outsource[i]
		here, added := max(e, 0), m.added[o*len(d):(o+1)*len(d)]
		for j, x := range d {
			mean := float64(added[j])
			added[j] = float32(mean + (g*(max(e+x, 0)-here)-mean)*share)
		}
	}
}

// Cost returns the mean cost of the state.
func (m *Mean) Cost() float64 { return m.cost }

// Change returns the mean change of the cost where a site gets value v.
func (m *Mean) Change(site int, v int32) float64 {
	n := m.p.facilities()
	switch {
	case m.state[site] == v:
		return 0
	case site < n:
		return m.flip[site]
	}
	j := site - n
	change := m.p.Ship[j*n+int(v)]*m.demand[j] - m.stay(j)
	if m.state[v] == 1 {
		return change + float64(m.added[int(m.rank[v])*len(m.demand)+j])
	}
	return change + m.p.Outsource[v]*m.demand[j]
}

// stay is the mean cost that ends where a customer leaves.
func (m *Mean) stay(j int) float64 {
	n := m.p.facilities()
	return m.p.Ship[j*n+int(m.state[n+j])]*m.demand[j] + m.relief[j]
}

// LogLeaves sets leave, [site], to log Σ_v e^(-scale·Change(site, v)) over the values other than the site's own.
func (m *Mean) LogLeaves(leave []float64, scale float64) {
	n := m.p.facilities()
	for i, change := range m.flip {
		leave[i] = -scale * change
	}
	for j, from := range m.state[n:] {
		demand, ship := m.demand[j], m.p.Ship[j*n:(j+1)*n]
		row, least, at := m.row[:0], math.Inf(1), 0
		for o, i := range m.open {
			if i == from {
				continue
			}
			change := ship[i]*demand + float64(m.added[o*len(m.demand)+j])
			if change < least {
				least, at = change, len(row)
			}
			row = append(row, change)
		}
		units := m.units[j*n : (j+1)*n]
		for k, i := range m.order[j*n : (j+1)*n] {
			if m.state[i] == 1 || i == from {
				continue
			}
			change := units[k] * demand
			if change < least {
				least, at = change, len(row)
			}
			if scale*(change-least) > logistic.Reach {
				break // as are all that follow, nothing beside the least
			}
			row = append(row, change)
		}
		row[0], row[at] = row[at], row[0] // the greatest weight first spares exponentials
		sum := logistic.NewSumExp[float64](-scale, m.stay(j))
		sum.Add(row)
		leave[n+j] = sum.Value()
	}
}

// Pick returns the value other than the site's own at which the cumulative share of e^(-scale·Change(site, v)) passes
// u, from 0 to 1, given LogLeaves of the site.
func (m *Mean) Pick(site int, scale, leave, u float64) int32 {
	n, own := m.p.facilities(), m.state[site]
	if site < n {
		return 1 - own
	}
	last := own
	for v := range int32(n) {
		if v == own {
			continue
		}
		if share := math.Exp(-scale*m.Change(site, v) - leave); share > 0 {
			last = v
			if u -= share; u < 0 {
				break
			}
		}
	}
	return last
}

// Steepest returns the change of one site whose mean cost is least, and that mean, which may be above zero.
func (m *Mean) Steepest() (site int, value int32, change float64) {
	n := m.p.facilities()
	change = math.Inf(1)
	try := func(i int, v int32) {
		if c := m.Change(i, v); c < change && v != m.state[i] {
			site, value, change = i, v, c
		}
	}
	for i, own := range m.state[:n] {
		try(i, 1-own)
	}
	for j := range m.demand {
		for _, i := range m.open {
			try(n+j, i)
		}
		for _, i := range m.order[j*n : (j+1)*n] {
			if m.state[i] == 0 && i != m.state[n+j] {
				try(n+j, i)
				break // the others cost more
			}
		}
	}
	return site, value, change
}
