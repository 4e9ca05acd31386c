package experiment

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/shape"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/rng"
)

// binaryNetworks samples weights. What the paper leaves open is taken from its published code: the output is
// σ(w₂·tanh(W₁x + b₁) + b₂), features have mean 0 and variance 1 on the training rows, U is -100 times the mean squared
// error on these, the log-likelihood of a chain is minus that error, and the test error is that of the mean output over
// the chains. A step size of 0.1 for codes 0 and 1 is 0.4 for spins.
var binaryNetworks = Experiment{
	Name:  "binary-networks",
	Doc:   "weights ±1 of networks with one hidden layer by Gibbs, GWG, DULA and DMALA, DULA by minibatches: log-likelihood and test error",
	Paper: "Zhang, Liu, Liu 2022, section 7.4 and appendix I.5, tables 2 and 4",
	Files: "tables with a header and the target in the last column, .csv, as compas.csv and adult.csv, beside two that are made",
	many:  true,
	run:   runBinaryNetworks,
}

// weightSamplers are those of table 2, then of table 4.
var weightSamplers = []struct {
	label, name string
	set         samplers.Settings
	batch       int // rows a step; 0: all
}{
	{"Gibbs", "gibbs", samplers.Settings{"scan": "random"}, 0}, {"GWG", "gwg", nil, 0}, {"DULA", "dula", samplers.Settings{"step-size": "0.4"}, 0},
	{"DMALA", "dmala", samplers.Settings{"step-size": "0.4"}, 0},
	{"DULA-10", "dula", samplers.Settings{"step-size": "0.4"}, 10}, {"DULA-100", "dula", samplers.Settings{"step-size": "0.4"}, 100}, {"DULA-500", "dula", samplers.Settings{"step-size": "0.4"}, 500},
}

// paperNetworks has training log-likelihood and test error of tables 2 and 4, in the order of weightSamplers.
var paperNetworks = map[string][7][2]float64{
	"compas": {{-0.4063, 0.4718}, {-0.3729, 0.4757}, {-0.3590, 0.4879}, {-0.3394, 0.4879}, {-0.4288, 0.4929}, {-0.3689, 0.4864}, {-0.3603, 0.4848}},
	"adult":  {{-0.4587, 0.4826}, {-0.4444, 0.4709}, {-0.3287, 0.3971}, {-0.3190, 0.3931}, {-0.3738, 0.4309}, {-0.3275, 0.3963}, {-0.3233, 0.3954}},
}

// networkTemperature turns a mean squared error into U.
const networkTemperature = 100

// regressionTable is a table of features, [row, feature], and targets in [0, 1]; the first train rows are for training.
type regressionTable struct {
	name            string
	features, train int
	x, y            []float64
	columns         []string // names of features, as sex=Male, of tables that were read
}

// Uses of random numbers of binary-networks.
const (
	useTable uint32 = iota + 40
	useSplit
)

