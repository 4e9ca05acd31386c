package samplers

import "math"

// Balance is a balancing function g, with g(t) = t·g(1/t): it turns the probability ratio
// t of a change into its weight in a locally balanced proposal (Zanella 2020).
type Balance uint8

const (
	// Sqrt is √t, the default of every kernel. An energy's own softmax serves it alone.
	Sqrt Balance = iota
	// Barker is t/(1+t).
	Barker
	// Min is min(1, t).
	Min
	// Max is max(1, t).
	Max
)

// balanceNames are the settings, in the order of the constants.
var balanceNames = []string{"sqrt", "barker", "min", "max"}

// String returns the name used in settings.
func (b Balance) String() string { return balanceNames[b] }

// parseBalance reads a setting; "" is Sqrt. The error is an *OptionError.
func parseBalance(sampler, name string) (Balance, error) {
	for k, n := range balanceNames {
		if name == n || name == "" {
			return Balance(k), nil
		}
	}
	return 0, &OptionError{sampler, "balance", name, "not one of sqrt, barker, min, max"}
}

// Log returns log g(t) for log t.
func (b Balance) Log(logt float64) float64 {
	switch b {
	case Barker:
		if logt < 0 {
			return logt - math.Log1p(math.Exp(logt))
		}
		return -math.Log1p(math.Exp(-logt))
	case Min:
		return min(0, logt)
	case Max:
		return max(0, logt)
	}
	return logt / 2
}
