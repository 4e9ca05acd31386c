// Package known parses energies of known form from one-line descriptions:
//
//	ising:20x20,0.3          Ising model on a torus, coupling 0.3
//	ising:20x20,0.3,0.1      with a field of 0.1 at every site
//	ising:edges.txt,0.3      on the graph in a file, whose weights the coupling multiplies
//	potts:16x16,3,1.0        Potts model of 3 values on a torus; or on a file
//	bernoulli:100,0.2        independent bits, each 1 with probability 0.2
//	categorical:10x5         independent uniform sites of 5 values
//	gaussian-bernoulli:4     the model of Sun et al. (2023), eq. 28
//	quenched:4x65536,1       the same as a mean over 65536 draws of its Gaussian variable, of seed 1
//	facility:15x30,1,200     facility location: 15 facilities, 30 customers, random demands, simulated with seed 1; temperature 200
//	facility:cap41.txt,0.5,9 the problem in a file at temperature 9, with demands that vary by half: see [facility.Read]
//	fhmm:100x10,1            factorial hidden Markov model, 100 times, 10 chains, simulated with seed 1
//	logistic:18x1000,1       variable selection with 18 variables and 1000 data, simulated with seed 1
//	rbm:784x500,1            RBM of 784 sites and 500 hidden units, random weights of seed 1
//	rbm-joint:784x500,1      the same with its hidden units kept as sites
//	maxcut:G1.txt,2          cuts of the graph in a file, at inverse temperature 2
//	mis:graph.dimacs,3       independent sets of the graph in a file, at inverse temperature 3
//
// Couplings and fields are in nats: U = J·Σ s_i·s_j + h·Σ s_i over the edges of the graph. Graph files
// have the formats of [graph.Read].
package known

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/independent"
	"github.com/gradhop/gradhop/energies/pairwise"
	"github.com/gradhop/gradhop/energies/potts"
	"github.com/gradhop/gradhop/energies/rbm"
	"github.com/gradhop/gradhop/internal/facility"
	"github.com/gradhop/gradhop/internal/mixture"
	"github.com/gradhop/gradhop/internal/selection"
)

// Named is an energy with its description.
type Named struct {
	// Energy has the concrete type of its package.
	energies.Energy
	// Text is the description, without the folder of a file.
	Text string
	// SHA256 identifies the energy: the hash of Text and of the file, if any.
	SHA256 string
}

// Unwrap returns n.Energy.
func (n *Named) Unwrap() energies.Energy { return n.Energy }

type form struct {
	name, usage string
	file        bool // the part after the colon may be a graph file
	most        int  // maximum number of numbers after the first part
	size        func(p *part) Size
	make        func(p *part) (energies.Energy, error)
}

// part is the text after the colon: "16x16,3,1.0" has the dimensions 16 and 16 and the numbers 3 and 1.
// If the first item is not of the form NxM, it is a file name.
type part struct {
	dims    []int
	path    string
	numbers []float64
}

func (p *part) number(k int, byDefault float64) float64 {
	if k < len(p.numbers) {
		return p.numbers[k]
	}
	return byDefault
}

var errForm = errors.New("wrong form")

// dim2 returns the two dimensions, or an error if there are not exactly two.
func (p *part) dim2() (int, int, error) {
	if len(p.dims) != 2 {
		return 0, 0, errForm
	}
	return p.dims[0], p.dims[1], nil
}

// graph returns a torus, or the graph of the file, with weights multiplied by factor.
func (p *part) graph(factor float64) (*graph.Graph, error) {
	if p.path == "" {
		return graph.Lattice(p.dims, factor, true)
	}
	g, err := graph.Open(p.path)
	if err != nil {
		return nil, err
	}
	for k := range g.Edges {
		g.Edges[k].Weight *= factor
	}
	return g, nil
}

