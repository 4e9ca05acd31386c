package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// disk is how a Writer changes files. Tests put one in its place that fails.
type disk interface {
	Create(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error // of nothing is no error
	Sync(path string) error
}

// file is an open file of a disk.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// system is the operating system's disk.
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
	// loose are files that the operating system may not have brought to the disk.
	loose []string
}

// maxLoose bounds the list of files to be brought to the disk.
const maxLoose = 4096

// write puts a file of which readers see all or nothing, under its path in the
// folder. It reaches the disk with the next settle.
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

// commit is write for a file that has to be on the disk, after all others.
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
	_ = f.disk.Sync(f.dir) // not every system can; the file is complete either way
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

// settle brings the files written so far to the disk, several at once since each
// waits for it.
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

// mkdir makes a folder and those above it.
func (f *folder) mkdir(path string) error {
	full := filepath.Join(f.dir, path)
	if err := os.MkdirAll(full, 0o755); err != nil {
		return CannotWrite(full, err)
	}
	return nil
}

// cause returns what lies behind an error of the os package, whose own text
// repeats the path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
