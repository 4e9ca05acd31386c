package neural

import (
	"context"

	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// Session runs a rewritten model: Run takes inputs by name and outputs in order.
type Session = session.Session

// OpenSession opens a model, which must not change afterwards, as the energies of this package open
// theirs: a provider other than cpu is compared with it in the first run, and refused with an
// *ort.UnavailableError where it computes something else. Other errors are those of ort.Open.
func OpenSession(ctx context.Context, m *onnx.Model, o ort.Options) (*Session, error) {
	return session.Open(ctx, m, o)
}
