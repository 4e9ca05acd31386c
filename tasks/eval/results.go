package eval

import (
	"fmt"
	"strconv"

	"github.com/gradhop/gradhop/samplers/diag"
	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// Table returns the table of Zhang, Liu and Liu (2022) with the cost of each sampler: two header rows
// and a row for each entrant.
func Table(references []string, list []Scored) [][]string {
	over, head := []string{"", "", "unique", "n-grams"}, []string{"sampler", "self-BLEU", "self 2", "3"}
	for _, name := range references {
		over, head = append(over, "", ""), append(head, name+" 2", "3")
	}
	over = append(over, "corpus", "", "", "states evaluated", "", "")
	head = append(head, "BLEU", "seconds", "sequences", "density", "gradient", "conditional")
	rows := [][]string{over, head}
	for _, s := range list {
		row := []string{s.Entrant.Name, Cell(s.Report.SelfBLEU, 2), Cell(s.Report.SelfUnique[1], 2), Cell(s.Report.SelfUnique[2], 2)}
		for _, ref := range s.Report.Refs {
			row = append(row, Cell(ref.Unique[1], 2), Cell(ref.Unique[2], 2))
		}
		row = append(row, Cell(s.CorpusBLEU(), 2), diag.Number(s.Seconds).Text(1))
		rows = append(rows, append(row, s.costs()...))
	}
	return rows
}

// Columns returns the scores of an entrant with the column names, for CSV.
func (s *Scored) Columns() (names, cells []string) {
	add := func(name, cell string) { names, cells = append(names, name), append(cells, cell) }
	r := s.Report
	add("self_bleu", Cell(r.SelfBLEU, 4))
	add("self_unique_2", Cell(r.SelfUnique[1], 4))
	add("self_unique_3", Cell(r.SelfUnique[2], 4))
	for _, ref := range r.Refs {
		add(ref.Name+"_unique_2", Cell(ref.Unique[1], 4))
		add(ref.Name+"_unique_3", Cell(ref.Unique[2], 4))
		add(ref.Name+"_bleu", Cell(ref.BLEU, 4))
	}
	add("corpus_bleu", Cell(s.CorpusBLEU(), 4))
	add("seconds", diag.Number(s.Seconds).Text(3))
	for i, name := range []string{"sequences", "density", "gradient", "conditional"} {
		add(name, s.costs()[i])
	}
	add("acceptance", s.Acceptance.Text(4))
	add("hops", s.Hops.Text(4))
	return names, cells
}

// costs returns the numbers of sequences and states evaluated.
func (s *Scored) costs() []string {
	n := s.Evaluations
	var out []string
	for _, count := range []int64{s.Sequences, n.Density, n.Gradient, n.Conditional} {
		out = append(out, strconv.FormatInt(count, 10))
	}
	return out
}

// Cell formats a percentage; NA if undefined.
func Cell(p textmetrics.Percent, decimals int) string { return diag.Number(p).Text(decimals) }

// PairsTable returns a header row, a row for each category in alphabetical order, and a row for all
// pairs.
func PairsTable(r *PairsResult) [][]string {
	rows := [][]string{{"category", "pairs", "right", "accuracy"}}
	add := func(name string, a Accuracy) {
		rows = append(rows, []string{name, strconv.Itoa(a.Pairs), strconv.Itoa(a.Right), fmt.Sprintf("%.2f%%", 100*a.Share())})
	}
	for _, c := range r.Categories {
		add(c.Category, c)
	}
	add("all", r.All)
	return rows
}
