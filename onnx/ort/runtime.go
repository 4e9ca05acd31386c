package ort

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// loaded is the library that the process uses; there can be one only, since
// the binding keeps it in a global.
var loaded struct {
	sync.Mutex
	ready bool
	found Found
	lib   library
}

// Init finds the library as [Locate] does, loads it and
// initialises it. Once it has succeeded, further calls do nothing, except that
// one whose o.Library names another file is a [LoadedError]. After an error it
// may be called again. Only Library, Progress and NoFetch of o matter.
func Init(ctx context.Context, o Options) error {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.ready {
		if o.Library != "" && !sameFile(resolve(o.Library), loaded.found.Path) {
			return &LoadedError{Loaded: loaded.found.Path, Asked: o.Library}
		}
		return nil
	}
	found, lib, err := locate(ctx, o)
	if err != nil {
		return err
	}
	ort.SetSharedLibraryPath(found.Path)
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return &LoadError{Path: found.Path, How: found.How, Err: err}
	}
	// Official builds for Windows report usage unless told not to. A build
	// without that feature answers with an error, which is as good.
	_ = ort.DisableTelemetry()
	loaded.ready, loaded.found, loaded.lib = true, found, lib
	return nil
}

// Version is the version that the loaded library reports, for instance "1.29.0", or ""
// before [Init]. What records a run should record this, not [Pinned]: a user may name
// another library.
func Version() string { return inUse().Version }

// Library is the path of the library in use, or "" before [Init].
func Library() string { return inUse().Path }

func inUse() Found {
	loaded.Lock()
	defer loaded.Unlock()
	return loaded.found
}

// Providers are the execution providers that the library in use was built
// with, by the runtime's names ("CPUExecutionProvider",
// "CUDAExecutionProvider", ...), or nil before [Init]. A provider in the list
// may still fail on a machine without its driver or device.
func Providers() []string {
	loaded.Lock()
	defer loaded.Unlock()
	if !loaded.ready {
		return nil
	}
	return loaded.lib.providers()
}

func sameFile(a, b string) bool {
	sa, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}
