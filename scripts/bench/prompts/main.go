// Command prompts compares ways to find prompts at equal evaluations: the table of
// tasks/prompttune/README.md.
//
//	prompts [-csv FILE] [-sets cats,hearts] [-lengths 8,16] [-seeds 3] [-evaluations 8000] [METHOD...]
//
// A METHOD is SAMPLER:CHAINS:OPTION=VALUE,...:BETA:STEPS, of which all but the first may be left
// out. Sets are folders of models/pictures. It runs in the folder of the repository. Runs that
// the file of -csv has are not made again, so that a later call can add seeds or methods; a
// change of a method's defaults needs a new file. The tables show mean, standard deviation and
// number of all runs that the file has; -seeds 0 makes none.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

// cell is one run of the table: its line of the file without the result.
type cell struct {
	set, length, method, evaluations, seed string
}

// result is the best prompt of a run.
type result struct {
	cosine float64
	text   string
}

func main() {
	file := flag.String("csv", "", "file to read and extend (default: none)")
	sets := flag.String("sets", "cats,fruit,hearts,weather", "folders of models/pictures")
	lengths := flag.String("lengths", "4,8,16,32", "numbers of blanks")
	seeds := flag.Int("seeds", 10, "repeats, with seeds from 0")
	evaluations := flag.String("evaluations", "8000", "budget of a run, a gradient counted as two")
	threads := flag.Int("threads", 0, "threads of the runtime (default: all cores)")
	flag.Parse()
	methods := flag.Args()
	if len(methods) == 0 {
		methods = []string{"search", "gcg", "pez:8"}
	}
	results, err := read(*file)
	if err != nil {
		log.Fatal(err)
	}
	for seed := range *seeds {
		for length := range strings.SplitSeq(*lengths, ",") {
			for set := range strings.SplitSeq(*sets, ",") {
				for _, method := range methods {
					c := cell{set, length, method, *evaluations, strconv.Itoa(seed)}
					if _, ok := results[c]; ok {
						continue
					}
					r, err := c.run(*threads)
					if err == nil {
						err = c.write(*file, r)
					}
					if err != nil {
						log.Fatal(err)
					}
					results[c] = r
				}
			}
		}
	}
	for length := range strings.SplitSeq(*lengths, ",") {
		fmt.Printf("\n| %s blanks | %s |\n| --- |%s\n", length, strings.Join(methods, " | "), strings.Repeat(" --- |", len(methods)))
		for set := range strings.SplitSeq(*sets, ",") {
			fmt.Printf("| %s |", set)
			for _, method := range methods {
				var best []float64
				for c, r := range results {
					if seed := c.seed; c == (cell{set, length, method, *evaluations, seed}) {
						best = append(best, r.cosine)
					}
				}
				mean, sd := stat.MeanStdDev(best, nil)
				fmt.Printf(" %.3f ± %.3f (%d) |", mean, sd, len(best))
			}
			fmt.Println()
		}
	}
}

// read returns the runs of a file, none where there is no file.
func read(file string) (map[cell]result, error) {
	all := map[cell]result{}
	f, err := os.Open(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = 7
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, row := range rows {
		cosine, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: run %d: %w", file, i+1, err)
		}
		all[cell{row[0], row[1], row[2], row[3], row[4]}] = result{cosine, row[6]}
	}
	return all, nil
}

// write prints a run and adds it to a file.
func (c cell) write(file string, r result) error {
	row := []string{c.set, c.length, c.method, c.evaluations, c.seed, strconv.FormatFloat(r.cosine, 'f', 4, 64), r.text}
	log.Print(strings.Join(row, "  "))
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	err = w.WriteAll([][]string{row})
	return cmp.Or(err, f.Close())
}

// run makes one run.
func (c cell) run(threads int) (result, error) {
	blanks, err := strconv.Atoi(c.length)
	if err != nil {
		return result{}, err
	}
	parts := append(strings.Split(c.method, ":"), "", "", "", "")
	s := prompttune.Search{Sampler: parts[0], Options: samplers.Settings{}, Beta: parts[3], Top: 1}
	if s.Evaluations, err = strconv.ParseInt(c.evaluations, 10, 64); err != nil {
		return result{}, err
	}
	if s.Seed, err = strconv.ParseUint(c.seed, 10, 64); err != nil {
		return result{}, err
	}
	s.Chains, _ = strconv.Atoi(parts[1]) // 0 is the default
	for option := range strings.SplitSeq(parts[2], ",") {
		if name, value, ok := strings.Cut(option, "="); ok {
			s.Options[name] = value
		}
	}
	s.Fill()
	if steps, err := strconv.Atoi(parts[4]); err == nil {
		s.Steps = steps
	} else if s.Steps = int(s.Evaluations); s.Sampler == "gwg" || s.Sampler == "pez" {
		s.Steps = int(s.Evaluations) / 2 / s.Chains // the schedule of β ends with the budget
	}
	goal := prompttune.Goal{Images: []string{"models/pictures/" + c.set}}
	goal.Runtime.Threads = threads
	found, err := prompttune.Run(context.Background(), prompttune.Config{Goal: goal, Form: prompttune.Form{Length: blanks}, Search: s})
	if err != nil {
		return result{}, err
	}
	return result{found.Results[0].Cosine, found.Results[0].Text}, nil
}
