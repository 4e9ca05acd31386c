package energies

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Constraint bounds the sum of the codes of the sites from First to Last-1: it is from Least to Most.
type Constraint struct {
	First, Last int
	Least, Most int
	// Text is the constraint as it was written.
	Text string
}

// ParseConstraint reads a constraint of a space:
//
//	sum=8         the codes of all sites add up to 8
//	sum(0:16)<=5  those of sites 0 to 15 to 5 at most; >= is at least
//
// In a mixed space they are about the discrete sites. The error is a *SpaceError.
func ParseConstraint(sp *Space, text string) (Constraint, error) {
	if sp.Discrete != nil {
		sp = sp.Discrete
	}
	c := Constraint{Last: sp.Sites, Most: sp.Sites * sp.Values, Text: text}
	bad := &SpaceError{-1, fmt.Sprintf("constraint %q: want sum=8, sum<=8, sum>=8, or sum(0:16)=8 for sites 0 to 15 of %d", text, sp.Sites)}
	rest, isSum := strings.CutPrefix(strings.ReplaceAll(text, " ", ""), "sum")
	if !isSum {
		return c, bad
	}
	if inner, after, of := strings.Cut(rest, ")"); of {
		rest = after
		first, last, both := strings.Cut(strings.TrimPrefix(inner, "("), ":")
		var wrong, too error
		c.First, wrong = strconv.Atoi(first)
		c.Last, too = strconv.Atoi(last)
		if !both || wrong != nil || too != nil || c.First < 0 || c.Last > sp.Sites || c.First >= c.Last {
			return c, bad
		}
	}
	number := strings.TrimLeft(rest, "<>=")
	total, err := strconv.Atoi(number)
	if err != nil {
		return c, bad
	}
	switch strings.TrimSuffix(rest, number) {
	case "=":
		c.Least, c.Most = total, total
	case "<=":
		c.Most = total
	case ">=":
		c.Least = total
	default:
		return c, bad
	}
	return c, nil
}

// Meets reports whether a state, [site], meets every constraint and is in the ball of the space.
func (s *Space) Meets(state []int32) bool {
	if s.Discrete != nil && len(s.Discrete.Constraints) > 0 {
		codes := make([]int32, s.Discrete.Sites)
		return s.TakeDiscrete(codes, state) && s.Discrete.Meets(codes)
	}
	if s.Ball != nil && s.Ball.Distance(state) > s.Ball.Radius {
		return false
	}
	for _, c := range s.Constraints {
		sum := 0
		for _, v := range state[c.First:c.Last] {
			sum += int(v)
		}
		if sum < c.Least || sum > c.Most {
			return false
		}
	}
	return true
}

// group is a constraint with what is within it: other groups, and sites of no group within.
type group struct {
	Constraint // Least and Most are those that can be met within the group
	groups     []*group
	sites      []int
}

// codes returns the least and the greatest code of a site, or false if codes between them are not allowed.
func (s *Space) codes(site int) (least, most int, whole bool) {
	list := s.AllowedAt(site)
	if list == nil {
		return 0, s.Values - 1, true
	}
	least, most = int(list[0]), int(list[len(list)-1])
	return least, most, most-least == len(list)-1
}

// family returns a group of all sites, which holds the constraints as a tree. The error is a *SpaceError: constraints
// that overlap without one being within the other, that no state meets, or on sites with gaps in their allowed codes,
// so that moves of two sites could not reach every state.
func (s *Space) family() (*group, error) {
	order := slices.Clone(s.Constraints)
	slices.SortStableFunc(order, func(a, b Constraint) int { return cmp.Compare(a.Last-a.First, b.Last-b.First) })
	var tops []*group // that hold no site in common
	in := make([]bool, s.Sites)
	for _, c := range append(order, Constraint{Last: s.Sites, Most: s.Sites * s.Values, Text: "all sites"}) {
		if c.First < 0 || c.Last > s.Sites || c.First >= c.Last {
			return nil, &SpaceError{-1, fmt.Sprintf("constraint %s: it is about sites %d to %d of %d", c.Text, c.First, c.Last-1, s.Sites)}
		}
		g, least, most := &group{Constraint: c}, 0, 0
		var outside []*group
		for _, t := range tops {
			switch {
			case t.First >= c.First && t.Last <= c.Last:
				g.groups = append(g.groups, t)
				least, most = least+t.Least, most+t.Most
			case t.Last <= c.First || t.First >= c.Last:
				outside = append(outside, t)
			default:
				return nil, &SpaceError{-1, fmt.Sprintf("constraints %s and %s share some of their sites; want one within the other, or none in common", t.Text, c.Text)}
			}
		}
		for i := c.First; i < c.Last; i++ {
			if in[i] {
				continue
			}
			lo, hi, whole := s.codes(i)
			if !whole && len(s.Constraints) > 0 {
				return nil, &SpaceError{i, "constraints need allowed codes without gaps"}
			}
			in[i], least, most = true, least+lo, most+hi
			g.sites = append(g.sites, i)
		}
		if g.Least, g.Most = max(g.Least, least), min(g.Most, most); g.Least > g.Most {
			return nil, &SpaceError{-1, fmt.Sprintf("no state meets constraint %s: the sum is from %d to %d", c.Text, least, most)}
		}
		tops = append(outside, g)
	}
	return tops[0], nil
}

// Constrained sets state, [site], to a random one that meets every constraint; intN draws from 0 to n-1. Every such state
// has a positive probability. The error is that of Check.
func (s *Space) Constrained(state []int32, intN func(n int) int) error {
	top, err := s.family()
	if err == nil {
		top.draw(s, state, top.Least+intN(top.Most-top.Least+1), intN)
	}
	return err
}

// draw sets the sites of g so that they add up to total.
func (g *group) draw(s *Space, state []int32, total int, intN func(n int) int) {
	n := len(g.groups) + len(g.sites)
	bounds := func(k int) (least, most int) {
		if k < len(g.groups) {
			return g.groups[k].Least, g.groups[k].Most
		}
		least, most, _ = s.codes(g.sites[k-len(g.groups)])
		return least, most
	}
	sums, open := make([]int, n), []int(nil)
	for k := range sums {
		least, most := bounds(k)
		sums[k] = least
		if total -= least; most > least {
			open = append(open, k)
		}
	}
	for ; total > 0; total-- { // by one at a time, to any part that can take it
		at := intN(len(open))
		k := open[at]
		sums[k]++
		if _, most := bounds(k); sums[k] == most {
			open = slices.Delete(open, at, at+1)
		}
	}
	for k, sum := range sums {
		if k < len(g.groups) {
			g.groups[k].draw(s, state, sum, intN)
		} else {
			state[g.sites[k-len(g.groups)]] = int32(sum)
		}
	}
}

// Constrain returns e on the states that meet the constraints. The error is a *SpaceError.
func Constrain(e Energy, list ...Constraint) (Energy, error) {
	sp := *e.Space()
	held := &sp // which has the constraints
	if sp.Discrete != nil {
		discrete := *sp.Discrete
		held, sp.Discrete = &discrete, &discrete
	}
	held.Constraints = append(slices.Clone(held.Constraints), list...)
	return constrained{e, &sp}, sp.Check()
}

// constrained is an energy on a part of its space.
type constrained struct {
	Energy
	space *Space
}

// Space implements Energy.
func (c constrained) Space() *Space { return c.space }

// Unwrap returns the energy of all states.
func (c constrained) Unwrap() Energy { return c.Energy }
