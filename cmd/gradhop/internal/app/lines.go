package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
)

// Lines yields the texts of a run: one argument, or the lines of a file.
type Lines struct {
	// Name is that of the file, for messages; "" for an argument.
	Name string
	// Number is that of the line last read, from 1; 0 for an argument.
	Number int

	single string
	lines  *bufio.Reader // nil for an argument
	file   io.Closer     // nil where there is nothing to close
	done   bool
}

// OpenLines opens file, "-" for standard input, or yields text where file is "".
func OpenLines(a *App, text, file string) (*Lines, error) {
	switch file {
	case "":
		return &Lines{single: text}, nil
	case "-":
		l := &Lines{lines: bufio.NewReader(a.In), Name: "standard input"}
		l.file, _ = a.In.(io.Closer)
		return l, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, Usage(err)
	}
	return &Lines{lines: bufio.NewReader(f), file: f, Name: file}, nil
}

// Next returns the next text that is not blank, or io.EOF, or the context's error if it
// ends while there is nothing to read yet. The input is then closed, which ends the read.
func (l *Lines) Next(ctx context.Context) (string, error) {
	if l.done {
		return "", io.EOF
	}
	if l.lines == nil {
		l.done = true
		return l.single, nil
	}
	type read struct {
		text string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		text, err := l.read()
		got <- read{text, err}
	}()
	select {
	case r := <-got:
		return r.text, r.err
	case <-ctx.Done():
		l.Close()
		return "", ctx.Err()
	}
}

// read waits for the next text in a file.
func (l *Lines) read() (string, error) {
	for {
		line, err := l.lines.ReadString('\n')
		if line != "" {
			l.Number++
		}
		if l.Number == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.TrimSpace(text) != "" {
			return text, nil // an error comes again at the next call
		}
		if errors.Is(err, io.EOF) {
			l.done = true
			return "", io.EOF
		}
		if err != nil {
			return "", Usagef("reading %s: %w", l.Name, err)
		}
	}
}

// Close closes the input.
func (l *Lines) Close() {
	if l.file != nil {
		l.file.Close()
	}
}
