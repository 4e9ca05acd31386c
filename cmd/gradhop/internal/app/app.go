// Package app provides what every command shares: the standard streams, the persistent flags, the
// progress line and the version.
package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
)

// App is the environment of a command.
type App struct {
	// In, Out and Err are the standard streams. Out is for data only.
	In       io.Reader
	Out, Err io.Writer
	// InTerminal and ErrTerminal report whether In and Err are terminals.
	InTerminal, ErrTerminal bool
	// Columns is the width of the terminal, 0 if unknown.
	Columns int

	// Library, Provider, ProviderLibrary, ProviderOptions and Threads are the runtime flags.
	Library, Provider, ProviderLibrary string
	ProviderOptions                    map[string]string
	Threads                            int
	// Offline forbids downloads.
	Offline bool
	// Quiet suppresses everything except data and errors.
	Quiet bool

	graceful atomic.Bool
}

// Graceful declares that from now on the command itself ends soon after a signal and keeps its results.
// Before this call, the program exits one second after a signal.
func (a *App) Graceful() { a.graceful.Store(true) }

// Ending reports whether Graceful was called.
func (a *App) Ending() bool { return a.graceful.Load() }

// New returns an App with the streams of the process.
func New() *App {
	a := &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	a.InTerminal = term.IsTerminal(int(os.Stdin.Fd()))
	a.ErrTerminal = term.IsTerminal(int(os.Stderr.Fd()))
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil {
		a.Columns = w
	}
	return a
}

// AddFlags defines the persistent flags.
func (a *App) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.Library, "ort-lib", "", "onnxruntime library, a `file` (default: search for one, or fetch it; see gradhop doctor)")
	fs.StringVar(&a.Provider, "provider", "cpu", "where models run: `cpu|cuda|cuda:N|auto`, openvino[:cpu|gpu|npu][,f32|bf16|f16], or plugin[:cpu|gpu|npu] for --provider-library")
	fs.StringVar(&a.ProviderLibrary, "provider-library", "", "library of the provider openvino or plugin, a `file` (default: that of openvino is fetched once)")
	fs.StringToStringVar(&a.ProviderOptions, "provider-option", nil, "an option of the provider plugin, `KEY=VALUE`; may be repeated")
	fs.IntVar(&a.Threads, "threads", 0, "`number` of threads for the model, 0 for one per core")
	fs.BoolVar(&a.Offline, "offline", false, "do not download; use models and libraries on this machine only")
	fs.BoolVarP(&a.Quiet, "quiet", "q", false, "print only data and errors")
}

// Check returns an error for invalid persistent flags. The number of threads is limited because every
// session starts its own.
func (a *App) Check() error {
	if most := max(64, 4*runtime.NumCPU()); a.Threads < 0 || a.Threads > most {
		return Usagef("--threads %d: want 0 to %d", a.Threads, most)
	}
	var bad *onnx.ArgumentError
	if errors.As(ort.CheckProvider(a.Runtime()), &bad) {
		return Usagef("--provider %s: %s", a.Provider, bad.Reason)
	}
	return nil
}

// Runtime returns the runtime options of the flags. Fetching the library shows progress on Err.
func (a *App) Runtime() ort.Options {
	o := ort.Options{Library: a.Library, Provider: a.Provider, ProviderLibrary: a.ProviderLibrary, ProviderOptions: a.ProviderOptions,
		Threads: a.Threads, NoFetch: a.Offline}
	if a.Quiet {
		return o
	}
	bar := &Bar{app: a}
	last := ""
	o.Progress = func(stage string, done, total int64) {
		if a.ErrTerminal {
			bar.show(stage, done, total, "")
			if total > 0 && done >= total {
				bar.Clear()
			}
		} else if stage != last {
			a.Logf("%s", stage)
		}
		last = stage
	}
	return o
}

// Hub returns the options for the Hugging Face Hub. Downloads show progress on Err.
func (a *App) Hub() hub.Options {
	o := hub.Options{Offline: a.Offline}
	o.Unreachable = func(ref hub.Ref, err error) { a.Logf("%s: the hub cannot be reached (%v); using the cache", ref, err) }
	bar, last := a.NewBar(), hub.Ref{}
	o.Progress = func(p hub.Progress) {
		if !a.ErrTerminal && p.Ref != last {
			a.Logf("downloading %s", p.Ref)
		}
		last = p.Ref
		bar.Show("downloading "+p.Ref.String(), p.Done, p.Total, p.File)
		if p.Done >= p.Total {
			bar.Clear()
		}
	}
	return o
}

// Logf prints a line to Err unless Quiet is set. Characters that would break the line are escaped; see
// Plain.
func (a *App) Logf(format string, args ...any) {
	if !a.Quiet {
		a.Errorf(format, args...)
	}
}

// Errorf prints an error line to Err.
func (a *App) Errorf(format string, args ...any) {
	fmt.Fprintln(a.Err, "gradhop: "+Plain(fmt.Sprintf(format, args...)))
}

// Bar is a progress line that overwrites itself. It is disabled if Err is not a terminal or Quiet is
// set.
type Bar struct {
	app   *App
	shown time.Time
	drawn bool
}

// NewBar returns a progress line.
func (a *App) NewBar() *Bar { return &Bar{app: a} }

// Show redraws the line, at most ten times a second.
func (b *Bar) Show(label string, done, total int64, note string) {
	if b.app.ErrTerminal && !b.app.Quiet {
		b.show(label, done, total, note)
	}
}

func (b *Bar) show(label string, done, total int64, note string) {
	if now := time.Now(); now.Sub(b.shown) >= 100*time.Millisecond || done >= total && total > 0 {
		b.shown, b.drawn = now, true
		fmt.Fprintf(b.app.Err, "\r\x1b[K%s", line(Plain(label), done, total, Plain(note), b.app.Columns))
	}
}

// Clear removes the line.
func (b *Bar) Clear() {
	if b.drawn {
		fmt.Fprint(b.app.Err, "\r\x1b[K")
		b.drawn = false
	}
}
