package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/gradhop/gradhop/samplers"
)

// Create creates and locks the folder of a new run. It must be empty or not exist. Errors are *Error.
func Create(dir string, h Header, o Options) (*Writer, error) { return create(dir, h, o, system{}) }

func create(dir string, h Header, o Options, d disk) (*Writer, error) {
	h.Format = format
	if err := h.check(); err != nil {
		return nil, err
	}
	if err := Vacant(dir); err != nil { // before leaving a lock in a foreign folder
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); errors.Is(err, syscall.ENOSPC) {
		return nil, CannotWrite(dir, err)
	} else if err != nil {
		return nil, &Error{Path: dir, Reason: "cannot be created", Err: err}
	}
	lock, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	err = Vacant(dir)
	b := newBackend(dir, d, h)
	if err == nil {
		err = b.commit(markerName, seal(h))
	}
	if err == nil {
		err = b.create()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return newWriter(h, o, lock, b), nil
}

// Resume locks the folder of a run, verifies every file needed to continue, and truncates the run to
// its last checkpoint. If draws or that checkpoint are damaged, it goes back to the last checkpoint
// before the damage, or to the start, and the same draws are made again; see [Writer.Damage].
//
// The snapshot returned is for samplers.Config.Resume; nil means from the start. h.Steps may differ
// from the folder's, but must not be below the steps already made. Errors are *Error and
// *MismatchError.
func Resume(dir string, h Header, o Options) (*Writer, *samplers.Snapshot, error) {
	return resume(dir, h, o, system{})
}

func resume(dir string, h Header, o Options, d disk) (*Writer, *samplers.Snapshot, error) {
	h.Format = format
	if err := h.check(); err != nil {
		return nil, nil, err
	}
	there, err := readHeader(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := there.matches(dir, h); err != nil {
		return nil, nil, err
	}
	if !slices.Equal(there.ChainIDs, h.ChainIDs) {
		return nil, nil, &MismatchError{Dir: dir, Field: "chain_ids", There: ids(there.ChainIDs), Here: ids(h.ChainIDs)}
	}
	lock, err := acquire(dir)
	if err != nil {
		return nil, nil, err
	}
	w, snapshot, err := takeUp(dir, there, h, o, lock, d)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	return w, snapshot, nil
}

// takeUp resumes a run whose folder is locked.
func takeUp(dir string, there, h Header, o Options, lock *flock.Flock, d disk) (*Writer, *samplers.Snapshot, error) {
	c, damage, err := lastGood(dir, there)
	if err != nil {
		return nil, nil, err
	}
	total := int64(h.Warmup + h.Steps)
	if c != nil && c.Snapshot.Step > total {
		return nil, nil, &Error{Path: dir, Reason: fmt.Sprintf("the run has made %d steps after warm-up, more than the %d requested; request at least as many", c.Snapshot.Step-int64(h.Warmup), h.Steps)}
	}
	h.Files = there.Files
	b := newBackend(dir, d, h)
	if there.Steps != h.Steps || there.Model != h.Model {
		if err := b.commit(markerName, seal(h)); err != nil {
			return nil, nil, err
		}
	}
	if c == nil || c.Snapshot.Step < total {
		if err := b.remove(summaryName); err != nil { // describes fewer draws
			return nil, nil, err
		}
	}
	if c == nil {
		err = b.create()
	} else {
		err = b.restore(c)
	}
	if err != nil {
		return nil, nil, err
	}
	w := newWriter(h, o, lock, b)
	if w.damage = damage; c == nil {
		return w, nil, nil
	}
	w.next, w.tally, w.before = c.Snapshot.Step+1, c.Tally, c.Tally.Seconds
	return w, &c.Snapshot, nil
}

// acquire locks a run's folder.
func acquire(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o644))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, CannotWrite(lock.Path(), err)
	}
	if !ok {
		return nil, &Error{Path: dir, Reason: "another process is writing to it"}
	}
	return lock, nil
}

// Begun reports whether a folder contains a run.
func Begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markerName))
	return err == nil
}

// Vacant returns the *Error that Create would return for a folder that is not empty, else nil. Use it
// to fail before expensive work.
func Vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	foreign := &Error{Path: dir, Reason: "not empty, and not a run folder; choose another folder"}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		if info, e := os.Stat(dir); e == nil && !info.IsDir() {
			return foreign
		}
		return &Error{Path: dir, Reason: "cannot be read", Err: err}
	}
	if Begun(dir) {
		return &Error{Path: dir, Reason: "contains a run already; resume it, or choose another folder"}
	}
	for _, e := range entries {
		if e.Name() != lockName && e.Name() != tempName { // left by a Create that was killed
			return foreign
		}
	}
	return nil
}

// ids formats chain numbers, with ranges such as "0-31".
func ids(list []int64) string {
	text := ""
	for lo := 0; lo < len(list); {
		hi := lo
		for hi+1 < len(list) && list[hi+1] == list[hi]+1 {
			hi++
		}
		if text != "" {
			text += ","
		}
		text += strconv.FormatInt(list[lo], 10)
		if hi > lo {
			text += "-" + strconv.FormatInt(list[hi], 10)
		}
		lo = hi + 1
	}
	return text
}
