// Package ops implements the command that lists operators and their gradients.
package ops

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "ops [operator...]",
		Short: "List the operators and their gradients",
		Long: `List every operator that is known: the operator sets that defined or changed it,
whether its gradient is computed by a rule, is zero by nature, or is not known
(none), and what proves the rule. A model may use operators without a gradient
anywhere but between the output and an input that are asked for.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := lookup(args)
			if err != nil {
				return err
			}
			if format == "json" {
				return app.JSON(a.Out, list)
			}
			return text(a.Out, list)
		},
	}
	app.Format(cmd, &format, "text", "json")
	a.Declare(cmd, app.Always("format"))
	return cmd
}

// record is one line of the list.
type record struct {
	Op       string  `json:"op"`
	Domain   string  `json:"domain"`
	Opsets   []int64 `json:"opsets"`
	Gradient string  `json:"gradient"`
	// Oracle is empty for operators without a rule.
	Oracle          string `json:"oracle"`
	StraightThrough bool   `json:"straight_through,omitempty"`
	// By is the operator that replaces a removed one.
	By   string `json:"by,omitempty"`
	name string
}

// lookup returns the named operators, or all. Operators outside the standard domain are found by name,
// with or without the domain.
func lookup(names []string) ([]record, error) {
	var all, list []record
	var have []string
	for _, s := range grad.Coverage() {
		r := record{Op: s.Op, Domain: s.Domain, Opsets: s.Opsets, Gradient: string(s.Gradient), Oracle: s.Oracle,
			StraightThrough: s.StraightThrough, By: s.By, name: s.Name()}
		if r.Domain == "" {
			r.Domain = "ai.onnx"
		}
		all, have = append(all, r), append(have, r.name)
	}
	if len(names) == 0 {
		return all, nil
	}
	for _, n := range names {
		found := false
		for _, r := range all {
			if n == r.name || n == r.Op || n == r.Domain+"."+r.Op {
				list, found = append(list, r), true
			}
		}
		if !found {
			return nil, app.Usagef("no operator named %q%s", n, onnx.Nearest(n, have))
		}
	}
	return list, nil
}

func text(w io.Writer, list []record) error {
	rows := [][]string{{"OPERATOR", "OPERATOR SETS", "GRADIENT", "ORACLE"}}
	for _, r := range list {
		proof := r.Oracle
		if proof == "" {
			proof = "-"
		}
		gradient := r.Gradient
		if r.By != "" {
			gradient += " of " + r.By
		}
		if r.StraightThrough {
			gradient += ", straight through"
		}
		rows = append(rows, []string{r.name, strings.Trim(fmt.Sprint(r.Opsets), "[]"), gradient, proof})
	}
	return app.Columns(w, rows)
}
