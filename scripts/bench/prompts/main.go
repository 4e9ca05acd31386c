// Command prompts compares ways to find prompts at equal evaluations: the table of
// tasks/prompttune/README.md.
//
//	prompts [-sets cats,hearts] [-lengths 8,16] [-seeds 3] [-evaluations 8000] METHOD...
//
// A METHOD is SAMPLER:CHAINS:OPTION=VALUE,...:BETA:STEPS, of which all but the first may be left
// out. Sets are folders of models/pictures. It runs in the folder of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

func main() {
	sets := flag.String("sets", "cats,hearts", "folders of models/pictures")
	lengths := flag.String("lengths", "8,16", "numbers of blanks")
	seeds := flag.Int("seeds", 3, "repeats, with seeds from 0")
	evaluations := flag.Int64("evaluations", 8000, "budget of a run, a gradient counted as two")
	flag.Parse()
	for set := range strings.SplitSeq(*sets, ",") {
		for length := range strings.SplitSeq(*lengths, ",") {
			for _, method := range flag.Args() {
				if err := compare(set, length, method, *seeds, *evaluations); err != nil {
					log.Fatal(err)
				}
			}
		}
	}
}

// compare prints one cell of the table: mean and standard deviation of the best cosine.
func compare(set, length, method string, seeds int, evaluations int64) error {
	blanks, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	parts := append(strings.Split(method, ":"), "", "", "", "")
	s := prompttune.Search{Sampler: parts[0], Options: samplers.Settings{}, Beta: parts[3], Top: 1, Evaluations: evaluations}
	s.Chains, _ = strconv.Atoi(parts[1]) // 0 is the default
	for option := range strings.SplitSeq(parts[2], ",") {
		if name, value, ok := strings.Cut(option, "="); ok {
			s.Options[name] = value
		}
	}
	s.Fill()
	if steps, err := strconv.Atoi(parts[4]); err == nil {
		s.Steps = steps
	} else if s.Steps = int(evaluations); s.Sampler != "search" && s.Sampler != "gcg" {
		s.Steps = int(evaluations) / 2 / s.Chains // the schedule of β ends with the budget
	}
	var best []float64
	var text string
	for seed := range seeds {
		s.Seed = uint64(seed)
		found, err := prompttune.Run(context.Background(), prompttune.Config{
			Goal: prompttune.Goal{Images: []string{"models/pictures/" + set}}, Form: prompttune.Form{Length: blanks}, Search: s,
		})
		if err != nil {
			return err
		}
		best, text = append(best, found.Results[0].Cosine), found.Results[0].Text
	}
	mean, sd := stat.MeanStdDev(best, nil)
	fmt.Printf("%-8s %2d  %-40s %.4f ± %.4f  %s\n", set, blanks, method, mean, sd, text)
	return nil
}
