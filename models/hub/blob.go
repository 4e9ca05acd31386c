package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// blobPath is where the bytes of a file are in the cache.
func (s *Snapshot) blobPath(r remote) string { return filepath.Join(s.repo(), "blobs", r.checksum) }

// errChecksum says that bytes differ from those that the hub announced.
var errChecksum = errors.New("the bytes do not have the hub's checksum")

// blob brings the bytes of a file into the cache, under its lock. report takes the bytes
// done.
func (s *Snapshot) blob(ctx context.Context, r remote, report func(int64)) error {
	at := s.blobPath(r)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if st, err := os.Stat(at); err == nil && st.Size() == r.size {
		return nil // also where another process has just downloaded it
	}
	part := at + ".incomplete" // as huggingface_hub calls it
	for {
		resumed := partSize(part, r) > 0
		err := s.client.retry(ctx, func() (bool, error) { return s.transfer(ctx, r, part, report) })
		if err == nil {
			err = verify(ctx, part, r)
		}
		switch {
		case err == nil && isPointer(part, r):
			os.Remove(part)
			return &Error{Ref: s.Ref, File: r.name, Reason: "the server sends a Git LFS pointer instead of the file"}
		case err == nil:
			return os.Rename(part, at)
		case !errors.Is(err, errChecksum):
			return err
		}
		os.Remove(part)
		if !resumed {
			return &Error{Ref: s.Ref, File: r.name, Reason: err.Error() + " " + r.checksum + "; they were deleted"}
		}
		// What an earlier run had left may be at fault.
	}
}

// lock takes the lock of a blob, which huggingface_hub takes too.
func (s *Snapshot) lock(ctx context.Context, r remote) (unlock func(), err error) {
	dir := filepath.Join(s.client.cache, ".locks", folder(s.Ref.ID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for {
		l := flock.New(filepath.Join(dir, r.checksum+".lock"), flock.SetPermissions(0o644))
		if ok, err := l.TryLockContext(ctx, 100*time.Millisecond); !ok {
			l.Close()
			return nil, err
		}
		// The process that held it may have deleted the file: then others lock a new one.
		mine, err := l.Stat()
		if there, e := os.Stat(l.Path()); err == nil && e == nil && os.SameFile(mine, there) {
			return func() { l.Close() }, nil
		}
		l.Close()
	}
}

// partSize returns the bytes of an incomplete download; one that is too long is deleted.
func partSize(part string, r remote) int64 {
	st, err := os.Stat(part)
	if err != nil {
		return 0
	}
	if st.Size() > r.size {
		os.Remove(part)
		return 0
	}
	return st.Size()
}

// transfer downloads what part lacks, in one request. progress says that bytes came.
func (s *Snapshot) transfer(ctx context.Context, r remote, part string, report func(int64)) (progress bool, err error) {
	offset := partSize(part, r)
	report(offset)
	if offset == r.size && r.size > 0 {
		return false, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(s.client.stall, func() { cancel(errStalled) })
	defer timer.Stop()
	header := http.Header{}
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := s.client.send(ctx, http.MethodGet, s.address(r.name), header)
	if err != nil {
		return false, stalled(ctx, err)
	}
	defer resp.Body.Close()
	if offset, err = s.accept(resp, r, offset); err != nil {
		return false, err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if offset == 0 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(part, flags, 0o644)
	if err != nil {
		return false, err
	}
	n, err := receive(f, resp.Body, r.size-offset, func(n int64) {
		timer.Reset(s.client.stall)
		report(offset + n)
	})
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return n > 0, stalled(ctx, err)
}

var errStalled = errors.New("the transfer stalled")

// stalled tells a transfer that was given up from one that the caller ended.
func stalled(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return &temporary{err: errStalled}
	}
	return err
}

// accept checks the head of an answer to a request for the bytes from offset on, and returns
// where its bytes belong: at offset, or at 0 if the server sends the whole file.
func (s *Snapshot) accept(resp *http.Response, r remote, offset int64) (int64, error) {
	switch resp.StatusCode {
	case http.StatusOK:
		offset = 0
	case http.StatusPartialContent:
		want := fmt.Sprintf("bytes %d-%d/%d", offset, r.size-1, r.size)
		if got := resp.Header.Get("Content-Range"); got != want {
			return 0, &Error{Ref: s.Ref, File: r.name, Reason: fmt.Sprintf("the server sends %.80q, not %q", got, want)}
		}
	default:
		return 0, s.client.refused(resp, s.Ref, r.name)
	}
	if n := resp.ContentLength; n >= 0 && n != r.size-offset {
		return 0, &Error{Ref: s.Ref, File: r.name, Reason: fmt.Sprintf("the server sends %d bytes, not %d", n, r.size-offset)}
	}
	return offset, nil
}

// syncEvery is how many bytes are written before they are forced to the disk, so that the
// last such call is short.
const syncEvery = 32 << 20

// receive copies want bytes and reports the bytes copied so far. Fewer bytes, or a failure
// to read them, are temporary.
func receive(f *os.File, body io.Reader, want int64, report func(int64)) (n int64, err error) {
	buffer := make([]byte, 128<<10)
	unsynced := 0
	for n < want {
		k, rerr := body.Read(buffer[:min(int64(len(buffer)), want-n)])
		if k > 0 {
			if _, err := f.Write(buffer[:k]); err != nil {
				return n, err
			}
			n += int64(k)
			unsynced += k
			report(n)
		}
		if rerr == io.EOF && n < want {
			rerr = io.ErrUnexpectedEOF
		}
		if rerr != nil && n < want {
			return n, &temporary{err: rerr}
		}
		if unsynced >= syncEvery || n == want {
			if err := f.Sync(); err != nil {
				return n, err
			}
			unsynced = 0
		}
	}
	return n, nil
}

// verify compares the bytes of a file with its checksum: sha256, or the sha1 of git, which
// begins with the kind and the size.
func verify(ctx context.Context, path string, r remote) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var h hash.Hash
	if len(r.checksum) == 2*sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", r.size)
	}
	for n := int64(1 << 20); n == 1<<20; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n, err = io.CopyN(h, f, 1<<20); err != nil && err != io.EOF {
			return err
		}
	}
	if hex.EncodeToString(h.Sum(nil)) != r.checksum {
		return errChecksum
	}
	return nil
}

// isPointer reports whether a file is what git stores in place of a file in LFS.
func isPointer(path string, r remote) bool {
	if r.size > 1024 {
		return false
	}
	b, err := os.ReadFile(path)
	return err == nil && bytes.HasPrefix(b, []byte("version https://git-lfs.github.com/spec/"))
}