var forms = []form{
	{"bernoulli", "bernoulli:SITES,PROBABILITY", false, 1, func(p *part) Size { return Size{p.dim(0), 2, 96 * p.dim(0)} }, func(p *part) (energies.Energy, error) {
		if len(p.dims) != 1 {
			return nil, errForm
		}
		one := p.number(0, 0.5)
		var table []float64
		for range p.dims[0] {
			table = append(table, 1-one, one)
		}
		return independent.New(energies.Space{Sites: p.dims[0], Values: 2, Kind: energies.Binary}, table)
	}},
	{"categorical", "categorical:SITESxVALUES", false, 0, func(p *part) Size { return Size{p.dim(0), p.dim(1), 16 * p.dim(0) * p.dim(1)} }, func(p *part) (energies.Energy, error) {
		d, s, err := p.dim2()
		if err != nil {
			return nil, err
		}
		return independent.New(energies.Space{Sites: d, Values: s}, nil)
	}},
	{"facility", "facility:FACILITIESxCUSTOMERS,SEED,TEMPERATURE[,SCENARIOS] or facility:FILE,SPREAD,TEMPERATURE[,SCENARIOS]", true, 3, func(p *part) Size {
		return Size{p.dim(0) + p.dim(1), p.dim(0), 16 * p.dim(0) * p.dim(1)}
	}, func(p *part) (energies.Energy, error) { return facilities(p) }},
	{"fhmm", "fhmm:TIMESxCHAINS,SEED", false, 1, func(p *part) Size {
		sites := p.dim(0) * p.dim(1)
		return ofGraph(sites, 2, sites*(p.dim(1)+1)/2)
	}, func(p *part) (energies.Energy, error) {
		times, chains, err := p.dim2()
		if err != nil {
			return nil, err
		}
		return simulateHMM(times, chains, uint64(p.number(0, 0))).Model()
	}},
	{"gaussian-bernoulli", "gaussian-bernoulli:SITES", false, 0, func(p *part) Size { return ofGraph(p.dim(0), 2, p.dim(0)*p.dim(0)/2) }, func(p *part) (energies.Energy, error) {
		if len(p.dims) != 1 {
			return nil, errForm
		}
		return pairwise.GaussianBernoulli(p.dims[0])
	}},
	{"ising", "ising:LxL,COUPLING[,FIELD] or ising:FILE,COUPLING[,FIELD]", true, 2, func(p *part) Size { return p.lattice(2) }, func(p *part) (energies.Energy, error) {
		if len(p.numbers) == 0 {
			return nil, errForm
		}
		g, err := p.graph(p.numbers[0])
		if err != nil {
			return nil, err
		}
		return pairwise.Ising(g, p.number(1, 0))
	}},
	{"logistic", "logistic:VARIABLESxDATA,SEED", false, 1, func(p *part) Size { return Size{p.dim(0), 2, 8 * p.dim(0) * p.dim(1)} }, func(p *part) (energies.Energy, error) {
		variables, data, err := p.dim2()
		if err != nil {
			return nil, err
		}
		return selection.Simulate(variables, data, uint64(p.number(0, 0)))
	}},
	{"maxcut", "maxcut:FILE,BETA", true, 1, func(p *part) Size { return p.lattice(2) }, func(p *part) (energies.Energy, error) {
		g, err := p.graph(1)
		if err != nil {
			return nil, err
		}
		return pairwise.MaxCut(g, p.number(0, 1))
	}},
	{"mis", "mis:FILE,BETA[,PENALTY]", true, 2, func(p *part) Size { return p.lattice(2) }, func(p *part) (energies.Energy, error) {
		g, err := p.graph(1)
		if err != nil {
			return nil, err
		}
		return pairwise.IndependentSet(g, p.number(0, 1), p.number(1, 1.1))
	}},
	{"potts", "potts:LxL,VALUES,COUPLING or potts:FILE,VALUES,COUPLING", true, 2, func(p *part) Size { return p.lattice(p.number(0, 2)) }, func(p *part) (energies.Energy, error) {
		if len(p.numbers) != 2 || p.numbers[0] != math.Trunc(p.numbers[0]) || p.numbers[0] > 1<<20 {
			return nil, errForm
		}
		g, err := p.graph(p.numbers[1])
		if err != nil {
			return nil, err
		}
		return potts.NewOnGraph(g, int(p.numbers[0]))
	}},
	{"quenched", "quenched:SITESxTERMS,SEED", false, 1, func(p *part) Size { return Size{p.dim(0), 2, 32 * p.dim(0) * p.dim(1)} }, func(p *part) (energies.Energy, error) {
		d, terms, err := p.dim2()
		if err != nil {
			return nil, err
		}
		return mixture.GaussianBernoulli(d, terms, uint64(p.number(0, 0)))
	}},
	{"rbm", "rbm:SITESxHIDDEN,SEED", false, 1, func(p *part) Size { return Size{p.dim(0), 2, rbmWeight * p.dim(0) * p.dim(1)} }, func(p *part) (energies.Energy, error) { return randomMachine(p) }},
	{"rbm-joint", "rbm-joint:SITESxHIDDEN,SEED", false, 1, func(p *part) Size { return Size{p.dim(0) + p.dim(1), 2, rbmWeight * p.dim(0) * p.dim(1)} }, func(p *part) (energies.Energy, error) {
		m, err := randomMachine(p)
		if err != nil {
			return nil, err
		}
		return m.Joint(), nil
	}},
}

// manyScenarios is the number of demands that the mean of a facility location problem is taken over.
const manyScenarios = 1024

