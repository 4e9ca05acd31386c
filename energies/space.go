package energies

import (
	"fmt"
	"slices"
)

// Kind says what the codes of a site mean, and with it which distance between
// two values the Langevin proposals use.
type Kind uint8

const (
	// Categorical values have no order: one-hot coding, D² = 2 between any two.
	Categorical Kind = iota
	// Binary values are the numbers 0 and 1: D² = 1.
	Binary
	// Spin values are code 0 for -1 and code 1 for +1: D² = 4.
	Spin
	// Ordinal values are consecutive integers, code 0 for Space.Low: D² = (v-w)².
	Ordinal
)

// String returns the name used in settings and flags.
func (k Kind) String() string {
	switch k {
	case Categorical:
		return "categorical"
	case Binary:
		return "binary"
	case Spin:
		return "spin"
	case Ordinal:
		return "ordinal"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Space is the set of states: Sites sites, each with a code in [0, Values).
type Space struct {
	// Sites is d, the number of sites of a state; at least 1.
	Sites int
	// Values is S, the number of codes of a site; at least 2.
	Values int
	// Kind is what codes mean; the zero value is Categorical.
	Kind Kind
	// Low is the number that code 0 stands for in an Ordinal space.
	Low int
	// Allowed lists the codes a site may take, in increasing order. Nil allows
	// every code; one list serves every site; otherwise there is one for each.
	Allowed [][]int32
}

// String writes the space in one word, as binary:784, spin:16, categorical:64x21 or
// ordinal:8:-2..2; the allowed values are left out.
func (s *Space) String() string {
	switch s.Kind {
	case Categorical:
		return fmt.Sprintf("categorical:%dx%d", s.Sites, s.Values)
	case Ordinal:
		return fmt.Sprintf("ordinal:%d:%d..%d", s.Sites, s.Low, s.Low+s.Values-1)
	}
	return fmt.Sprintf("%s:%d", s.Kind, s.Sites)
}

// Number is what code v stands for: -1 and +1 in a Spin space, Low and up in an Ordinal
// one, the code itself in others.
func (s *Space) Number(v int32) int {
	switch s.Kind {
	case Spin:
		return 2*int(v) - 1
	case Ordinal:
		return s.Low + int(v)
	}
	return int(v)
}

// SpaceError reports a Space that contradicts itself, or a table that does not fit it.
type SpaceError struct {
	// Site is the site at fault, or -1 where the whole space is.
	Site   int
	Reason string
}

func (e *SpaceError) Error() string {
	if e.Site >= 0 {
		return fmt.Sprintf("energies: space: site %d: %s", e.Site, e.Reason)
	}
	return "energies: space: " + e.Reason
}

// ExitCode returns 2: bad usage or input.
func (*SpaceError) ExitCode() int { return 2 }

// DefinitionError reports text, a file or arguments from which no energy can be made.
type DefinitionError struct {
	// What is the text or the kind of the thing, with the name of its file.
	What   string
	Line   int // of the file, from 1; 0 where no line is at fault
	Reason string
}

func (e *DefinitionError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d: %s", e.What, e.Line, e.Reason)
	}
	return e.What + ": " + e.Reason
}

// ExitCode returns 2: bad usage or input.
func (*DefinitionError) ExitCode() int { return 2 }

// Check returns a *SpaceError where the space is malformed, an allowed list is
// empty, unsorted or out of range.
func (s *Space) Check() error {
	switch {
	case s == nil:
		return &SpaceError{-1, "nil space"}
	case s.Sites < 1:
		return &SpaceError{-1, fmt.Sprintf("%d sites; at least one is needed", s.Sites)}
	case s.Values < 2:
		return &SpaceError{-1, fmt.Sprintf("%d values a site; at least two are needed", s.Values)}
	case (s.Kind == Binary || s.Kind == Spin) && s.Values != 2:
		return &SpaceError{-1, fmt.Sprintf("%d values a site in a %s space; it has two", s.Values, s.Kind)}
	case len(s.Allowed) > 1 && len(s.Allowed) != s.Sites:
		return &SpaceError{-1, fmt.Sprintf("%d allowed lists for %d sites", len(s.Allowed), s.Sites)}
	}
	for i, list := range s.Allowed {
		if len(list) == 0 {
			return &SpaceError{i, "no allowed value"}
		}
		for j, v := range list {
			if v < 0 || int(v) >= s.Values {
				return &SpaceError{i, fmt.Sprintf("allowed value %d is outside 0..%d", v, s.Values-1)}
			}
			if j > 0 && list[j-1] >= v {
				return &SpaceError{i, "allowed values are not in increasing order"}
			}
		}
	}
	return nil
}

// AllowedAt returns the codes that site may take in increasing order, or nil
// where every code is allowed. The caller must not change it.
func (s *Space) AllowedAt(site int) []int32 {
	switch len(s.Allowed) {
	case 0:
		return nil
	case 1:
		return s.Allowed[0]
	}
	return s.Allowed[site]
}

// Allows reports whether site may take code v.
func (s *Space) Allows(site int, v int32) bool {
	if v < 0 || int(v) >= s.Values {
		return false
	}
	list := s.AllowedAt(site)
	if list == nil {
		return true
	}
	_, ok := slices.BinarySearch(list, v)
	return ok
}

// SquaredDistance is D² between two codes of a site: 1 for Binary, 4 for Spin,
// 2 for Categorical (one-hot), (v-w)² for Ordinal, and 0 where they are equal.
func (s *Space) SquaredDistance(v, w int32) float64 {
	if v == w {
		return 0
	}
	switch s.Kind {
	case Binary:
		return 1
	case Spin:
		return 4
	case Ordinal:
		d := float64(v) - float64(w)
		return d * d
	}
	return 2
}

// CheckBatch returns a *SpaceError where a code of x is outside the space.
func (s *Space) CheckBatch(x Batch) error {
	if len(x.Codes)%s.Sites != 0 {
		return &SpaceError{-1, fmt.Sprintf("%d codes do not divide into chains of %d sites", len(x.Codes), s.Sites)}
	}
	for k, v := range x.Codes {
		if site := k % s.Sites; !s.Allows(site, v) {
			return &SpaceError{site, fmt.Sprintf("chain %d has value %d, which is not allowed there", k/s.Sites, v)}
		}
	}
	return nil
}
