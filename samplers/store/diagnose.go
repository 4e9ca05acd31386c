package store

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gradhop/gradhop/samplers/diag"
)

// Row holds the statistics of one variable over all draws of all chains. They are computed by package
// diag, and quantiles are interpolated (type 7), so that they equal ArviZ's. NA is NaN. If draws are
// weighted, all are estimates for the weighted distribution, by diag.SummarizeWeighted and
// diag.QuantilesWeighted.
type Row struct {
	// Name is "lp" for the log-density or "x[3]" for the value of site 3 (from 0). In a categorical
	// space it is "x[3]=17" for the indicator that the site has its most frequent value, or the value
	// with most weight, since means of codes are meaningless.
	Name    string      `json:"name"`
	Mean    diag.Number `json:"mean"`
	SD      diag.Number `json:"sd"`
	Q5      diag.Number `json:"q5"`
	Median  diag.Number `json:"median"`
	Q95     diag.Number `json:"q95"`
	MCSE    diag.Number `json:"mcse_mean"`
	ESSBulk diag.Number `json:"ess_bulk"`
	ESSTail diag.Number `json:"ess_tail"`
	RHat    diag.Number `json:"rhat"`
}

// Table is the table of diagnostics of a run.
type Table struct {
	Chains int `json:"chains"`
	Draws  int `json:"draws"` // of each chain
	// Weighted means that draws have weights. WeightESS is then diag.WeightESS, which ignores
	// autocorrelation.
	Weighted  bool        `json:"weighted,omitempty"`
	WeightESS diag.Number `json:"weight_ess,omitempty"`
	// Rows start with lp. Sites follow in order; if there are more than TableOptions.Rows, only the
	// worst-mixed ones are listed, worst first.
	Rows []Row `json:"rows"`
	// Sites is the number of sites; Constant is the number of sites with the same value in all draws of
	// all chains.
	Sites    int `json:"sites"`
	Constant int `json:"constant"`
	// Warnings are one sentence each.
	Warnings []string `json:"warnings"`
	// Note is blind, followed by weighed if draws are weighted.
	Note string `json:"note"`
}

// blind states what diagnostics of mixing cannot detect.
const blind = "R-hat and effective sample sizes compare the chains with each other and with themselves. " +
	"They cannot detect a mode that no chain has visited, or an inexact sampler whose draws do not follow exp(U)."

// TableOptions selects the contents of a table. Zero fields mean defaults.
type TableOptions struct {
	// Rows is the maximum number of sites listed; 0 means 32, negative means all.
	Rows int
	// Bytes limits the memory for draws beyond that of one variable; 0 means 64 MiB. With less memory
	// the draws are read more often.
	Bytes int
}

func (o TableOptions) rows() int {
	if o.Rows == 0 {
		return 32
	}
	return o.Rows
}

func (o TableOptions) bytes() int {
	if o.Bytes <= 0 {
		return 64 << 20
	}
	return o.Bytes
}

// Limits for warnings (Vehtari et al. 2021, section 4).
const (
	rhatLimit = 1.01
	essLimit  = 400
)

// summarize returns the row of a variable; nil weights are equal ones.
func summarize(name string, chains, weights [][]float64) Row {
	var s diag.Summary
	if weights == nil {
		s = diag.Summarize(chains)
	} else {
		s = diag.SummarizeWeighted(chains, weights)
	}
	r := Row{
		Name: name, Mean: diag.Number(s.Mean), SD: diag.Number(s.SD), MCSE: diag.Number(s.MCSE),
		ESSBulk: diag.Number(s.ESSBulk), ESSTail: diag.Number(s.ESSTail), RHat: diag.Number(s.RHat),
	}
	r.Q5, r.Median, r.Q95 = diag.NA, diag.NA, diag.NA
	if !r.Mean.Finite() {
		return r
	}
	if weights != nil {
		q := diag.QuantilesWeighted(chains, weights, 0.05, 0.5, 0.95)
		r.Q5, r.Median, r.Q95 = diag.Number(q[0]), diag.Number(q[1]), diag.Number(q[2])
		return r
	}
	all := slices.Concat(chains...)
	slices.Sort(all)
	r.Q5, r.Median, r.Q95 = quantile(all, 0.05), quantile(all, 0.5), quantile(all, 0.95)
	return r
}

// quantile returns the p-quantile of sorted numbers, interpolated (type 7).
func quantile(sorted []float64, p float64) diag.Number {
	at := p * float64(len(sorted)-1)
	k := int(at)
	if k+1 >= len(sorted) {
		return diag.Number(sorted[len(sorted)-1])
	}
	return diag.Number(sorted[k] + (at-float64(k))*(sorted[k+1]-sorted[k]))
}

