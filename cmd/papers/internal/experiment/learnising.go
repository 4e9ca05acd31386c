package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/ebm"
	"github.com/gradhop/gradhop/tasks/ebm/dataset"
	"github.com/gradhop/gradhop/tasks/ebm/network"
)

// learnIsing learns the couplings of an Ising lattice from exact draws by persistent
// contrastive divergence with an ℓ1 penalty of 0.01 and 256 chains, as the paper does. The
// paper makes 10,000 updates of 256 data at a learning rate of 0.001; here it is 300
// updates of 100 data at 0.005, which halves every 100 updates. With so few updates and a
// constant rate the steps of Adam alone put more error into the couplings than they have
// where nothing is learned.
var learnIsing = Experiment{
	Name:  "learn-ising",
	Doc:   "learn the couplings of a 25x25 Ising lattice; RMSE of the couplings by sampler and coupling",
	Paper: "Zhang, Liu and Liu 2022, section 7.3.1 and figure 5",
	run:   runLearnIsing,
}

// learning is the learning of one lattice with one sampler.
type learning struct {
	sampler string
	lattice lattice
	steps   int
	updates []int
	rmse    []float64 // after updates
	// diverged says that training ended early; rmse then stays at its last value.
	diverged error
}

func runLearnIsing(ctx context.Context, s Settings) (*Result, error) {
	side, rows, updates := 25, 2000, 300
	couplings, steps, middle := []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5}, []int{1, 20}, 2
	if s.Quick {
		// On a smaller lattice DULA, which flips a share of the sites, moves no more
		// than GWG, which flips one.
		side, rows, updates = 16, 500, 20
		couplings, steps, middle = []float64{0.2}, nil, 0
	}
	names := []string{"gibbs", "gwg", "dula", "dmala"}
	const usual = 5
	var runs []*learning
	add := func(k float64, steps int, names ...string) {
		for _, name := range names {
			runs = append(runs, &learning{sampler: name, lattice: lattice{side, k}, steps: steps})
		}
	}
	for _, k := range couplings {
		add(k, usual, names...)
	}
	for _, n := range steps {
		add(couplings[middle], n, "gwg", "dmala")
	}
	draws := map[lattice][]float64{}
	for k, r := range runs {
		s.progress(fmt.Sprintf("%s, coupling %g, %d steps", r.sampler, r.lattice.coupling, r.steps), k, len(runs))
		if draws[r.lattice] == nil {
			draws[r.lattice] = slices.Concat(r.lattice.draw(rows, 50, s.Seed)...)
		}
		if err := r.learn(ctx, s, draws[r.lattice], updates); err != nil {
			return nil, err
		}
	}
	out := &Result{Header: []string{"sampler", "coupling", "steps", "update", "samples", "rmse", "diverged"}}
	for _, r := range runs {
		for i, u := range r.updates {
			out.Rows = append(out.Rows, []string{r.sampler, short(r.lattice.coupling), strconv.Itoa(r.steps), strconv.Itoa(u),
				strconv.Itoa(u * r.steps * learnBatch), short(r.rmse[i]), strconv.FormatBool(r.diverged != nil)})
		}
	}
	pick := func(name string, k float64, steps int) *learning {
		for _, r := range runs {
			if r.sampler == name && r.lattice.coupling == k && r.steps == steps {
				return r
			}
		}
		return nil
	}
	byUpdate := Figure{Name: "updates", Title: fmt.Sprintf("Ising lattice %dx%d, coupling %g, %d steps an update", side, side, couplings[middle], usual), X: "update", Y: "RMSE of couplings", LogY: true}
	byCoupling := Figure{Name: "couplings", Title: fmt.Sprintf("Ising lattice %dx%d after %d updates of %d steps", side, side, updates, usual), X: "coupling of neighbours, nats", Y: "RMSE of couplings", LogY: true}
	for _, name := range names {
		r := pick(name, couplings[middle], usual)
		line := Line{Name: name}
		for i, u := range r.updates {
			line.X, line.Y = append(line.X, float64(u)), append(line.Y, r.rmse[i])
		}
		byUpdate.Lines = append(byUpdate.Lines, line)
		line = Line{Name: name}
		for _, k := range couplings {
			line.X, line.Y = append(line.X, k), append(line.Y, pick(name, k, usual).last())
		}
		byCoupling.Lines = append(byCoupling.Lines, line)
	}
	out.Figures = []Figure{byUpdate, byCoupling}
	for _, k := range couplings {
		out.Claims = append(out.Claims, smaller(fmt.Sprintf("at coupling %g", k), pick("gibbs", k, usual), pick("gwg", k, usual), pick("dula", k, usual), pick("dmala", k, usual)))
	}
	if len(steps) > 0 {
		out.Claims = append(out.Claims, gain(couplings[middle], steps[0], steps[1], pick))
	}
	return out, nil
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func (r *learning) last() float64 { return r.rmse[len(r.rmse)-1] }

// smaller is the claim that both Langevin samplers learn better than both others.
func smaller(where string, gibbs, gwg, dula, dmala *learning) Claim {
	return Claim{
		Text:    "DULA and DMALA have a smaller RMSE than Gibbs and GWG " + where,
		Figures: fmt.Sprintf("gibbs %.4f, gwg %.4f, dula %.4f, dmala %.4f", gibbs.last(), gwg.last(), dula.last(), dmala.last()),
		Holds:   max(dula.last(), dmala.last()) < min(gibbs.last(), gwg.last()),
	}
}

// gain is the claim that DMALA gains more over GWG with fewer steps an update.
func gain(k float64, few, many int, pick func(string, float64, int) *learning) Claim {
	ratio := func(n int) float64 { return pick("gwg", k, n).last() / pick("dmala", k, n).last() }
	return Claim{
		Text:    fmt.Sprintf("at coupling %g DMALA gains more over GWG with %d steps an update than with %d", k, few, many),
		Figures: fmt.Sprintf("RMSE of gwg over that of dmala %.2f and %.2f", ratio(few), ratio(many)),
		Holds:   ratio(few) > ratio(many) && ratio(few) > 1,
	}
}

// learnBatch is the number of data, and of chains, in an update.
const learnBatch = 100

// stepSizes are those of the paper (appendix I.4), 0.1 and 0.15 for values 0 and 1: spins
// are twice as far apart, and a move costs its squared distance over 2α.
var stepSizes = map[string]string{"dula": "0.4", "dmala": "0.6"}

// learn trains a model without couplings on draws of the lattice, [row, site].
func (r *learning) learn(ctx context.Context, s Settings, draws []float64, updates int) error {
	d := r.lattice.side * r.lattice.side
	every := updates / 6
	space := energies.Space{Sites: d, Values: 2, Kind: energies.Spin}
	data, err := dataset.New("lattice", &space, draws, 1, dataset.Exact, s.Seed)
	if err != nil {
		return err
	}
	model, err := network.New("ising", network.Options{Space: space, Seed: s.Seed})
	if err != nil {
		return err
	}
	settings := ebm.Settings{Sampler: r.sampler, Options: samplers.Settings{}, Steps: r.steps, Batch: learnBatch, Buffer: 256, Freeze: []string{"field"},
		Optimizer: ebm.Optimizer{LearningRate: 0.005, HalfLife: updates / 3, L1: 0.01}, Seed: s.Seed, Runtime: s.Runtime}
	if size := stepSizes[r.sampler]; size != "" {
		settings.Options["step-size"] = size
	}
	t, err := ebm.New(ctx, model, data, settings)
	if err != nil {
		return err
	}
	defer t.Close()
	want := r.lattice.matrix()
	for t.Updates() < updates {
		if _, r.diverged = t.Step(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if r.diverged != nil {
			break
		}
		if n := t.Updates(); n%every == 0 {
			r.updates = append(r.updates, n)
			r.rmse = append(r.rmse, couplingError(t.Weights().Data(0), want, d))
		}
	}
	for n := (len(r.updates) + 1) * every; n <= updates; n += every {
		r.updates = append(r.updates, n)
		r.rmse = append(r.rmse, couplingError(t.Weights().Data(0), want, d))
	}
	return nil
}

// couplingError is the RMSE of the couplings ½(A + Aᵀ) off the diagonal, for weights A,
// [site, site].
func couplingError(a []float32, want []float64, d int) float64 {
	sum := 0.0
	for i := range d {
		for j := range i {
			diff := (float64(a[i*d+j])+float64(a[j*d+i]))/2 - want[i*d+j]
			sum += diff * diff
		}
	}
	return math.Sqrt(sum / float64(d*(d-1)/2))
}
