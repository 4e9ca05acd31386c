package samplers

import (
	"math"

	"github.com/gradhop/gradhop/energies"
)

// move is a proposed batch of states and what there is to know of them.
type move struct {
	X energies.Batch
	Local
}

// like makes room for a proposal from s.
func (m *move) like(s *State) {
	m.X = energies.Batch{Space: s.X.Space, Codes: resize(m.X.Codes, len(s.X.Codes)), IDs: s.X.IDs}
}

// refuse decides what becomes of proposals that cannot be states: an error, or,
// with s.RejectNonFinite, U = -Inf, which every kernel rejects.
func (m *move) refuse(s *State) error {
	for c := range s.Chains() {
		err := m.check(c, &m.X, s.ChainIDs[c], s.Step)
		if err == nil {
			continue
		}
		if !s.RejectNonFinite {
			return err
		}
		m.U[c] = math.Inf(-1)
	}
	return nil
}

// commit ends a step: chains that info.Accepted names take their proposal, hops
// are counted, and s.Step advances. The larger of the two groups changes hands
// by exchanging buffers, the smaller is copied.
func (s *State) commit(m *move, info *Info) {
	d, values, taken := s.X.Space.Sites, s.X.Space.Values, 0
	for c, ok := range info.Accepted {
		if !ok {
			continue
		}
		taken++
		old, now := s.X.Chain(c), m.X.Chain(c)
		for i := range old {
			if old[i] != now[i] {
				info.Hops[c]++
			}
		}
	}
	copied := true // the group that is copied: accepted proposals
	if 2*taken > len(info.Accepted) {
		s.X, m.X = m.X, s.X
		s.Local, m.Local = m.Local, s.Local
		copied = false
	}
	for c, ok := range info.Accepted {
		if ok == copied {
			copySpan(s.X.Codes, m.X.Codes, c, d)
			s.copyChain(&m.Local, c, d, values)
		}
	}
	s.Step++
	s.Evaluations.add(info.Evaluations)
}
