package prompttune

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/energies/neural/clip"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/tasks/pictures"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// Runner is a problem ready to be searched: models read, pictures encoded.
type Runner struct {
	Problem *task.Problem
	members []task.Member
	words   task.Proposals

	models []ModelID
	sets   []Set
	texts  []Text
	files  [][]string       // the pictures of each set that are used
	sums   [][]pictures.Sum // and their checksums
}

// Open reads the models, finds the runtime's library (fetching it if a allows), encodes
// the targets and builds the energy. What can be found wrong before that costs no fetch.
// Pictures that cannot be used are named on standard error.
func Open(ctx context.Context, a *app.App, t *Targets, p *Prompt) (_ *Runner, err error) {
	sets, texts, err := t.parse()
	if err != nil {
		return nil, err
	}
	template, err := p.template()
	if err != nil {
		return nil, err
	}
	r := &Runner{sets: []Set{}, texts: []Text{}}
	if r.words, err = p.proposals(); err != nil {
		return nil, err
	}
	files, err := list(a, sets)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := r.load(ctx, a, t); err != nil {
		return nil, err
	}
	// A problem without targets shows what is wrong with the prompt before anything is
	// encoded.
	if err := task.Check(r.loaded(), template, r.words); err != nil {
		return nil, err
	}
	if err := ort.InitContext(ctx, a.Runtime()); err != nil {
		return nil, err
	}
	if err := r.encodeImages(ctx, a, t, sets, files); err != nil {
		return nil, err
	}
	for _, x := range texts {
		for i := range r.members {
			vector, err := r.members[i].Model.Text(ctx, x.Text)
			if err != nil {
				return nil, err
			}
			r.members[i].Targets.Text(vector, x.Weight)
		}
		r.texts = append(r.texts, Text(x))
	}
	r.Problem, err = task.NewProblem(r.members, template, r.words)
	return r, err
}

// list finds the files of the sets.
func list(a *app.App, sets []task.ImageSet) ([][]string, error) {
	files := make([][]string, len(sets))
	for i, s := range sets {
		var err error
		files[i], err = pictures.List(s.Path)
		var bad *pictures.Error
		switch {
		case errors.As(err, &bad) && bad.Problem == pictures.NoFiles:
			return nil, &NoPictureError{Path: s.Path}
		case err != nil:
			return nil, app.Usage(err)
		}
	}
	return files, nil
}

// load reads the models.
func (r *Runner) load(ctx context.Context, a *app.App, t *Targets) error {
	names, weights, err := t.models()
	if err != nil {
		return err
	}
	rt := a.Runtime()
	rt.Progress = nil // nothing is fetched when sessions are opened
	for i, name := range names {
		src, err := models.OpenTowers(ctx, name, a.Hub())
		if err != nil {
			return err
		}
		m, err := task.Load(src, clip.Options{MaxBatch: t.MaxBatch, Runtime: rt})
		if err != nil {
			return err
		}
		r.members = append(r.members, task.Member{Model: m, Weight: weights[i]})
		r.models = append(r.models, ModelID{Name: src.Name, TextSHA256: src.TextSHA256, VisionSHA256: src.VisionSHA256, Weight: weights[i]})
	}
	return nil
}

func (r *Runner) loaded() []*task.Model {
	list := make([]*task.Model, len(r.members))
	for i, m := range r.members {
		list[i] = m.Model
	}
	return list
}

// encodeImages gives every model the vectors of all sets.
func (r *Runner) encodeImages(ctx context.Context, a *app.App, t *Targets, sets []task.ImageSet, files [][]string) error {
	o := task.ImageOptions{Workers: a.Threads, Limits: pictures.Limits{Pixels: t.MaxPixels}}
	if !t.NoImageCache {
		var err error
		if o.Cache, err = pictures.CacheDir(); err != nil {
			a.Logf("%v: the vectors of pictures are not kept", err)
		}
	}
	bar := a.NewBar()
	defer bar.Clear()
	for k, s := range sets {
		set := Set{Path: s.Path, Weight: s.Weight, Skipped: []Skipped{}}
		for i := range r.members {
			m := &r.members[i]
			o.Progress = func(done, total int) {
				bar.Show("encoding "+s.Path, int64(done), int64(total), fmt.Sprintf("%d of %d files", done, total))
			}
			got, err := m.Model.Images(ctx, files[k], o)
			bar.Clear()
			if err != nil {
				return err
			}
			if i == 0 {
				for _, bad := range got.Skipped {
					a.Logf("skipped: %v", bad)
					set.Skipped = append(set.Skipped, Skipped{File: bad.File, Error: bad.Error()})
				}
				set.Used = len(got.Files)
				r.files, r.sums = append(r.files, got.Files), append(r.sums, got.Sums)
			}
			if got.CacheError != nil {
				a.Logf("%v", got.CacheError)
			}
			m.Targets.Images(got.Vectors, s.Weight)
		}
		if set.Used == 0 {
			return &NoPictureError{Path: s.Path, Skipped: set.Skipped}
		}
		r.sets = append(r.sets, set)
	}
	return nil
}

// NoPictureError reports a set without a picture that can be used.
type NoPictureError struct {
	Path    string
	Skipped []Skipped // files that are none
}

func (e *NoPictureError) Error() string {
	why := func(s Skipped) string { return strings.TrimPrefix(s.Error, "pictures: ") }
	switch len(e.Skipped) {
	case 0:
		return fmt.Sprintf("no pictures: %s has no files", e.Path)
	case 1:
		return "no pictures: " + why(e.Skipped[0])
	}
	return fmt.Sprintf("no pictures: none of the %d files of %s can be used; the first is %s", len(e.Skipped), e.Path, why(e.Skipped[0]))
}

// Terms is the number of pictures and texts.
func (r *Runner) Terms() int { return len(r.members[0].Targets.Weights) }

// Close frees the runtime's sessions.
func (r *Runner) Close() error {
	var err error
	for _, m := range r.members {
		err = errors.Join(err, m.Model.Close())
	}
	return err
}
