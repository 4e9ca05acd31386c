package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/modelfile"
	"github.com/gradhop/gradhop/cmd/gradhop/internal/sample"
	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
	"github.com/gradhop/gradhop/tasks/infill"
	"github.com/gradhop/gradhop/tasks/prompttune"
)

// The exit codes of the program.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 3
	exitInterrupted = 130
)

// conclude prints an error and returns its exit code.
func conclude(ctx context.Context, a *app.App, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCode(ctx, err)
	if code == exitInterrupted {
		a.Logf("interrupted")
		return code
	}
	a.Errorf("%s", firstLine(err))
	if code == exitUsage {
		a.Logf("see gradhop --help")
	}
	return code
}

// exitCode is the one place where errors become exit codes.
func exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case is[*app.FailedError](err):
		return exitFailed
	case unavailable(err):
		return exitUnavailable
	case usage(err):
		return exitUsage
	}
	return exitFailed
}

// unavailable says that the runtime library or the model cannot be used.
func unavailable(err error) bool {
	return is[*ort.NotFoundError](err) || is[*ort.LoadError](err) || is[*ort.VersionError](err) ||
		is[*ort.LoadedError](err) || is[*ort.ChecksumError](err) || is[*ort.FetchError](err) || is[*ort.DiskError](err) ||
		is[*ort.ProviderError](err) || is[*ort.ModelError](err) ||
		is[*models.UnknownError](err) || is[*models.MissingFileError](err) || is[*models.ChecksumError](err) ||
		is[*infill.LoadError](err) || is[*infill.VocabularyError](err) ||
		is[*prompttune.LoadError](err) || is[*prompttune.VocabularyError](err) || is[*modelfile.UnavailableError](err)
}

// usage says that flags, arguments or input cannot be used.
func usage(err error) bool {
	var out *app.OutputError
	if errors.As(err, &out) {
		return out.Before
	}
	return is[*app.UsageError](err) || is[infill.InputError](err) || is[*infill.OptionError](err) ||
		is[prompttune.InputError](err) || is[*prompttune.VocabulariesError](err) || is[*models.KindError](err) ||
		is[*samplers.UnknownError](err) || is[*samplers.OptionError](err) || is[*samplers.ConfigError](err) ||
		is[*samplers.ScheduleError](err) || is[*samplers.UnsupportedError](err) || is[*neural.OptionError](err) || is[*energies.SpaceError](err) ||
		is[*ort.UsageError](err) || is[*neural.MismatchError](err) || is[*sample.InputFileError](err) || run(err) || unknownCommand(err)
}

// run says that the folder of a run is not the one that is wanted.
func run(err error) bool {
	return is[*store.MissingError](err) || is[*store.NotOursError](err) || is[*store.ExistsError](err) || is[*store.LockedError](err) || is[*store.HeaderError](err) ||
		is[*store.MismatchError](err) || is[*store.OverlapError](err) || is[*store.FormatError](err) || is[*store.PictureError](err)
}

// is reports whether err is or wraps an error of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// unknownCommand recognises cobra's errors about commands and arguments, which have no
// type of their own.
func unknownCommand(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "unknown command ") || strings.HasPrefix(text, "required flag") || strings.Contains(text, "arg(s)")
}

// firstLine is the error on one line, without what would disturb a terminal. Of errors
// joined what has been said already is left out: that a disk is full ends a run, and is
// true when its folder is closed.
func firstLine(err error) string {
	var said []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, line) }) {
			said = append(said, line)
		}
	}
	return app.Plain(strings.Join(said, "; "))
}
