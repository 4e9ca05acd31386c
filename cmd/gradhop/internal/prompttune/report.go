package prompttune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/prompttune/page"
	task "github.com/gradhop/gradhop/tasks/prompttune"
)

// report is the page of --report; without one it writes nothing.
type report struct {
	o    *options
	out  *app.Output
	page page.Page
}

// open refuses a file that cannot be written, before long work.
func (p *report) open() (err error) {
	switch p.o.Page {
	case "":
		return nil
	case "-":
		return app.Usagef("--report -: standard output is for the results; name a file")
	}
	p.out, err = p.o.app.Create(p.o.Page)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Dir(p.o.Page)); e != nil {
			return app.Usagef("--report %s: there is no folder %s", p.o.Page, filepath.Dir(p.o.Page))
		}
	}
	return err
}

// begin reads the images of the targets.
func (p *report) begin(ctx context.Context, t *task.Task) error {
	if p.o.Page == "" {
		return nil
	}
	if p.out == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	bar := p.o.app.NewBar()
	defer bar.Clear()
	p.page.Workers, p.page.MaxPixels = p.o.app.Threads, p.o.Goal.MaxPixels
	p.page.Progress = func(done, total int) {
		bar.Show("images of the page", int64(done), int64(total), fmt.Sprintf("%d of %d", done, total))
	}
	return p.page.Begin(ctx, t)
}

// end writes the page, of an interrupted run too.
func (p *report) end(ctx context.Context, t *task.Task, d *task.Document) error {
	if p.out == nil || d.Stopped == task.StoppedFailed && len(d.Results) == 0 {
		return nil
	}
	if err := p.page.Write(p.out, t, d); err != nil {
		return err
	}
	return p.out.Commit()
}

// discard removes what was written of the page, unless all of it was.
func (p *report) discard() {
	if p.out != nil {
		p.out.Discard()
	}
}
