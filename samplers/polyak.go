package samplers

import (
	"math"
	"strconv"
	"strings"
)

// ParsePolyak reads a schedule of h_t, about the number of moves that SGDLD makes in a
// step; t = 1, 2, ... is one more than the number of the step. "" is 1.
//
//	0.5              h_t = 0.5
//	sampling[:min]   h_t = max(min, 3·(10+t)^-½), min = 0.1
//	facility[:min]   h_t = max(min, (1000/(100+t))^½), min = 0.3
//	axc[:min]        h_t = max(min, (3/(10+t))^½), min = 0.1
//	decay:a,b,min    h_t = max(min, (a/(b+t))^½)
//
// The named ones are those of Sun et al. (2023), appendix C: of its sampling tasks, which
// give min with their results, of facility location and of approximate computing. All
// numbers are positive. The error is a *ScheduleError.
func ParsePolyak(text string) (func(step int64) float64, error) {
	const want = "want a number, sampling, facility or axc with a floor as in sampling:0.3, or decay:a,b,min; all positive"
	positive := func(part string) (float64, bool) {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		return x, err == nil && x > 0 && !math.IsInf(x, 1)
	}
	if text == "" {
		text = "1"
	}
	name, rest, given := strings.Cut(text, ":")
	named := map[string][3]float64{"sampling": {9, 10, 0.1}, "facility": {1000, 100, 0.3}, "axc": {3, 10, 0.1}}
	p, known := named[name]
	switch {
	case known && given:
		var ok bool
		if p[2], ok = positive(rest); !ok {
			return nil, &ScheduleError{text, want}
		}
	case name == "decay" && given:
		parts := strings.Split(rest, ",")
		if len(parts) != len(p) {
			return nil, &ScheduleError{text, want}
		}
		for j, part := range parts {
			var ok bool
			if p[j], ok = positive(part); !ok {
				return nil, &ScheduleError{text, want}
			}
		}
	case !known:
		h, ok := positive(text)
		if !ok {
			return nil, &ScheduleError{text, want}
		}
		return func(int64) float64 { return h }, nil
	}
	return func(step int64) float64 { return max(p[2], math.Sqrt(p[0]/(p[1]+float64(step+1)))) }, nil
}
