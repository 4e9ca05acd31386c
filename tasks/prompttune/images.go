package prompttune

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/internal/pictures"
)

// imageVectors is what became of a list of files.
type imageVectors struct {
	// Files are those that were used, Vectors their unit vectors, [file, width].
	Files   []string
	Vectors [][]float32
	// Sums are the checksums of their contents.
	Sums []pictures.Sum
	// Skipped are those that could not be used.
	Skipped []*pictures.Error
}

// imageBatch is the number of pictures that go through the vision tower at once.
const imageBatch = 16

// encodeImages encodes files, as pictures.List finds them. Errors: *neural.ModelError for a model
// without a vision tower or without its settings, or whose vectors are not finite; those
// of the runtime and of ctx.
func (m *Model) encodeImages(ctx context.Context, files []string, o pictures.Options) (*imageVectors, error) {
	pre, err := m.preprocessor()
	if err != nil {
		return nil, err
	}
	h, w := pre.Size()
	out := &imageVectors{}
	var pixels []float32 // of pictures that have no vector yet
	encode := func() error {
		vectors, err := m.clip.EncodeImages(ctx, pixels, h, w)
		for _, v := range vectors {
			if slices.ContainsFunc(v, func(x float32) bool { return x-x != 0 }) {
				return &neural.ModelError{Model: m.Source.Name, Err: fmt.Errorf("its vision tower returned NaN or Inf for %s; export the model again", out.Files[len(out.Vectors)])}
			}
			out.Vectors = append(out.Vectors, v)
		}
		pixels = pixels[:0]
		return err
	}
	for l := range pictures.Stream(ctx, files, pre, o) {
		if bad, ok := l.Err.(*pictures.Error); ok {
			out.Skipped = append(out.Skipped, bad)
			continue
		}
		if l.Err != nil {
			return nil, l.Err
		}
		out.Files, out.Sums, pixels = append(out.Files, l.File), append(out.Sums, l.Sum), append(pixels, l.Pixels...)
		if len(out.Files)%imageBatch == 0 {
			if err := encode(); err != nil {
				return nil, err
			}
		}
	}
	if err := ctx.Err(); err != nil || len(pixels) == 0 {
		return out, err
	}
	return out, encode()
}
