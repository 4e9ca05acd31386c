package prompttune

import (
	"context"
	"fmt"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/internal/pictures"
)

// imageOptions say how pictures are encoded. Zero fields have the defaults of package
// pictures.
type imageOptions struct {
	Workers int
	Limits  pictures.Limits
	// Progress is called after each file.
	Progress func(done, total int)
}

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
func (m *Model) encodeImages(ctx context.Context, files []string, o imageOptions) (*imageVectors, error) {
	pre, err := m.preprocessor()
	if err != nil {
		return nil, err
	}
	e := &encoder{m: m, pre: pre, out: &imageVectors{}}
	for l := range pictures.Stream(ctx, files, pre, pictures.Options{Workers: o.Workers, Limits: o.Limits, Progress: o.Progress}) {
		if err := e.add(ctx, l); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return e.out, e.flush(ctx)
}

// encoder collects pictures until there are enough for a run of the model.
type encoder struct {
	m      *Model
	pre    *pictures.Preprocessor
	out    *imageVectors
	wait   []int // places in out of pictures that wait
	pixels []float32
}

func (e *encoder) add(ctx context.Context, l pictures.Loaded) error {
	if bad, ok := l.Err.(*pictures.Error); ok {
		e.out.Skipped = append(e.out.Skipped, bad)
		return nil
	}
	if l.Err != nil {
		return l.Err
	}
	e.out.Files, e.out.Vectors, e.out.Sums = append(e.out.Files, l.File), append(e.out.Vectors, nil), append(e.out.Sums, l.Sum)
	e.wait, e.pixels = append(e.wait, len(e.out.Files)-1), append(e.pixels, l.Pixels...)
	if len(e.wait) < imageBatch {
		return nil
	}
	return e.flush(ctx)
}

// flush encodes the pictures that wait.
func (e *encoder) flush(ctx context.Context) error {
	if len(e.wait) == 0 {
		return nil
	}
	h, w := e.pre.Size()
	vectors, err := e.m.clip.EncodeImages(ctx, e.pixels, h, w)
	if err != nil {
		return err
	}
	for k, at := range e.wait {
		if !finite(vectors[k]) {
			return &neural.ModelError{Model: e.m.Source.Name, Err: fmt.Errorf("its vision tower returned NaN or Inf for %s; export the model again", e.out.Files[at])}
		}
		e.out.Vectors[at] = vectors[k]
	}
	e.wait, e.pixels = e.wait[:0], e.pixels[:0]
	return nil
}

func finite(vector []float32) bool {
	for _, x := range vector {
		if x-x != 0 {
			return false
		}
	}
	return true
}
