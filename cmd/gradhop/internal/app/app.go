// Package app is what every command of the program shares: the standard streams, the
// persistent flags, the progress line and the version.
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

// App is the program around a command.
type App struct {
	// In, Out and Err are the standard streams. Out is for data only.
	In       io.Reader
	Out, Err io.Writer
	// InTerminal and ErrTerminal say that a person is at the other end.
	InTerminal, ErrTerminal bool
	// Columns is the width of the terminal behind Err, 0 if it is not known.
	Columns int

	// Library, Provider, ProviderLibrary, ProviderOptions and Threads are the flags of the
	// runtime.
	Library, Provider, ProviderLibrary string
	ProviderOptions                    map[string]string
	Threads                            int
	// Offline forbids downloads.
	Offline bool
	// Quiet leaves everything but data and errors out.
	Quiet bool

	graceful atomic.Bool
}

// Graceful says that from now on the command itself ends soon after a signal, with what was
// done until then. Before, the program exits one second after the signal.
func (a *App) Graceful() { a.graceful.Store(true) }

// Ending reports whether Graceful was called.
func (a *App) Ending() bool { return a.graceful.Load() }

// New returns an App on the process's own streams.
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
	fs.BoolVar(&a.Offline, "offline", false, "download nothing; use models and libraries that are here already")
	fs.BoolVarP(&a.Quiet, "quiet", "q", false, "print data and errors only")
}

// Check returns an error for values of the persistent flags that no command can use. Every
// session of the runtime makes threads of its own, so their number is bounded.
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

// Runtime returns the options of the runtime that the flags ask for. A fetch shows
// its progress on Err.
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

// Hub returns the options for models of the Hugging Face Hub. A download shows its progress
// on Err.
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

// Logf prints a line for people, unless the program is to be quiet. It stays one line that
// a terminal can show, whatever is in args: see Plain.
func (a *App) Logf(format string, args ...any) {
	if !a.Quiet {
		a.Errorf(format, args...)
	}
}

// Errorf prints the line of an error, as Logf prints one.
func (a *App) Errorf(format string, args ...any) {
	fmt.Fprintln(a.Err, "gradhop: "+Plain(fmt.Sprintf(format, args...)))
}

// Bar is a progress line that overwrites itself. It is silent where Err is not a
// terminal or the program is to be quiet.
type Bar struct {
	app   *App
	shown time.Time
	drawn bool
}

// NewBar returns a progress line.
func (a *App) NewBar() *Bar { return &Bar{app: a} }

// Show draws the line, at most ten times a second.
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
