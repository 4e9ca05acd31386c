package onnx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// referenced is the size in bytes from which EncodeReferencing leaves a tensor in
// its file.
const referenced = 1024

// EncodeReferencing encodes m without its weights: an initialiser that was read
// from the model's own .onnx file becomes a reference to its bytes inside that
// file. A runtime loads the small result from memory when it is told that dir is
// the folder of external data. Tensors that were made in memory, small ones, and
// those whose bytes the file no longer has, are embedded. Tensors that the model
// keeps in other files are found in dir as well.
//
// The result is good for as long as the file does not change. Dir is absolute, or
// empty where nothing is referenced and the model has no folder.
func EncodeReferencing(m *Model) (proto []byte, dir string, err error) {
	r := &referrer{}
	if m.Dir != "" && m.FS == nil {
		if dir, err = filepath.Abs(m.Dir); err != nil {
			return nil, "", fmt.Errorf("onnx: %w", err)
		}
	}
	if m.Path != "" && m.FS == nil {
		dir = r.open(m, dir)
		defer r.close()
	}
	out, err := MapTensors(m, func(t *Tensor, initializer bool) (*Tensor, error) {
		if m.FS != nil && t.External != nil {
			return m.Resolve(t)
		}
		if t.External != nil { // a runtime would follow a path out of the folder, or crash
			if _, err := m.Data(t); err != nil || !r.linked {
				return t, err
			}
			out, e := *t, *t.External
			_, e.Location = m.place(e.Location)
			out.External = &e
			return &out, nil
		}
		if !initializer || !r.has(t) {
			return t, nil
		}
		ref := *t
		ref.Raw, ref.Offset = nil, -1
		ref.External = &External{Location: r.name, Offset: t.Offset, Length: int64(len(t.Raw))}
		return &ref, nil
	})
	if err != nil {
		return nil, "", err
	}
	proto, err = Encode(out)
	return proto, dir, err
}

// referrer is the model's own file.
type referrer struct {
	f    *os.File
	name string // in the folder of external data
	size int64
	// linked says that the file and all external data are in the folder that links lead to.
	linked bool
}

// open opens the file of m and returns the folder that it is in. Runtimes refuse
// links that leave the folder, so links are followed first, unless they lead to
// several folders.
func (r *referrer) open(m *Model, dir string) string {
	path := filepath.Join(dir, filepath.Base(m.Path))
	if real, err := filepath.EvalSymlinks(path); err == nil && allIn(m, filepath.Dir(real)) {
		path, r.linked = real, true
	}
	f, err := os.Open(path)
	if err != nil {
		return dir
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return dir
	}
	r.f, r.name, r.size = f, filepath.Base(path), info.Size()
	return filepath.Dir(path)
}

func (r *referrer) close() {
	if r.f != nil {
		r.f.Close()
	}
}

// has reports whether the file holds the data of t where it says so. The first and
// the last bytes are compared, which finds a file that was written anew.
func (r *referrer) has(t *Tensor) bool {
	n := int64(len(t.Raw))
	if r.f == nil || t.External != nil || t.Offset < 0 || n < referenced || t.Offset > r.size-n {
		return false
	}
	var b [64]byte
	for _, at := range []int64{0, n - int64(len(b))} {
		if _, err := r.f.ReadAt(b[:], t.Offset+at); err != nil || !bytes.Equal(b[:], t.Raw[at:at+int64(len(b))]) {
			return false
		}
	}
	return true
}

// allIn reports whether all external data of m is in a folder.
func allIn(m *Model, dir string) bool {
	all := true
	_, _ = MapTensors(m, func(t *Tensor, _ bool) (*Tensor, error) {
		if t.External != nil {
			at, _ := m.place(t.External.Location)
			all = all && at == dir
		}
		return t, nil
	})
	return all
}
