package diag

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a statistic that is printed as null in JSON and NA in text if it is not finite.
type Number float64

// NA is an undefined statistic.
var NA = Number(math.NaN())

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Finite() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = NA
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Text returns n with the given number of decimals.
func (n Number) Text(decimals int) string {
	if !n.Finite() {
		return "NA"
	}
	return strconv.FormatFloat(float64(n), 'f', decimals, 64)
}

// Finite reports whether n is defined.
func (n Number) Finite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }
