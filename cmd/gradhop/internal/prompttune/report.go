package prompttune

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// mostImproved bounds the improvements that are kept for the page; the last ones are.
const mostImproved = 100

// reporter collects what the page of --report shows and writes it; without one it does
// nothing. Its memory does not grow with the number of steps.
type reporter struct {
	o        *Options
	out      *app.Output // nil before begin where the folder of the run is to hold it
	thumbs   thumbs
	trace    trace
	improved []Result
	earlier  int // improvements that are kept no more
}

// newReporter refuses a file that cannot be written, before long work.
func (o *Options) newReporter() (*reporter, error) {
	p := &reporter{o: o, thumbs: thumbs{}}
	switch {
	case o.Report == "":
		return p, nil
	case o.Report == "-":
		return nil, app.Usagef("--report -: standard output is for the results; name a file")
	case o.Resume == "" && o.inside():
		return p, nil // the folder is there only when the first evaluation is made
	}
	return p, p.open()
}

// inside reports whether the page is to lie in the folder of the run.
func (o *Options) inside() bool {
	return o.Report != "" && o.folder() != "" && filepath.Clean(filepath.Dir(o.Report)) == filepath.Clean(o.folder())
}

func (p *reporter) open() (err error) {
	p.out, err = p.o.App.Create(p.o.Report)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Dir(p.o.Report)); e != nil {
			return app.Usagef("--report %s: there is no folder %s", p.o.Report, filepath.Dir(p.o.Report))
		}
	}
	return err
}

// begin reads the pictures of the targets, small.
func (p *reporter) begin(ctx context.Context, r *Runner) error {
	if p.o.Report == "" {
		return nil
	}
	if p.out == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	var files []string
	for _, list := range r.files {
		files = append(files, list[:min(len(list), mostThumbs)]...)
	}
	return p.thumbs.add(ctx, p.o, files)
}

// improvement takes down a prompt that is better than all before it.
func (p *reporter) improvement(r Result) {
	if p.o.Report == "" {
		return
	}
	if len(p.improved) == mostImproved {
		copy(p.improved, p.improved[1:])
		p.improved = p.improved[:mostImproved-1]
		p.earlier++
	}
	p.improved = append(p.improved, r)
}

// step takes down where the chains are.
func (p *reporter) step(s *samplers.State, best *task.Best) {
	if p.o.Report != "" {
		p.trace.add(s.U, best.Prompts(), s.InverseTemperature())
	}
}

// end writes the page, of an interrupted run too.
func (p *reporter) end(ctx context.Context, r *Runner, d *Document, estimates bool) error {
	if p.o.Report == "" {
		return nil
	}
	defer p.discard()
	page, err := p.gather(context.WithoutCancel(ctx), r, d, estimates)
	if err != nil {
		return err
	}
	if err := reportTemplate.Execute(p.out, page); err != nil {
		return err
	}
	return p.out.Commit()
}

// discard removes what was written of the page, unless all of it was.
func (p *reporter) discard() {
	if p.out != nil {
		p.out.Discard()
	}
}
