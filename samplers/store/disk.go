package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// disk is how a Writer changes files. Tests substitute one that fails.
type disk interface {
	Create(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error // a missing file is not an error
	Sync(path string) error
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

type system struct{}

func (system) Create(path string) (file, error) { return os.Create(path) }
func (system) Rename(from, to string) error     { return os.Rename(from, to) }

func (system) Remove(path string) error {
	if err := os.RemoveAll(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (system) Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// folder writes whole files into a run's folder, one at a time.
type folder struct {
	dir  string
	disk disk
	// loose lists files that may not be synced to disk yet.
	loose []string
}

// maxLoose limits the list of files to sync, so that syncing does not delay the end of an interrupted run.
const maxLoose = 128

// write writes a file atomically. The next settle syncs it.
func (f *folder) write(path string, data []byte) error {
	full, temp := filepath.Join(f.dir, path), filepath.Join(f.dir, tempName)
	if err := f.put(temp, data, false); err != nil {
		return CannotWrite(full, err)
	}
	if err := f.disk.Rename(temp, full); err != nil {
		return CannotWrite(full, err)
	}
	f.loose = append(f.loose, full)
	if len(f.loose) >= maxLoose {
		return f.settle()
	}
	return nil
}

// commit writes a file atomically and syncs it, after all other files.
func (f *folder) commit(path string, data []byte) error {
	if err := f.settle(); err != nil {
		return err
	}
	full, temp := filepath.Join(f.dir, path), filepath.Join(f.dir, tempName)
	if err := f.put(temp, data, true); err != nil {
		return CannotWrite(full, err)
	}
	if err := f.disk.Rename(temp, full); err != nil {
		return CannotWrite(full, err)
	}
	_ = f.disk.Sync(f.dir) // not supported by every system; the file is complete either way
	return nil
}

func (f *folder) put(path string, data []byte, sync bool) error {
	w, err := f.disk.Create(path)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil && sync {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// settle syncs the files written so far, several in parallel.
func (f *folder) settle() error {
	const workers = 8
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for k := range min(workers, len(f.loose)) {
		wg.Go(func() {
			for i := k; i < len(f.loose) && errs[k] == nil; i += workers {
				if err := f.disk.Sync(f.loose[i]); err != nil {
					errs[k] = CannotWrite(f.loose[i], err)
				}
			}
		})
	}
	wg.Wait()
	f.loose = f.loose[:0]
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) remove(path string) error {
	full := filepath.Join(f.dir, path)
	if err := f.disk.Remove(full); err != nil {
		return CannotWrite(full, err)
	}
	return nil
}

// mkdir creates a folder and its parents.
func (f *folder) mkdir(path string) error {
	full := filepath.Join(f.dir, path)
	if err := os.MkdirAll(full, 0o755); err != nil {
		return CannotWrite(full, err)
	}
	return nil
}
