package samplers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ScheduleError reports the text of a schedule that cannot be read.
type ScheduleError struct {
	Text, Reason string
}

func (e *ScheduleError) Error() string {
	return fmt.Sprintf("samplers: schedule %q: %s", e.Text, e.Reason)
}

// ExitCode returns 2: bad usage or input.
func (*ScheduleError) ExitCode() int { return 2 }

// ParseSchedule reads an inverse temperature for Config.InverseTemperature, of a
// run of that many steps, warm-up included:
//
//	50          β = 50 in every step
//	0.1t        β_t = 0.1·t with t = 1, 2, ... (prompt tuning in Sun et al. 2023)
//	1..100      geometric from 1 in the first step to 100 in the last
//	1..100@500  geometric from 1 in the first step to 100 in step t = 500
//
// Past its end the geometric one stays where it is. A run that may be made longer has to
// name that step, or its first steps become others: see PinSchedule. Numbers are not
// negative, those of the geometric one positive, and β is at most 1e15 in every step; else
// the error is a *ScheduleError.
func ParseSchedule(text string, steps int) (func(step int64) float64, error) {
	number := func(part string) (float64, error) {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		switch {
		case err != nil || math.IsNaN(x) || math.IsInf(x, 0) || strings.Contains(text, "..."): // 1 to .5, or a slip
			return 0, &ScheduleError{text, "want a number as 50, a slope as 0.1t or a range as 1..100"}
		case x < 0:
			return 0, &ScheduleError{text, "an inverse temperature is not negative"}
		case x > maxBeta:
			return 0, &ScheduleError{text, fmt.Sprintf("an inverse temperature is at most %g", maxBeta)}
		}
		return x, nil
	}
	if a, b, ok := strings.Cut(text, ".."); ok {
		from, err := number(a)
		if err != nil {
			return nil, err
		}
		b, end, given := strings.Cut(b, "@")
		to, err := number(b)
		if err != nil {
			return nil, err
		}
		if given {
			if steps, err = strconv.Atoi(strings.TrimSpace(end)); err != nil || steps < 1 {
				return nil, &ScheduleError{text, "behind @ stands the step at which the range ends, 1 or more"}
			}
		}
		if from == 0 || to == 0 {
			return nil, &ScheduleError{text, "the ends of a range are positive"}
		}
		if ratio := to / from; ratio == 0 || math.IsInf(ratio, 1) {
			return nil, &ScheduleError{text, "the ends of a range are too far apart"}
		}
		last := float64(max(steps-1, 1))
		return func(step int64) float64 { return from * math.Pow(to/from, min(float64(step)/last, 1)) }, nil
	}
	if a, ok := strings.CutSuffix(strings.TrimSpace(text), "t"); ok {
		slope, err := number(a)
		if err != nil {
			return nil, err
		}
		if slope*float64(steps) > maxBeta {
			return nil, &ScheduleError{text, fmt.Sprintf("an inverse temperature is at most %g, also in step %d", maxBeta, steps)}
		}
		return func(step int64) float64 { return slope * float64(step+1) }, nil
	}
	beta, err := number(text)
	if err != nil {
		return nil, err
	}
	return func(int64) float64 { return beta }, nil
}

// PinSchedule writes the step at which a geometric schedule of ParseSchedule ends into
// its text, for a run of that many steps: "1..100" of 500 steps is "1..100@500". Other
// texts come back as they are.
func PinSchedule(text string, steps int) string {
	if !strings.Contains(text, "..") || strings.Contains(text, "@") {
		return text
	}
	return strings.TrimSpace(text) + "@" + strconv.Itoa(steps)
}
