package ort

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrClosed is returned by [Session.Run] and [Session.Close] on a session that
// is closed.
var ErrClosed = errors.New("ort: the session is closed")

// A UsageError reports an option or argument that can never be right.
type UsageError struct {
	Option string // the field or argument, for instance "Provider"
	Value  string // what was given
	Want   string // what is accepted
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("ort: %s is %q: want %s", e.Option, e.Value, e.Want)
}

// ExitCode returns 2: bad usage or input.
func (*UsageError) ExitCode() int { return 2 }

// A NotFoundError reports that no usable library was found, and none fetched.
type NotFoundError struct {
	Tried []Attempt // every place and source, in the order tried
}

func (e *NotFoundError) Error() string {
	parts := make([]string, len(e.Tried))
	for i, a := range e.Tried {
		parts[i] = a.String()
	}
	return "ort: no onnxruntime library of version " + Need + " or later; set " + envLib +
		" to the file of one; tried " + strings.Join(parts, "; ")
}

// ExitCode returns 3: runtime or model unavailable.
func (*NotFoundError) ExitCode() int { return 3 }

// Unwrap returns the error of every attempt, so that [errors.As] finds a
// [ChecksumError] or [VersionError] among them.
func (e *NotFoundError) Unwrap() []error {
	var errs []error
	for _, a := range e.Tried {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// A LoadError reports a file that can't be loaded as an onnxruntime library.
type LoadError struct {
	Path string
	How  string // how the file came to be tried; see [Attempt]
	Err  error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("ort: %s (from %s) can't be loaded as an onnxruntime library: %s", e.Path, e.How, oneLine(e.Err))
}

// ExitCode returns 3: runtime or model unavailable.
func (*LoadError) ExitCode() int { return 3 }

func (e *LoadError) Unwrap() error { return e.Err }

// A VersionError reports a library that is older than the binding needs.
type VersionError struct {
	Path  string
	How   string // how the file came to be tried; see [Attempt]
	Found string // the version that the library reports
	Need  string // the lowest version that will do
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("ort: %s (from %s) is onnxruntime %s: version %s or later is needed", e.Path, e.How, e.Found, e.Need)
}

// ExitCode returns 3: runtime or model unavailable.
func (*VersionError) ExitCode() int { return 3 }

// A LoadedError reports that the process already uses another library: there
// can be one only.
type LoadedError struct {
	Loaded string // the library in use
	Asked  string // the one asked for now
}

func (e *LoadedError) Error() string {
	return fmt.Sprintf("ort: %s is already loaded: a process can't also use %s", e.Loaded, e.Asked)
}

// ExitCode returns 3: runtime or model unavailable.
func (*LoadedError) ExitCode() int { return 3 }

// A ChecksumError reports fetched bytes that are not the pinned ones. They are
// deleted before the error is returned.
type ChecksumError struct {
	Source string // "upstream", "npm" or "pip"
	File   string // the archive, or the library in it
	Want   string // pinned sha256, in hex; "" when none is pinned
	Got    string // sha256 of what came, in hex; "" when nothing was fetched
}

func (e *ChecksumError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("ort: no pinned checksum for %s from %s: refused", e.File, e.Source)
	}
	return fmt.Sprintf("ort: %s from %s has sha256 %s, not the pinned %s: refused", e.File, e.Source, e.Got, e.Want)
}

// ExitCode returns 3: runtime or model unavailable.
func (*ChecksumError) ExitCode() int { return 3 }

// A FetchError reports a source that gave no library.
type FetchError struct {
	Source string // "upstream", "npm" or "pip"
	What   string // URL or package
	Err    error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("ort: %s gave no %s: %s", e.Source, e.What, oneLine(e.Err))
}

// ExitCode returns 3: runtime or model unavailable.
func (*FetchError) ExitCode() int { return 3 }

func (e *FetchError) Unwrap() error { return e.Err }

// A DiskError reports that the cache can't take the library: the disk is full
// or the folder can't be written.
type DiskError struct {
	Path string // the folder or file
	Need int64  // bytes needed for the fetch in all, about
	Err  error
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("ort: can't write %s: %s; about %d MB are needed: free some space, or set %s to another folder",
		e.Path, oneLine(e.Err), (e.Need+999_999)/1_000_000, envCache)
}

// ExitCode returns 3: runtime or model unavailable.
func (*DiskError) ExitCode() int { return 3 }

func (e *DiskError) Unwrap() error { return e.Err }

// A ProviderError reports an execution provider that this library or this
// machine can't give.
type ProviderError struct {
	Provider string // for instance "cuda:0"
	Library  string // path of the library in use
	Err      error
}

func (e *ProviderError) Error() string {
	return fmt.Sprintf("ort: provider %s can't be used with %s: %s; use --provider cpu, or name a GPU build of onnxruntime (with CUDA and cuDNN installed) by %s",
		e.Provider, e.Library, oneLine(e.Err), envLib)
}

// ExitCode returns 3: runtime or model unavailable.
func (*ProviderError) ExitCode() int { return 3 }

func (e *ProviderError) Unwrap() error { return e.Err }

// A ModelError reports a model that can't be opened.
type ModelError struct {
	Session string // [Options.Name]
	Err     error
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("ort: %s: the model can't be opened: %s", e.Session, oneLine(e.Err))
}

// ExitCode returns 3: runtime or model unavailable.
func (*ModelError) ExitCode() int { return 3 }

func (e *ModelError) Unwrap() error { return e.Err }

// A NameError reports an input or output that the model does not have.
type NameError struct {
	Session string // [Options.Name]
	Kind    string // "input" or "output"
	Name    string
	Have    []string // the names that the model has
}

func (e *NameError) Error() string {
	return fmt.Sprintf("ort: %s: the model has no %s %q: it has %s", e.Session, e.Kind, e.Name, strings.Join(e.Have, ", "))
}

// An UnsupportedError reports a tensor type that this package does not carry.
type UnsupportedError struct {
	Session string // [Options.Name]
	Kind    string // "input" or "output"
	Name    string
	Type    string // ONNX element type or Go type
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("ort: %s: %s %q has type %s, which is not supported: add a Cast to the model, to one of %s",
		e.Session, e.Kind, e.Name, e.Type, supportedTypes)
}

// A TensorError reports a tensor that does not fit the model, or whose shape
// does not fit its data.
type TensorError struct {
	Session string // [Options.Name]
	Kind    string // "input" or "output"
	Name    string
	Reason  string
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("ort: %s: %s %q: %s", e.Session, e.Kind, e.Name, e.Reason)
}

// A RunError reports a run that the runtime gave up.
type RunError struct {
	Session string // [Options.Name]
	Err     error
}

func (e *RunError) Error() string {
	return fmt.Sprintf("ort: %s: run failed: %s", e.Session, oneLine(e.Err))
}

func (e *RunError) Unwrap() error { return e.Err }

// runtimePrefix is where in its own source, and with which code, the runtime failed.
var runtimePrefix = regexp.MustCompile(`^.*\[ONNXRuntimeError\] : \d+ : \w+ : `)

// oneLine is the text of err on one line, without what the package, the
// binding and the runtime put before it.
func oneLine(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	s = runtimePrefix.ReplaceAllString(s, "")
	for _, p := range []string{"ort: ", "Error running network: ", "Error creating C session: ", "Platform-specific initialization failed: "} {
		s = strings.TrimPrefix(s, p)
	}
	return s
}
