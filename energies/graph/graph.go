// Package graph has the weighted graphs on which energies of known form are defined:
// lattices, complete graphs, and files in public formats.
package graph

import (
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/energies"
)

// Edge joins two sites.
type Edge struct {
	I, J   int32
	Weight float64
}

// Graph is an undirected graph without loops; no pair is joined twice.
type Graph struct {
	Sites int
	Edges []Edge
}

func bad(format string, args ...any) error {
	return &energies.DefinitionError{What: "graph", Reason: fmt.Sprintf(format, args...)}
}

// New returns the graph with these edges. Edges between the same sites are added up; the error
// is an *energies.DefinitionError for a site out of range or an edge from a site to itself.
func New(sites int, edges []Edge) (*Graph, error) {
	if sites < 1 {
		return nil, bad("%d sites; at least one is needed", sites)
	}
	g := &Graph{Sites: sites, Edges: slices.Clone(edges)}
	for k, e := range g.Edges {
		if e.I < 0 || e.J < 0 || int(e.I) >= sites || int(e.J) >= sites {
			return nil, bad("edge %d joins %d and %d; sites are 0 to %d", k, e.I, e.J, sites-1)
		}
		if e.I == e.J {
			return nil, bad("edge %d joins site %d to itself", k, e.I)
		}
		if e.I > e.J {
			g.Edges[k].I, g.Edges[k].J = e.J, e.I
		}
	}
	slices.SortStableFunc(g.Edges, func(a, b Edge) int {
		if a.I != b.I {
			return int(a.I) - int(b.I)
		}
		return int(a.J) - int(b.J)
	})
	merged := g.Edges[:0]
	for _, e := range g.Edges {
		if n := len(merged); n > 0 && merged[n-1].I == e.I && merged[n-1].J == e.J {
			merged[n-1].Weight += e.Weight
		} else {
			merged = append(merged, e)
		}
	}
	g.Edges = merged
	return g, nil
}

// Lattice returns the lattice of the given sides with edges of one weight between nearest
// neighbours; the last side varies fastest in the numbers of sites. A periodic lattice is a
// torus. The error is an
// *energies.DefinitionError.
func Lattice(sides []int, weight float64, periodic bool) (*Graph, error) {
	sites := 1
	for _, n := range sides {
		if n < 1 || sites > 1<<30/n {
			return nil, bad("a lattice of sides %v; sides are positive and make at most 2^30 sites", sides)
		}
		sites *= n
	}
	var edges []Edge
	for site := range sites {
		stride := sites
		for _, n := range sides {
			stride /= n
			at := site / stride % n
			switch {
			case at+1 < n:
				edges = append(edges, Edge{int32(site), int32(site + stride), weight})
			case periodic && n > 2: // with two sites the neighbour on both sides is one
				edges = append(edges, Edge{int32(site), int32(site - at*stride), weight})
			}
		}
	}
	return New(sites, edges)
}

// Neighbours is a graph as lists of neighbours, [site], in compressed rows: those of site i are
// To[Start[i]:Start[i+1]], in increasing order.
type Neighbours struct {
	Start, To []int32
	Weight    []float64
}

// Neighbours lists the neighbours of all sites.
func (g *Graph) Neighbours() Neighbours {
	n := Neighbours{Start: make([]int32, g.Sites+1), To: make([]int32, 2*len(g.Edges)), Weight: make([]float64, 2*len(g.Edges))}
	for _, e := range g.Edges {
		n.Start[e.I+1]++
		n.Start[e.J+1]++
	}
	for i := range g.Sites {
		n.Start[i+1] += n.Start[i]
	}
	next := slices.Clone(n.Start)
	put := func(i, j int32, w float64) {
		n.To[next[i]], n.Weight[next[i]] = j, w
		next[i]++
	}
	for _, e := range g.Edges { // sorted by the smaller site: neighbours below come first
		put(e.J, e.I, e.Weight)
	}
	for _, e := range g.Edges {
		put(e.I, e.J, e.Weight)
	}
	return n
}

// Colours divides the sites into classes without edges inside, by the greedy rule in the order
// of sites: two for a lattice that has a colouring by two, at most one more than the largest
// number of neighbours.
func (g *Graph) Colours() [][]int32 {
	n := g.Neighbours()
	colour, taken := make([]int, g.Sites), []int{}
	var classes [][]int32
	for i := range colour {
		for _, j := range n.To[n.Start[i]:n.Start[i+1]] {
			if int(j) < i {
				taken[colour[j]] = i + 1
			}
		}
		at := slices.IndexFunc(taken, func(t int) bool { return t != i+1 })
		if at < 0 {
			at = len(taken)
			taken, classes = append(taken, 0), append(classes, nil)
		}
		colour[i] = at
		classes[at] = append(classes[at], int32(i))
	}
	return classes
}
