package store

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64 that is printed as null in JSON and NA in text if it is not finite.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.finite() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Text returns n with the given number of decimals.
func (n Number) Text(decimals int) string {
	if !n.finite() {
		return "NA"
	}
	return strconv.FormatFloat(float64(n), 'f', decimals, 64)
}

func (n Number) finite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }
