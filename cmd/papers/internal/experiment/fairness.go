package experiment

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/samplers"
)

// fairness samples networks whose prediction must not vary with sex. As in the published code the sex is no feature, weights
// have the prior N(0, 1), all rows are read in every step, and g is from the covariance of sex and prediction. The code
// squares it, so that ∇g vanishes where g does; here g is the covariance itself, divided by the variance of the sex.
var fairness = Experiment{
	Name:  "fairness",
	Doc:   "income by a network whose prediction has no covariance with sex: O-Langevin and O-SVGD beside SGLD without constraint",
	Paper: "Zhang, Liu, Tong 2022; the slides on constrained sampling",
	Files: "a table with a column sex of two words and the target in the last column, .csv, as adult.csv; without, one is made",
	run:   runFairness,
}

// fairTable is a table with a group of two for each row.
type fairTable struct {
	*regressionTable
	group []float64 // 0 or 1, [row]
}

func runFairness(ctx context.Context, s Settings) (*Result, error) {
	hidden, rows, chains, steps := 10, 5000, 10, 1000 // the paper: 50 hidden units, 19,800 rows, 2,000 steps
	if s.Quick {
		hidden, rows, chains, steps = 3, 300, 3, 40
	}
	if s.Size != "" {
		if n, err := fmt.Sscanf(s.Size, "%dx%d", &hidden, &rows); n != 2 || err != nil || hidden < 1 || rows < 10 {
			return nil, &UsageError{"size " + s.Size + ": want HIDDENxROWS, such as 50x24750"}
		}
	}
	if s.Chains > 0 {
		chains = s.Chains
	}
	if s.Steps > 0 {
		steps = s.Steps
	}
	t, err := readFair(s, rows)
	if err != nil {
		return nil, err
	}
	n := &classifier{features: t.features, hidden: hidden, classes: 2, x: t.x[:t.train*t.features], prior: 1}
	for _, y := range t.y[:t.train] {
		n.y = append(n.y, int(y))
	}
	u, err := n.model(s, func(b *build.Builder, logp, prior build.Value) build.Value {
		return b.Add(n.likelihood(b, logp), prior)
	})
	if err != nil {
		return nil, err
	}
	defer u.Close()
	mean, variance := t.moments()
	weight := make([]float32, 0, 2*t.train)
	for _, v := range t.group[:t.train] {
		weight = append(weight, 0, float32((v-mean)/variance/float64(t.train)))
	}
	g, err := n.model(s, func(b *build.Builder, logp, _ build.Value) build.Value {
		p := b.Op("Exp", []build.Value{logp})
		return b.ReduceSum(b.Mul(p, b.Const(onnx.NewFloat("", []int64{int64(t.train), 2}, weight))), []int64{1, 2}, false)
	})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	fair, err := energies.OnZero(u, g)
	if err != nil {
		return nil, err
	}
	out := &Result{Header: []string{"sampler", "step", "test_accuracy", "test_difference", "train_slope"}}
	figures := []Figure{{Name: "difference", Title: "difference of the shares of predicted high incomes", X: "step", Y: "test rows"}, {Name: "accuracy", Title: "accuracy", X: "step", Y: "test rows"}}
	step := fmt.Sprint(1.2 / math.Sqrt(float64(t.train))) // of the order of the posterior's width
	type end struct{ accuracy, difference, slope float64 }
	ends := map[string]end{}
	for k, run := range []struct {
		name string
		e    energies.Energy
		set  samplers.Settings
	}{{"sgld", u, samplers.Settings{"step-size": step}}, {"o-langevin", fair, samplers.Settings{"step-size": step, "pull": "0.1"}}, {"o-svgd", fair, samplers.Settings{"step-size": fmt.Sprint(2 / float64(t.train)), "pull": "0.1"}}} {
		s.progress(run.name, k, 3)
		lines := [2]Line{{Name: run.name}, {Name: run.name}}
		err := n.sample(ctx, run.e, run.name, run.set, chains, steps, max(steps/20, 1), s.Seed, func(at int, x energies.Batch) {
			value := make([]float64, chains)
			if e := g.LogDensity(ctx, value, x); e != nil {
				err = e
			}
			slope := 0.0
			for _, v := range value {
				slope += math.Abs(v) / float64(chains)
			}
			accuracy, difference := t.judge(n.predict(x, t.x[t.train*t.features:]))
			ends[run.name] = end{accuracy, difference, slope}
			out.Rows = append(out.Rows, []string{run.name, fmt.Sprint(at), short(accuracy), short(difference), short(slope)})
			for j, v := range []float64{difference, accuracy} {
				lines[j].X, lines[j].Y = append(lines[j].X, float64(at)), append(lines[j].Y, v)
			}
		})
		if err != nil {
			return nil, err
		}
		for j := range figures {
			figures[j].Lines = append(figures[j].Lines, lines[j])
		}
	}
	out.Figures = figures
	a, b, c := ends["sgld"], ends["o-langevin"], ends["o-svgd"]
	out.Claims = []Claim{
		{"predictions by O-Langevin and O-SVGD do not vary with sex on training rows", fmt.Sprintf("mean |slope| %.4f and %.4f; SGLD %.4f", b.slope, c.slope, a.slope), max(b.slope, c.slope) < 0.05*a.slope},
		{"on test rows the shares of predicted high incomes differ less than half as much as by SGLD", fmt.Sprintf("%.4f and %.4f; SGLD %.4f", b.difference, c.difference, a.difference), max(b.difference, c.difference) < a.difference/2},
		{"at a small loss of accuracy, three points at most", fmt.Sprintf("%.4f and %.4f; SGLD %.4f; of the most frequent class %.4f", b.accuracy, c.accuracy, a.accuracy, t.frequent()), min(b.accuracy, c.accuracy) > a.accuracy-0.03},
	}
	return out, nil
}

// readFair reads the table of s and takes at most so many rows of it, or makes one: the teacher's with a group that two
// features tell and that decides a third of the targets.
func readFair(s Settings, rows int) (*fairTable, error) {
	var t *fairTable
	if len(s.Files) > 0 {
		whole, err := readRegression(s.Files[0])
		if err != nil {
			return nil, err
		}
		t = &fairTable{regressionTable: whole}
	} else {
		made := teacherTable(s.Seed, 5000)
		t = &fairTable{regressionTable: &regressionTable{features: made.features + 1, y: made.y, columns: make([]string, made.features+1)}}
		t.columns[made.features] = "sex=1"
		for k := range t.y {
			x, group := made.x[k*made.features:(k+1)*made.features], 0.0
			if x[0]+x[1] > 0 {
				group = 1
			}
			if k%3 == 0 {
				t.y[k] = group
			}
			t.x = append(append(t.x, x...), group)
		}
	}
	t.prepare(s.Seed, rows)
	at, kept, x := -1, 0, []float64(nil)
	for i, name := range t.columns {
		if strings.HasPrefix(name, "sex=") {
			at = i
		} else {
			kept++
		}
	}
	if at < 0 {
		return nil, &UsageError{s.Files[0] + ": no column sex of words"}
	}
	for k := range t.y {
		row, group := t.x[k*t.features:(k+1)*t.features], 0.0
		if row[at] > 0 { // prepare has subtracted the mean
			group = 1
		}
		t.group = append(t.group, group)
		for i, name := range t.columns {
			if !strings.HasPrefix(name, "sex=") {
				x = append(x, row[i])
			}
		}
	}
	t.x, t.features = x, kept
	return t, nil
}

// moments returns mean and variance of the group on training rows.
func (t *fairTable) moments() (mean, variance float64) {
	for _, v := range t.group[:t.train] {
		mean += v / float64(t.train)
	}
	return mean, mean * (1 - mean)
}

// judge returns the accuracy on test rows, and the difference of the shares of class 1 between the groups (Calders and Verwer
// 2010), for probabilities of classes.
func (t *fairTable) judge(p []float64) (accuracy, difference float64) {
	var positive, count [2]float64
	for k, y := range t.y[t.train:] {
		at := int(t.group[t.train+k])
		count[at]++
		said := 0.0
		if p[2*k+1] >= 0.5 {
			said = 1
			positive[at]++
		}
		if said == y {
			accuracy += 1 / float64(len(t.y)-t.train)
		}
	}
	return accuracy, math.Abs(positive[0]/count[0] - positive[1]/count[1])
}

// frequent is the share of the most frequent class of test rows.
func (t *fairTable) frequent() float64 {
	ones := 0.0
	for _, y := range t.y[t.train:] {
		ones += y / float64(len(t.y)-t.train)
	}
	return max(ones, 1-ones)
}