// facilities simulates or reads a facility location problem.
func facilities(p *part) (energies.Energy, error) {
	scenarios := p.number(2, manyScenarios)
	if len(p.numbers) < 2 || scenarios != math.Trunc(scenarios) || scenarios < 1 || scenarios > math.MaxInt32 {
		return nil, errForm
	}
	if p.path == "" {
		n, m, err := p.dim2()
		if err != nil {
			return nil, err
		}
		problem, err := facility.Simulate(n, m, uint64(p.number(0, 0)))
		if err != nil {
			return nil, err
		}
		return facility.New(problem, p.numbers[1], int(scenarios), uint64(p.number(0, 0)))
	}
	problem, err := facility.Open(p.path)
	if err != nil {
		return nil, err
	}
	problem.Spread = p.number(0, 0)
	return facility.New(problem, p.numbers[1], int(scenarios), 0)
}

// randomMachine draws the weights of an RBM.
func randomMachine(p *part) (*rbm.Model, error) {
	d, h, err := p.dim2()
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(p.number(0, 0)), 1))
	normal := func(n int, scale float64) []float64 {
		x := make([]float64, n)
		for k := range x {
			x[k] = scale * r.NormFloat64()
		}
		return x
	}
	return rbm.New(normal(d*h, 1/math.Sqrt(float64(d))), normal(d, 0.5), normal(h, 0.5))
}

// simulateHMM simulates a factorial model as in appendix F of Grathwohl et al. (2021): initial
// probability 0.1, probability 0.95 of staying, noise 0.5.
func simulateHMM(times, chains int, seed uint64) pairwise.FactorialHMM {
	r := rand.New(rand.NewPCG(seed, 2))
	h := pairwise.FactorialHMM{Start: 0.1, Stay: 0.95, Noise: 0.5, Bias: r.NormFloat64()}
	for range chains {
		h.Emission = append(h.Emission, r.NormFloat64())
	}
	on := make([]bool, chains)
	for t := range times {
		y := h.Bias + h.Noise*r.NormFloat64()
		for k := range on {
			if t == 0 {
				on[k] = r.Float64() < h.Start
			} else if r.Float64() >= h.Stay {
				on[k] = !on[k]
			}
			if on[k] {
				y += h.Emission[k]
			}
		}
		h.Observed = append(h.Observed, y)
	}
	return h
}

// Forms returns the usage of every form accepted by Parse, in alphabetical order.
func Forms() []string {
	var list []string
	for _, f := range forms {
		list = append(list, f.usage)
	}
	return list
}

// Parse returns the energy described by text. Errors are *energies.DefinitionError,
// *energies.SpaceError, or those of [graph.Open] and the file system.
func Parse(text string) (*Named, error) {
	f, p, err := find(text)
	if err != nil {
		return nil, err
	}
	e, err := f.make(p)
	if errors.Is(err, errForm) {
		return nil, &energies.DefinitionError{What: fmt.Sprintf("energy %q", text), Reason: "want " + f.usage}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &energies.DefinitionError{What: fmt.Sprintf("energy %q", text), Reason: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return named(e, text, p.path)
}

// find parses a description. Errors are *energies.DefinitionError.
func find(text string) (form, *part, error) {
	name, rest, _ := strings.Cut(text, ":")
	reason := "unknown form; want one of\n  " + strings.Join(Forms(), "\n  ")
	if k := slices.IndexFunc(forms, func(f form) bool { return f.name == name }); k >= 0 {
		p, err := parse(forms[k], rest)
		if err == nil {
			return forms[k], p, nil
		}
		reason = err.Error()
	}
	return form{}, nil, &energies.DefinitionError{What: fmt.Sprintf("energy %q", text), Reason: reason}
}

func parse(f form, text string) (*part, error) {
	p, pieces := &part{}, strings.Split(text, ",")
	bad := errors.New("want " + f.usage)
	for side := range strings.SplitSeq(pieces[0], "x") {
		n, err := strconv.Atoi(side)
		if err != nil {
			p.dims, p.path = nil, pieces[0]
			break
		}
		if n < 1 || n > 1<<28 {
			return nil, fmt.Errorf("%d: want a number from 1 to 2^28", n)
		}
		p.dims = append(p.dims, n)
	}
	if pieces[0] == "" || p.path != "" && !f.file || len(pieces)-1 > f.most {
		return nil, bad
	}
	for _, piece := range pieces[1:] {
		x, err := strconv.ParseFloat(piece, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, bad
		}
		p.numbers = append(p.numbers, x)
	}
	return p, nil
}

// named adds the description and the hash of an energy.
func named(e energies.Energy, text, path string) (*Named, error) {
	n, hash := &Named{Energy: e, Text: text}, sha256.New()
	if path != "" {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		n.Text = strings.Replace(text, path, path[strings.LastIndexAny(path, `/\`)+1:], 1)
		hash.Write(file)
	}
	hash.Write([]byte(n.Text))
	n.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return n, nil
}

// Path returns the file that text refers to, or "".
func Path(text string) string {
	if _, p, err := find(text); err == nil {
		return p.path
	}
	return ""
}
