package energies

import "fmt"

// WithDraft returns exact with a draft, a cheap stand-in for it over the same space, as the same
// model in lower precision: its Capabilities name the draft. Two-stage samplers propose by the
// draft and accept by exact, so that draws are those of exact, however wrong the draft is. The
// error is a *SpaceError where the spaces differ.
func WithDraft(exact, draft Energy) (Oracle, error) {
	a, b := exact.Space(), draft.Space()
	if a.Sites != b.Sites || a.Values != b.Values || a.Kind != b.Kind || a.Low != b.Low || !sameAllowed(a, b) {
		return nil, &SpaceError{-1, fmt.Sprintf("the draft has the space %s, the energy has %s, or they allow other values", b, a)}
	}
	return drafted{AsOracle(exact), AsOracle(draft)}, nil
}

// drafted is an Oracle with a draft.
type drafted struct {
	Oracle
	draft Oracle
}

// Capabilities implements Oracle.
func (d drafted) Capabilities() Capabilities {
	c := d.Oracle.Capabilities()
	c.Draft = d.draft
	c.Answers |= Drafted
	return c
}