func runBinaryNetworks(ctx context.Context, s Settings) (*Result, error) {
	hidden, chains, steps, rows := 500, 50, 1000, 0
	if s.Quick {
		hidden, chains, steps, rows = 8, 6, 30, 700
	}
	if s.Size != "" {
		if n, err := fmt.Sscanf(s.Size, "%dx%d", &hidden, &rows); n != 2 || err != nil || hidden < 1 || rows < 0 {
			return nil, &UsageError{"size " + s.Size + ": want HIDDENxROWS, such as 100x4000, with 0 for all rows"}
		}
	}
	if s.Chains > 0 {
		chains = s.Chains
	}
	if s.Steps > 0 {
		steps = s.Steps
	}
	var tables []*regressionTable
	for _, path := range s.Files {
		t, err := readRegression(path)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	tables = append(tables, friedmanTable(s.Seed, 5000), teacherTable(s.Seed, 5000))
	out := &Result{Header: []string{"table", "rows", "sites", "sampler", "train_log_likelihood", "se", "test_rmse", "rows_read", "seconds", "paper_train_log_likelihood", "paper_test_rmse"}}
	figure := Figure{Name: "batches", Title: "DULA by minibatches of rows", X: "rows in a step", Y: "training log-likelihood", LogX: true}
	for k, t := range tables {
		t.prepare(s.Seed, rows)
		base := t.constant()
		head := []string{t.name, fmt.Sprint(t.train), fmt.Sprint((t.features+2)*hidden + 1)}
		out.Rows = append(out.Rows, append(slices.Clone(head), "constant", short(-base[0]), "0", short(base[1]), "0", "0", "", ""))
		var found [][2]float64
		for j, w := range weightSamplers {
			s.progress(t.name+", "+w.label, k*len(weightSamplers)+j, len(tables)*len(weightSamplers))
			r, err := t.sample(ctx, s, hidden, chains, steps, j)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.name, w.label, err)
			}
			found = append(found, [2]float64{r.logLikelihood, r.rmse})
			row := append(slices.Clone(head), w.label, short(r.logLikelihood), short(r.se), short(r.rmse), fmt.Sprint(r.rows), short(r.seconds), "", "")
			if paper, ok := paperNetworks[t.name]; ok {
				row[len(row)-2], row[len(row)-1] = short(paper[j][0]), short(paper[j][1])
			}
			out.Rows = append(out.Rows, row)
			if err := s.save(out); err != nil {
				return nil, err
			}
		}
		line := Line{Name: t.name}
		for _, j := range []int{4, 5, 6, 2} { // DULA
			read := weightSamplers[j].batch
			if read == 0 {
				read = t.train
			}
			line.X, line.Y = append(line.X, float64(read)), append(line.Y, found[j][0])
		}
		figure.Lines = append(figure.Lines, line)
		likelihoods := fmt.Sprintf("%s: Gibbs %.4f, GWG %.4f, DULA %.4f, DMALA %.4f; of the best constant %.4f", t.name, found[0][0], found[1][0], found[2][0], found[3][0], -base[0])
		errs := fmt.Sprintf("%s: Gibbs %.4f, GWG %.4f, DULA %.4f, DMALA %.4f; of the best constant %.4f", t.name, found[0][1], found[1][1], found[2][1], found[3][1], base[1])
		batches := fmt.Sprintf("%s: %.4f, %.4f, %.4f with batches of 10, 100 and 500, %.4f with all rows", t.name, found[4][0], found[5][0], found[6][0], found[2][0])
		out.Claims = append(out.Claims,
			Claim{"DULA and DMALA have a higher training log-likelihood than Gibbs and GWG", likelihoods, min(found[2][0], found[3][0]) > max(found[0][0], found[1][0])},
			Claim{"DULA and DMALA have a smaller test error than Gibbs and GWG, but on COMPAS", errs, max(found[2][1], found[3][1]) < min(found[0][1], found[1][1])},
			Claim{"the log-likelihood of DULA increases with the batch", batches, found[4][0] < found[5][0] && found[5][0] < found[6][0]})
	}
	out.Figures = []Figure{figure}
	return out, nil
}

// networkModel writes E(w; X, y) = Σ_j (f_w(X_j) - y_j)² over the rows fed, for weights w of each chain in the order
// W₁, b₁, w₂, b₂.
func networkModel(features, hidden int) (*onnx.Model, error) {
	b, err := build.New(&onnx.Model{IRVersion: 8, Opsets: map[string]int64{"": 18}, Graph: &onnx.Graph{Name: "network"}}, "n/", nil)
	if err != nil {
		return nil, err
	}
	f, h := int64(features), int64(hidden)
	w := b.Input("weights", onnx.Float, shape.Sym("chain"), shape.D((f+2)*h+1))
	x, y := b.Input("x", onnx.Float, shape.Sym("row"), shape.D(f)), b.Input("y", onnx.Float, shape.Sym("row"))
	logit := twoLayers(b, w, x, f, h, 1)
	rest := b.Sub(b.Op("Sigmoid", []build.Value{b.Squeeze(logit, 2)}), y)
	b.Output("error", b.ReduceSum(b.Mul(rest, rest), []int64{1}, false))
	return b.Model(), b.Err()
}

// networkRun is what a sampler comes to: means over chains.
type networkRun struct {
	logLikelihood, se, rmse, seconds float64
	rows                             int64
}

// sample runs the sampler number j and evaluates the last states.
func (t *regressionTable) sample(ctx context.Context, s Settings, hidden, chains, steps, j int) (*networkRun, error) {
	m, err := networkModel(t.features, hidden)
	if err != nil {
		return nil, err
	}
	n := int64(t.train)
	e, err := neural.NewModel(m, neural.ModelOptions{
		Space: energies.Space{Sites: (t.features+2)*hidden + 1, Values: 2, Kind: energies.Spin}, Input: "weights", Negate: true, Temperature: float64(n) / networkTemperature, Runtime: s.Runtime,
		Data: map[string]*ort.Tensor{"x": {Shape: []int64{n, int64(t.features)}, Data: narrow(t.x[:t.train*t.features])}, "y": {Shape: []int64{n}, Data: narrow(t.y[:t.train])}},
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	choice := weightSamplers[j]
	set, read := samplers.Settings{}, t.train
	for name, value := range choice.set {
		set[name] = value
	}
	if choice.batch > 0 {
		read = min(choice.batch, t.train)
		set["batch"] = strconv.Itoa(read)
	}
	k, err := samplers.New(choice.name, e, set)
	if err != nil {
		return nil, err
	}
	clock := newClock()
	run, err := samplers.Run(ctx, samplers.Config{Kernel: k, Chains: chains, Steps: steps, Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	r := &networkRun{seconds: clock(), rows: run.State.Evaluations.Total() * int64(read)}
	u := make([]float64, chains) // not State.U, which minibatches estimate
	if err := e.LogDensity(ctx, u, run.State.X); err != nil {
		return nil, err
	}
	square := 0.0
	for _, v := range u {
		r.logLikelihood += v / networkTemperature / float64(chains)
		square += v / networkTemperature * v / networkTemperature / float64(chains)
	}
	r.se = math.Sqrt(max(square-r.logLikelihood*r.logLikelihood, 0) / float64(chains))
	r.rmse = t.testError(run.State.X, hidden)
	return r, nil
}

// testError is the root of the mean squared error of the mean output of the chains of x on the test rows.
func (t *regressionTable) testError(x energies.Batch, hidden int) float64 {
	tests := len(t.y) - t.train
	squares := make([]float64, tests)
	energies.Parallel(tests, tests*len(x.Codes), func(_, lo, hi int) {
		units := make([]float64, hidden)
		for j := lo; j < hi; j++ {
			row, mean := t.x[(t.train+j)*t.features:(t.train+j+1)*t.features], 0.0
			for c := range x.Chains() {
				w := x.Chain(c)
				for k := range units {
					units[k] = float64(2*w[t.features*hidden+k] - 1)
				}
				for i, v := range row {
					for k := range units {
						units[k] += v * float64(2*w[i*hidden+k]-1)
					}
				}
				logit := float64(2*w[len(w)-1] - 1)
				for k, v := range units {
					logit += math.Tanh(v) * float64(2*w[(t.features+1)*hidden+k]-1)
				}
				mean += 1 / (1 + math.Exp(-logit)) / float64(x.Chains())
			}
			squares[j] = (mean - t.y[t.train+j]) * (mean - t.y[t.train+j])
		}
	})
	return rootMean(squares)
}

func rootMean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return math.Sqrt(sum)
}

// constant returns the mean squared error on training rows of their mean target, and its root mean squared error on test
// rows.
func (t *regressionTable) constant() [2]float64 {
	mean, squares := 0.0, make([]float64, len(t.y))
	for _, y := range t.y[:t.train] {
		mean += y / float64(t.train)
	}
	for k, y := range t.y {
		squares[k] = (y - mean) * (y - mean)
	}
	train := rootMean(squares[:t.train])
	return [2]float64{train * train, rootMean(squares[t.train:])}
}

// prepare shuffles the rows, keeps at most the given number if it is not 0, four fifths of them for training, scales
// targets to [0, 1], and features to mean 0 and variance 1 on the training rows.
func (t *regressionTable) prepare(seed uint64, rows int) {
	var r rng.Stream
	r.Reset(seed, 0, 0, useSplit)
	n, f := len(t.y), t.features
	for k := n - 1; k > 0; k-- {
		at := r.IntN(k + 1)
		t.y[k], t.y[at] = t.y[at], t.y[k]
		for i := range f {
			t.x[k*f+i], t.x[at*f+i] = t.x[at*f+i], t.x[k*f+i]
		}
	}
	if rows > 0 && rows < n {
		n = rows
	}
	t.x, t.y, t.train = t.x[:n*f], t.y[:n], n*4/5
	lo, hi := slices.Min(t.y), slices.Max(t.y)
	for k := range t.y {
		t.y[k] = (t.y[k] - lo) / max(hi-lo, 1e-300)
	}
	for i := range f {
		mean, square := 0.0, 0.0
		for k := range t.train {
			mean += t.x[k*f+i] / float64(t.train)
		}
		for k := range t.train {
			square += (t.x[k*f+i] - mean) * (t.x[k*f+i] - mean) / float64(t.train)
		}
		for k := range n {
			if t.x[k*f+i] -= mean; square > 0 {
				t.x[k*f+i] /= math.Sqrt(square)
			}
		}
	}
}

// friedmanTable is the regression problem of Friedman (1991): y = 10 sin(πx₁x₂) + 20(x₃-½)² + 10x₄ + 5x₅ + N(0, 1) of
// ten features that are uniform on [0, 1].
func friedmanTable(seed uint64, rows int) *regressionTable {
	t := &regressionTable{name: "friedman", features: 10}
	var r rng.Stream
	r.Reset(seed, 0, 0, useTable)
	for range rows {
		var x [10]float64
		for i := range x {
			x[i] = r.Float64()
		}
		t.x = append(t.x, x[:]...)
		t.y = append(t.y, 10*math.Sin(math.Pi*x[0]*x[1])+20*(x[2]-0.5)*(x[2]-0.5)+10*x[3]+5*x[4]+r.Normal())
	}
	return t
}

// teacherTable has 20 normal features, and y = 1 with the probability that a random network of the same kind with
// 20 hidden units computes.
func teacherTable(seed uint64, rows int) *regressionTable {
	const hidden = 20
	t := &regressionTable{name: "teacher", features: 20}
	var r rng.Stream
	r.Reset(seed, 1, 0, useTable)
	var weights [20 * hidden]float64
	for k := range weights {
		weights[k] = float64(2*r.IntN(2) - 1)
	}
	for range rows {
		var x [20]float64
		for i := range x {
			x[i] = r.Normal()
		}
		logit := 0.0
		for k := range hidden {
			sum := 0.0
			for i, v := range x {
				sum += v * weights[i*hidden+k]
			}
			logit += math.Tanh(sum) * float64(1-k%2*2)
		}
		t.x, t.y = append(t.x, x[:]...), append(t.y, 0)
		if r.Float64() < 1/(1+math.Exp(-logit)) {
			t.y[len(t.y)-1] = 1
		}
	}
	return t
}

// compasColumns are those of COMPAS that the paper's code reads; is_recid, which tells the target, is not among them.
var compasColumns = []string{"priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "age", "race", "sex", "two_year_recid"}

// readRegression reads a table of numbers and words, the target in the last column. Of words a column makes one feature
// for each, 1 where it stands; of two words in the target, the later is 1. Of adult.csv the column education, which
// education_num numbers, is left out.
func readRegression(path string) (*regressionTable, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(file).ReadAll()
	if err = errors.Join(err, file.Close()); err != nil && err != io.EOF {
		return nil, &UsageError{path + ": " + err.Error()}
	}
	if len(records) < 6 {
		return nil, &UsageError{path + ": fewer than five rows"}
	}
	t := &regressionTable{name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	var columns [][]float64
	header, rows := records[0], records[1:]
	for k, name := range header {
		switch {
		case t.name == "compas" && !slices.Contains(compasColumns, name), t.name == "adult" && name == "education":
			continue
		}
		words, numbers := map[string]bool{}, make([]float64, len(rows))
		for j, row := range rows {
			if row[k] == "" {
				return nil, &UsageError{fmt.Sprintf("%s, line %d, column %d (%s): the value is missing", path, j+2, k+1, name)}
			}
			if numbers[j], err = strconv.ParseFloat(row[k], 64); err != nil {
				words[row[k]] = true
			}
		}
		list := []string{}
		for word := range words {
			list = append(list, word)
		}
		slices.Sort(list)
		if k == len(header)-1 {
			if len(list) > 0 && len(list) != 2 {
				return nil, &UsageError{fmt.Sprintf("%s, column %d (%s): the target has %d words; want numbers, or two words", path, k+1, name, len(list))}
			}
			for j, row := range rows {
				if len(list) == 2 && row[k] == list[1] {
					numbers[j] = 1
				}
			}
			t.y = numbers
			continue
		}
		if len(list) == 0 {
			columns, t.columns = append(columns, numbers), append(t.columns, name)
		}
		for _, word := range list {
			hot := make([]float64, len(rows))
			for j, row := range rows {
				if row[k] == word {
					hot[j] = 1
				}
			}
			columns, t.columns = append(columns, hot), append(t.columns, name+"="+word)
		}
	}
	t.features = len(columns)
	for j := range rows {
		for _, c := range columns {
			t.x = append(t.x, c[j])
		}
	}
	return t, nil
}
