package infill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/run"
	"github.com/gradhop/gradhop/samplers"
	task "github.com/gradhop/gradhop/tasks/infill"
)

// texts yields the inputs of a run.
type texts struct {
	single string // the argument; used where lines is nil
	lines  *bufio.Reader
	file   io.Closer
	name   string // of the file, for messages
	number int    // of the line last read
	done   bool
}

func (o *Options) texts() (*texts, error) {
	switch o.File {
	case "":
		return &texts{single: o.Text}, nil
	case "-":
		return &texts{lines: bufio.NewReader(o.App.In), name: "standard input"}, nil
	}
	f, err := os.Open(o.File)
	if err != nil {
		return nil, app.Usage(err)
	}
	return &texts{lines: bufio.NewReader(f), file: f, name: o.File}, nil
}

// next returns the next text that is not blank, or io.EOF, or the context's error if it
// ends while there is nothing to read yet. Then t must not be used any more.
func (t *texts) next(ctx context.Context) (string, error) {
	if t.done {
		return "", io.EOF
	}
	if t.lines == nil {
		t.done = true
		return t.single, nil
	}
	type read struct {
		text string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		text, err := t.read()
		got <- read{text, err}
	}()
	select {
	case r := <-got:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// read waits for the next text in a file.
func (t *texts) read() (string, error) {
	for {
		line, err := t.lines.ReadString('\n')
		if line != "" {
			t.number++
		}
		text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.TrimSpace(text) != "" {
			return text, nil // an error comes again at the next call
		}
		if errors.Is(err, io.EOF) {
			t.done = true
			return "", io.EOF
		}
		if err != nil {
			return "", app.Usagef("reading %s: %w", t.name, err)
		}
	}
}

func (t *texts) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// runAll runs every text and prints what comes of it.
func (o *Options) runAll(ctx context.Context, r *run.Runner, in *texts, print *printer) error {
	defer o.App.Graceful()()
	bar := o.App.NewBar()
	defer bar.Clear()
	var failed, of int
	for {
		text, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		label := "sampling"
		if in.lines != nil {
			label = fmt.Sprintf("line %d", in.number)
		}
		res, err := r.Infill(ctx, text, o.Chains, func(done, total int) {
			bar.Show(label, int64(done), int64(total), fmt.Sprintf("%d of %d steps", done, total))
		})
		bar.Clear()
		if res != nil {
			if e := print.result(in.number, res); e != nil {
				return e
			}
		}
		of++
		switch {
		case err == nil:
		case in.lines == nil || !isOfText(err):
			return err
		default:
			failed++
			o.App.Errorf("%s:%d: %v", in.name, in.number, err)
			if e := print.failure(in.number, text, err); e != nil {
				return e
			}
		}
	}
	switch {
	case of == 0:
		return app.Usagef("no text in %s", in.name)
	case failed > 0:
		return &app.Error{Code: 1, Err: fmt.Errorf("%d of %d inputs failed", failed, of)}
	}
	return nil
}

// isOfText reports whether another text may do better: the settings, the model and the
// runtime are not at fault.
func isOfText(err error) bool {
	var input task.InputError
	var number *samplers.NonFiniteError
	return errors.As(err, &input) || errors.As(err, &number)
}
