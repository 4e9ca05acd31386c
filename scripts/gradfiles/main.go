// Command gradfiles checks the gradients of every ONNX file below some folders by finite
// differences, and writes a table of the verdicts:
//
//	go run ./scripts/gradfiles NAME=FOLDER... > table.md
//
// NAME says in the table where the files of FOLDER come from. The exit code is 1 if a
// gradient is wrong. onnx/grad/gradcheck/README.md has such a table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/grad"
	"github.com/gradhop/gradhop/onnx/grad/gradcheck"
	"github.com/gradhop/gradhop/onnx/ort"
)

var (
	seeds   = flag.Uint64("seeds", 2, "number of seeds, of which each gives other inputs and directions")
	limit   = flag.Duration("limit", 2*time.Minute, "time for one file and seed")
	threads = flag.Int("threads", 1, "threads of the runtime")
)

// The verdicts.
const (
	right     = "right"
	wrong     = "WRONG"
	unchecked = "cannot be checked"
	none      = "no gradient"
)

// row is the verdict about one file.
type row struct {
	origin, file, verdict, detail string
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	var rows []row
	for _, arg := range flag.Args() {
		name, folder, ok := strings.Cut(arg, "=")
		if !ok {
			log.Fatalf("%q is not NAME=FOLDER", arg)
		}
		found, err := walk(name, folder)
		if err != nil {
			log.Fatal(err)
		}
		rows = append(rows, found...)
	}
	if slices.ContainsFunc(write(rows), func(r row) bool { return r.verdict == wrong }) {
		os.Exit(1)
	}
}

// walk checks the files below folder.
func walk(name, folder string) ([]row, error) {
	var rows []row
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".onnx" {
			return err
		}
		r := row{origin: name}
		if r.file, err = filepath.Rel(folder, path); err != nil {
			return err
		}
		r.verdict, r.detail = check(path)
		log.Printf("%s %s: %s, %s", name, r.file, r.verdict, r.detail)
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// check returns the verdict about a file and what it rests on.
func check(path string) (verdict, detail string) {
	m, err := onnx.Load(path)
	if err != nil {
		return none, err.Error()
	}
	o, err := question(m)
	if err != nil {
		return none, err.Error()
	}
	r, err := appendAll(m, &o)
	if err != nil {
		return none, err.Error()
	}
	verdict, detail = compare(m, o, r, nil)
	if verdict == unchecked { // its integers may have to be those of its test
		if feed := testData(path, m); feed != nil {
			return compare(m, o, r, feed)
		}
	}
	return verdict, detail
}

// compare compares the gradients with differences, at random inputs or at those given.
func compare(m *onnx.Model, o grad.Options, r *grad.Result, feed map[string]*ort.Tensor) (verdict, detail string) {
	var worst float64
	judged, compared := 0, 0
	for seed := range *seeds {
		ctx, cancel := context.WithTimeout(context.Background(), *limit)
		rep, err := gradcheck.Check(ctx, m, o, r, gradcheck.Options{Seed: seed + 1, Feed: feed, Runtime: ort.Options{Threads: *threads}})
		cancel()
		if err != nil {
			return unchecked, err.Error()
		}
		detail = rep.Precision
		for _, in := range rep.Inputs {
			judged, compared = judged+in.Compared-in.SetAside, compared+in.Compared
			worst = max(worst, in.Worst.Relative)
		}
		var unsupported *onnx.UnsupportedError
		switch err := rep.Err(); {
		case errors.As(err, &unsupported):
			return unchecked, err.Error()
		case err != nil:
			return wrong, err.Error()
		}
	}
	return right, fmt.Sprintf("%s, %d of %d comparisons judged, worst relative error %.1g", detail, judged, compared, worst)
}

// appendAll appends the gradients that there are: the sum of the output where it is not one number a row, and no
// inputs on which its value depends in no differentiable way.
func appendAll(m *onnx.Model, o *grad.Options) (*grad.Result, error) {
	for {
		r, err := grad.Append(m, *o)
		var missing *grad.NotDifferentiableError
		switch {
		case err == nil || !errors.As(err, &missing):
			return r, err
		case missing.Obstacle == grad.NotRows:
			o.Reduce = grad.ReduceSum
		case missing.Obstacle == grad.NoPath && len(o.Wrt) > 1:
			o.Wrt = slices.DeleteFunc(o.Wrt, func(w string) bool { return w == missing.Value })
		default:
			return nil, err
		}
	}
}

// question returns the first output and all the inputs that it can be differentiated by.
func question(m *onnx.Model) (grad.Options, error) {
	var o grad.Options
	paths, err := grad.Paths(m, nil, nil)
	if err != nil {
		return o, err
	}
	err = errors.New("it has no inputs")
	for _, p := range paths {
		switch {
		case p.Err != nil && o.Of == "":
			err = p.Err
		case p.Err == nil && (o.Of == "" || o.Of == p.Of):
			o.Of, o.Wrt = p.Of, append(o.Wrt, p.Wrt)
		}
	}
	if o.Of == "" {
		return o, err
	}
	return o, nil
}

// write prints the table and returns its rows.
func write(rows []row) []row {
	count := map[string]int{}
	for _, r := range rows {
		count[r.verdict]++
	}
	fmt.Printf("%d files: %d right, %d wrong, %d cannot be checked, %d have no gradient.\n\n", len(rows),
		count[right], count[wrong], count[unchecked], count[none])
	fmt.Println("| origin | file | verdict | |\n| --- | --- | --- | --- |")
	for _, r := range rows {
		detail := []rune(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(r.detail, "gradcheck: "), "grad: "), "|", "/"))
		if len(detail) > 160 {
			detail = append(detail[:160], '…')
		}
		fmt.Printf("| %s | %s | %s | %s |\n", r.origin, r.file, r.verdict, string(detail))
	}
	return rows
}
