package library

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gradhop/gradhop/internal/atomicfile"
)

// checkSum compares the archive with its pin.
func checkSum(ctx context.Context, archive string, s source) error {
	r, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, withContext(ctx, r)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.archiveSHA {
		return wrongSum(s, s.archive, s.archiveSHA, got)
	}
	return nil
}

// unpack writes the library of the archive to dst and compares it with its
// pin. Only that one member is read, whatever else the archive holds.
func unpack(ctx context.Context, archive string, s source, dst string) error {
	if strings.HasSuffix(archive, ".tgz") {
		return unpackTar(ctx, archive, s, dst)
	}
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", s.archive, err)
	}
	defer z.Close()
	for _, f := range z.File {
		if s.beside && wanted(s, f.Name) {
			err := unpackFile(f, func(r io.Reader) error {
				return writeFile(filepath.Join(filepath.Dir(dst), path.Base(f.Name)), func(w io.Writer) error {
					_, err := io.Copy(w, withContext(ctx, r))
					return err
				})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", s.archive, err)
			}
		}
	}
	// The library comes last: where it is, all files beside it are.
	for _, f := range z.File {
		if f.Name == s.member {
			return unpackFile(f, func(r io.Reader) error { return writeLibrary(ctx, r, s, dst) })
		}
	}
	return fmt.Errorf("%s has no %s", s.archive, s.member)
}

// wanted tells whether a file beside the library of a plug-in is needed: a library of the
// processor or the GPU, and not the library's own copies under other names.
func wanted(s source, name string) bool {
	base := path.Base(name)
	return path.Dir(name) == path.Dir(s.member) && !strings.HasPrefix(base, path.Base(s.member)) &&
		!strings.HasSuffix(base, ".py") && !strings.Contains(base, "_npu_")
}

// unpackFile calls use with the contents of a file of an archive.
func unpackFile(f *zip.File, use func(io.Reader) error) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return use(r)
}

func unpackTar(ctx context.Context, archive string, s source, dst string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return fmt.Errorf("%s: %w", s.archive, err)
	}
	for t := tar.NewReader(withContext(ctx, z)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no %s", s.archive, s.member)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.archive, err)
		}
		if h.Name == s.member && h.Typeflag == tar.TypeReg {
			return writeLibrary(ctx, t, s, dst)
		}
	}
}

// writeLibrary makes dst the library that r reads, if that is the pinned one.
func writeLibrary(ctx context.Context, r io.Reader, s source, dst string) error {
	return writeFile(dst, func(w io.Writer) error { return copyLibrary(ctx, w, r, s) })
}

// writeFile makes dst what write writes; on an error there is no dst.
func writeFile(dst string, write func(io.Writer) error) error {
	w, err := atomicfile.Create(dst, 0o755)
	if err != nil {
		return err
	}
	defer w.Discard()
	if err := write(w); err != nil {
		return err
	}
	return w.Commit()
}

// copyLibrary copies the library from r to w and compares it with its pin.
func copyLibrary(ctx context.Context, w io.Writer, r io.Reader, s source) error {
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), withContext(ctx, r)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.librarySHA {
		return wrongSum(s, s.member, s.librarySHA, got)
	}
	return nil
}

// withContext is r until ctx is done.
func withContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