// warn adds warnings about the rows, and about varying sites that are not listed.
func (t *Table) warn(rest []site) {
	add := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
	t.Note = blind
	among := "in all draws"
	if t.Weighted {
		t.Note += " " + weighed
		if among += " with weight"; !t.WeightESS.Finite() {
			return // weigh has added the warning
		}
	}
	if t.Draws < 4 {
		add("%d draws per chain: diagnostics need at least four", t.Draws)
		return
	}
	if t.Chains < 2 {
		add("one chain: R-hat needs at least two and is NA")
	}
	var infinite, constant, stuck []string
	for _, r := range t.Rows {
		switch {
		case !r.Mean.Finite():
			infinite = append(infinite, r.Name)
		case r.SD == 0:
			constant = append(constant, r.Name)
		case !r.ESSBulk.Finite():
			stuck = append(stuck, r.Name)
		}
	}
	for _, list := range []struct {
		names []string
		what  string
	}{
		{infinite, "NaN or infinite in some draw: diagnostics are NA"},
		{constant, "the same value " + among + ": diagnostics are NA"},
		{stuck, "constant within each chain but different between chains: diagnostics are NA, and the chains have not mixed"},
	} {
		if len(list.names) > 0 {
			add("%s: %s", strings.Join(list.names, ", "), list.what)
		}
	}
	frozen := 0 // sites that are constant within each chain but differ between chains
	for _, s := range rest {
		if math.IsInf(s.rhat, 1) {
			frozen++
		}
	}
	if frozen > 0 {
		add("%d more sites are constant within each chain but differ between chains", frozen)
	}
	if hidden := t.Constant - len(constant); hidden > 0 {
		add("%d of %d sites have the same value %s: their diagnostics are NA", t.Constant, t.Sites, among)
	}
	all := len(t.Rows) + len(rest)
	if n, worst := t.beyond(rest, func(rhat, _ float64) (float64, bool) { return rhat, rhat > rhatLimit }); n > 0 {
		add("R-hat above %g in %d of %d rows%s, up to %.3g: the chains have not mixed", rhatLimit, n, all, listed(rest), worst)
	}
	if n, worst := t.beyond(rest, func(_, ess float64) (float64, bool) { return -ess, ess < essLimit }); n > 0 {
		add("effective sample size below %d in %d of %d rows%s, down to %.3g: means and quantiles are inaccurate", essLimit, n, all, listed(rest), -worst)
	}
}

// listed returns a remark that a count includes rows that are not listed.
func listed(rest []site) string {
	if len(rest) == 0 {
		return ""
	}
	return ", listed or not"
}

// beyond counts the rows and unlisted sites for which f reports a violation, and returns the largest
// value of f.
func (t *Table) beyond(rest []site, f func(rhat, ess float64) (float64, bool)) (n int, worst float64) {
	worst = math.Inf(-1)
	count := func(rhat, ess float64) {
		if v, bad := f(rhat, ess); bad {
			n, worst = n+1, max(worst, v)
		}
	}
	for _, r := range t.Rows {
		count(float64(r.RHat), float64(min(r.ESSBulk, r.ESSTail)))
	}
	for _, s := range rest {
		if !math.IsInf(s.rhat, 1) {
			count(s.rhat, s.ess)
		}
	}
	return n, worst
}

// badness orders rows: undefined diagnostics due to lack of mixing first, then by R-hat, then by
// effective sample size.
func badness(a, b Row) int {
	key := func(r Row) float64 {
		if !r.RHat.Finite() {
			return math.Inf(1)
		}
		return float64(r.RHat)
	}
	return cmp.Or(cmp.Compare(key(b), key(a)), cmp.Compare(a.ESSBulk, b.ESSBulk))
}

// Diagnose computes the table of a run's draws after warm-up. It reads the draws once to find the
// worst-mixed sites, by R-hat and by an estimate of the effective sample size from batch means, and
// then computes the statistics of these. Memory is that of one variable plus TableOptions.Bytes,
// independent of the number of sites. Weights enter the statistics, but not the selection of sites.
// Errors are *Error.
func Diagnose(r *Reader, o TableOptions) (*Table, error) {
	t := &Table{Chains: r.Chains(), Draws: r.Draws(Sampling), Sites: r.header.Space.Sites}
	lp, err := r.Series(Sampling, LogDensity)
	if err != nil {
		return nil, err
	}
	weights, err := r.weights()
	if err != nil {
		return nil, err
	}
	t.weigh(weights)
	t.missed(r.header)
	t.moved(r.header)
	t.Rows = append(t.Rows, summarize(LogDensity, lp, weights))
	lp = nil
	sites, err := screen(r, weights, o.bytes())
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		if s.constant {
			t.Constant++
		}
	}
	listed := choose(sites, o.rows())
	rows := make([]Row, len(listed))
	each := max(1, o.bytes()/(8*max(t.Chains*t.Draws, 1)))
	for lo := 0; lo < len(listed); lo += each {
		block := listed[lo:min(lo+each, len(listed))]
		columns, err := r.columns(block)
		if err != nil {
			return nil, err
		}
		summarizeAll(rows[lo:], block, columns, weights)
	}
	var rest []site
	if o.rows() >= 0 && len(sites) > o.rows() {
		slices.SortStableFunc(rows, badness)
		shown := map[int]bool{}
		for _, s := range listed {
			shown[s.index] = true
		}
		rest = slices.DeleteFunc(sites, func(s site) bool { return s.constant || shown[s.index] })
		slices.SortStableFunc(rest, func(a, b site) int { return cmp.Compare(b.rhat, a.rhat) })
	}
	t.Rows = append(t.Rows, rows...)
	t.warn(rest)
	return t, nil
}

// summarizeAll computes the rows of sites on all processors.
func summarizeAll(rows []Row, block []site, columns [][][]float64, weights [][]float64) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(block)) {
		wg.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(block); k = int(next.Add(1)) - 1 {
				rows[k] = summarize(block[k].name(), columns[k], weights)
			}
		})
	}
	wg.Wait()
}

// columns reads sites as [site][chain][draw]; in categorical spaces, as indicators.
func (r *Reader) columns(block []site) ([][][]float64, error) {
	out := make([][][]float64, len(block))
	for k := range out {
		out[k] = make([][]float64, r.Chains())
	}
	for c := range r.Chains() {
		for k := range out {
			out[k][c] = make([]float64, 0, r.Draws(Sampling))
		}
		for x, err := range r.States(Sampling, c) {
			if err != nil {
				return nil, err
			}
			for k, s := range block {
				out[k][c] = append(out[k][c], s.value(x))
			}
		}
	}
	return out, nil
}
