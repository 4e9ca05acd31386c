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
	// with most weight, since means of codes are meaningless. For a CmdStan file it is the column, with
	// x.1 written as "x[1]".
	Name    string `json:"name"`
	Mean    Number `json:"mean"`
	SD      Number `json:"sd"`
	Q5      Number `json:"q5"`
	Median  Number `json:"median"`
	Q95     Number `json:"q95"`
	MCSE    Number `json:"mcse_mean"`
	ESSBulk Number `json:"ess_bulk"`
	ESSTail Number `json:"ess_tail"`
	RHat    Number `json:"rhat"`
}

// Table is the table of diagnostics of a run.
type Table struct {
	Chains int `json:"chains"`
	Draws  int `json:"draws"` // of each chain
	// Weighted means that draws have weights. WeightESS is then diag.WeightESS, which ignores
	// autocorrelation.
	Weighted  bool   `json:"weighted,omitempty"`
	WeightESS Number `json:"weight_ess,omitempty"`
	// Rows start with lp. Sites follow in order; if there are more than TableOptions.Rows, only the
	// worst-mixed ones are listed, worst first.
	Rows []Row `json:"rows"`
	// Sites is the number of sites; Constant is the number of sites with the same value in all draws of
	// all chains.
	Sites    int `json:"sites"`
	Constant int `json:"constant"`
	// Warnings are one sentence each.
	Warnings []string `json:"warnings"`
	// Note is [Blind], followed by [Weighed] if draws are weighted.
	Note string `json:"note"`
}

// Blind states what diagnostics of mixing cannot detect.
const Blind = "R-hat and effective sample sizes compare the chains with each other and with themselves. " +
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
		Name: name, Mean: Number(s.Mean), SD: Number(s.SD), MCSE: Number(s.MCSE),
		ESSBulk: Number(s.ESSBulk), ESSTail: Number(s.ESSTail), RHat: Number(s.RHat),
	}
	r.Q5, r.Median, r.Q95 = Number(math.NaN()), Number(math.NaN()), Number(math.NaN())
	if !r.Mean.finite() {
		return r
	}
	if weights != nil {
		q := diag.QuantilesWeighted(chains, weights, 0.05, 0.5, 0.95)
		r.Q5, r.Median, r.Q95 = Number(q[0]), Number(q[1]), Number(q[2])
		return r
	}
	all := slices.Concat(chains...)
	slices.Sort(all)
	r.Q5, r.Median, r.Q95 = quantile(all, 0.05), quantile(all, 0.5), quantile(all, 0.95)
	return r
}

// quantile returns the p-quantile of sorted numbers, interpolated (type 7).
func quantile(sorted []float64, p float64) Number {
	at := p * float64(len(sorted)-1)
	k := int(at)
	if k+1 >= len(sorted) {
		return Number(sorted[len(sorted)-1])
	}
	return Number(sorted[k] + (at-float64(k))*(sorted[k+1]-sorted[k]))
}

// warn adds warnings about the rows, and about varying sites that are not listed.
func (t *Table) warn(rest []site) {
	add := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
	t.Note = Blind
	among := "in all draws"
	if t.Weighted {
		t.Note += " " + Weighed
		if among += " with weight"; !t.WeightESS.finite() {
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
		case !r.Mean.finite():
			infinite = append(infinite, r.Name)
		case r.SD == 0:
			constant = append(constant, r.Name)
		case !r.ESSBulk.finite():
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
		if !r.RHat.finite() {
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

// Columns is a source of draws from another program or file format.
type Columns struct {
	Chains, Draws int
	// Names and Places are the names and column indices in the table. LP and Weight are the columns of
	// log-density and weights, negative if there are none.
	Names      []string
	Places     []int
	LP, Weight int
	// Read returns columns by index: [column][chain][draw].
	Read func(places ...int) ([][][]float64, error)
}

// DiagnoseColumns computes the table of draws that are not in a run's folder. If there are more columns
// than TableOptions.Rows, the worst-mixed ones are listed. Errors are those of Read.
func DiagnoseColumns(in Columns, o TableOptions) (*Table, error) {
	t := &Table{Chains: in.Chains, Draws: in.Draws, Sites: len(in.Names)}
	var weights [][]float64
	if in.Weight >= 0 {
		values, err := in.Read(in.Weight)
		if err != nil {
			return nil, err
		}
		weights = values[0]
		t.weigh(weights)
	}
	if in.LP >= 0 {
		values, err := in.Read(in.LP)
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, summarize(LogDensity, values[0], weights))
	}
	var rows []Row
	each := max(1, o.bytes()/(8*max(t.Chains*t.Draws, 1)))
	for lo := 0; lo < len(in.Places); lo += each {
		hi := min(lo+each, len(in.Places))
		values, err := in.Read(in.Places[lo:hi]...)
		if err != nil {
			return nil, err
		}
		for k, name := range in.Names[lo:hi] {
			rows = append(rows, summarize(name, values[k], weights))
		}
	}
	for _, r := range rows {
		if r.SD == 0 {
			t.Constant++
		}
	}
	var rest []site
	if most := o.rows(); most >= 0 && len(rows) > most {
		moving := slices.DeleteFunc(rows, func(r Row) bool { return r.SD == 0 })
		slices.SortStableFunc(moving, badness)
		rows = moving[:min(most, len(moving))]
		for _, r := range moving[len(rows):] {
			s := site{rhat: float64(r.RHat), ess: float64(min(r.ESSBulk, r.ESSTail))}
			if !r.RHat.finite() {
				s.rhat = math.Inf(1)
			}
			rest = append(rest, s)
		}
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
