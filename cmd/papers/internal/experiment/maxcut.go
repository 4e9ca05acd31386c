package experiment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/energies/table"
	"github.com/gradhop/gradhop/samplers"
)

// maxcut anneals samplers on cuts of graphs whose largest cut is known.
var maxcut = Experiment{
	Name:  "maxcut",
	Doc:   "largest cuts of graphs by annealed samplers: ratio to the best known cut against seconds",
	Paper: "Sun, Goshvadi, Nova, Schuurmans, Dai 2023, Revisiting sampling for combinatorial optimization",
	Files: "a graph in G-set, DIMACS or edge list format, instead of the generated ones",
	run:   runMaxcut,
}

// cutGraph is a graph with the weight of the best known cut; 0 is the best that is found.
type cutGraph struct {
	name  string
	graph *graph.Graph
	best  float64
}

// gset has the best known cuts of graphs in the G-set collection, by the name of the file.
var gset = map[string]float64{
	"g1": 11624, "g2": 11620, "g3": 11622, "g4": 11646, "g5": 11631, "g14": 3064, "g15": 3050, "g22": 13359, "g43": 6660,
	"g48": 6000, "g49": 6000, "g50": 5880, "g55": 10299, "g60": 14188, "g70": 9595, "g81": 14060,
}

// cutSamplers are annealed by one schedule.
var cutSamplers = []string{"gibbs", "gwg", "dmala", "pas", "dlmc"}

func runMaxcut(ctx context.Context, s Settings) (*Result, error) {
	graphs, err := cutGraphs(ctx, s)
	if err != nil {
		return nil, err
	}
	chains, steps := 16, 2000
	if s.Quick {
		chains, steps = 4, 200
	}
	out := &Result{Header: []string{"graph", "sites", "best_known", "sampler", "step", "seconds", "mean_best", "best", "ratio"}}
	reached := map[string]float64{} // least ratio over graphs by sampler
	for g, x := range graphs {
		figure := Figure{Name: x.name, Title: fmt.Sprintf("cuts of %s, %d sites, %d chains", x.name, x.graph.Sites, chains), X: "processor seconds", Y: "mean over chains of the best cut / best known", LogX: true}
		var runs []*cutRun
		for k, name := range cutSamplers {
			s.progress(name+" on "+x.name, g*len(cutSamplers)+k, len(graphs)*len(cutSamplers))
			run, err := anneal(ctx, x.graph, name, chains, steps, s.Seed)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
		known := x.best
		for _, run := range runs {
			known = max(known, run.top[len(run.top)-1])
		}
		for k, run := range runs {
			line := Line{Name: cutSamplers[k], X: run.seconds}
			for j, mean := range run.mean {
				out.Rows = append(out.Rows, []string{x.name, fmt.Sprint(x.graph.Sites), short(known), cutSamplers[k], fmt.Sprint(run.step[j]), short(run.seconds[j]), short(mean), short(run.top[j]), short(mean / known)})
				line.Y = append(line.Y, mean/known)
			}
			figure.Lines = append(figure.Lines, line)
			last := line.Y[len(line.Y)-1]
			if old, seen := reached[cutSamplers[k]]; !seen || last < old {
				reached[cutSamplers[k]] = last
			}
		}
		out.Figures = append(out.Figures, figure)
	}
	top, winner := 0.0, ""
	var all []string
	for _, name := range cutSamplers {
		all = append(all, fmt.Sprintf("%s %.4f", name, reached[name]))
		if reached[name] > top {
			top, winner = reached[name], name
		}
	}
	figures := "least ratio over graphs: " + strings.Join(all, ", ")
	out.Claims = []Claim{
		{"annealed, the best sampler comes within 1% of the best known cuts", figures, top > 0.99},
		{"a sampler that moves many sites by the gradient (dmala, pas, dlmc) cuts more in as many steps than GWG, which moves one", figures, max(reached["dmala"], reached["pas"], reached["dlmc"]) > reached["gwg"]},
		{"a sampler informed by the gradient cuts as much as Gibbs sweeps", "best " + winner + "; " + figures, winner != "gibbs"},
	}
	return out, nil
}

// cutGraphs returns the graph of the file, or generated ones: tori, of which G48 and G50 are two,
// whose largest cut is all edges, less one for each odd ring; and a random graph.
func cutGraphs(ctx context.Context, s Settings) ([]cutGraph, error) {
	if len(s.Files) == 1 {
		g, err := graph.Open(s.Files[0])
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(filepath.Base(s.Files[0]), ".")
		return []cutGraph{{name, g, gset[strings.ToLower(name)]}}, nil
	}
	sides, sites, density := [][]int{{50, 60}, {25, 120}}, 800, 0.06 // as G48, G50 and G1
	if s.Quick {
		sides, sites, density = [][]int{{6, 6}}, 14, 0.4
	}
	var list []cutGraph
	for _, n := range sides {
		g, err := graph.Lattice(n, 1, true)
		if err != nil {
			return nil, err
		}
		best := len(g.Edges)
		if n[0]%2 == 1 {
			best -= n[1] // one edge of each ring along the odd side is not cut
		}
		list = append(list, cutGraph{fmt.Sprintf("torus%dx%d", n[0], n[1]), g, float64(best)})
	}
	r := rand.New(rand.NewPCG(s.Seed, 7))
	var edges []graph.Edge
	for i := range int32(sites) {
		for j := range i {
			if r.Float64() < density {
				edges = append(edges, graph.Edge{I: j, J: i, Weight: 1})
			}
		}
	}
	g, err := graph.New(sites, edges)
	if err != nil {
		return nil, err
	}
	random := cutGraph{fmt.Sprintf("random%d", sites), g, 0}
	if s.Quick {
		e, err := pairwise.MaxCut(g, 1)
		if err != nil {
			return nil, err
		}
		all, err := table.Enumerate(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, u := range all.U {
			random.best = max(random.best, u)
		}
	}
	return append(list, random), nil
}

// cutRun is the course of one annealing: the best cuts so far, of a chain in the mean and of all.
type cutRun struct {
	step               []int
	seconds, mean, top []float64
}

// anneal raises the inverse temperature from 0.2 to 4 an edge.
func anneal(ctx context.Context, g *graph.Graph, name string, chains, steps int, seed uint64) (*cutRun, error) {
	e, err := pairwise.MaxCut(g, 1)
	if err != nil {
		return nil, err
	}
	k, err := samplers.New(name, e, nil)
	if err != nil {
		return nil, err
	}
	run, best, next := &cutRun{}, make([]float64, chains), 10.0
	clock := newClock()
	_, err = samplers.Run(ctx, samplers.Config{
		Kernel: k, Chains: chains, Steps: steps, Seed: seed,
		InverseTemperature: func(step int64) float64 { return 0.2 * math.Pow(20, float64(step)/float64(steps)) },
		Observers: []samplers.Observer{samplers.ObserverFunc(func(s *samplers.State, _ *samplers.Info) error {
			mean, top := 0.0, 0.0
			for c, u := range s.U {
				best[c] = max(best[c], u)
				mean, top = mean+best[c]/float64(chains), max(top, best[c])
			}
			if float64(s.Step) >= next || int(s.Step) == steps {
				run.step, run.seconds = append(run.step, int(s.Step)), append(run.seconds, clock())
				run.mean, run.top = append(run.mean, mean), append(run.top, top)
				next = math.Ceil(next * 1.3)
			}
			return nil
		})},
	})
	return run, err
}
