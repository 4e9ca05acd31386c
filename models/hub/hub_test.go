package hub

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradhop/gradhop/models/hub/hubtest"
)

var bg = context.Background()

const id = "owner/a-model"

// bytesOf returns n bytes that look random.
func bytesOf(n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(n)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

// aRepo has two small files and a large one.
func aRepo() *hubtest.Repo {
	return &hubtest.Repo{Files: map[string][]byte{
		"config.json": []byte(`{"model_type": "bert"}`), "empty.txt": {}, "onnx/model.onnx": bytesOf(3_000_000),
	}}
}

// environment removes the settings of whoever runs the tests.
func environment(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "HF_") || strings.HasPrefix(name, "HUGGING") || name == "TRANSFORMERS_OFFLINE" {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HF_HOME", t.TempDir())
}

// start serves repo, and returns a client of a fresh cache that does not wait long.
func start(t *testing.T, repo *hubtest.Repo) (*hubtest.Server, *Client) {
	t.Helper()
	environment(t)
	s := hubtest.New(t, map[string]*hubtest.Repo{id: repo})
	return s, client(t, Options{Endpoint: s.URL})
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c
}

// fetch opens a reference and fetches files, all if none is named.
func fetch(ctx context.Context, c *Client, ref string, names ...string) (*Snapshot, error) {
	r, ok := Parse(ref)
	if !ok {
		return nil, errors.New("bad reference " + ref)
	}
	s, err := c.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = s.Files
	}
	return s, s.Fetch(ctx, names...)
}

// same compares the files of a snapshot with those of the repository.
func same(t *testing.T, s *Snapshot, repo *hubtest.Repo, names ...string) {
	t.Helper()
	if names == nil {
		names = slices.Sorted(maps.Keys(repo.Files))
	}
	for _, name := range names {
		if b, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(name))); err != nil || !bytes.Equal(b, repo.Files[name]) {
			t.Errorf("%s: %d bytes, not the %d of the repository (%v)", name, len(b), len(repo.Files[name]), err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, id, revision, out string }{
		{"answerdotai/ModernBERT-base", "answerdotai/ModernBERT-base", "main", "answerdotai/ModernBERT-base"},
		{"a/b@main", "a/b", "main", "a/b"},
		{"a/b.c_d@v1.0", "a/b.c_d", "v1.0", "a/b.c_d@v1.0"},
		{"a/b@refs/pr/12", "a/b", "refs/pr/12", "a/b@refs/pr/12"},
	} {
		r, ok := Parse(c.in)
		if !ok || r.ID != c.id || r.Revision != c.revision || r.String() != c.out {
			t.Errorf("%s: got %+v, %v", c.in, r, ok)
		}
	}
	for _, bad := range []string{"", "bert", "a/b/c", "/a/b", "./a", "../a", "a/..", "a/b--c", "a/b@", "a/b@../x", "a/b@x//y", "a b/c", "a/b@x y", "a/b@/x", "~/x", `a\b`} {
		if r, ok := Parse(bad); ok {
			t.Errorf("%q is taken for %+v", bad, r)
		}
	}
}

// TestLayout compares every path of the cache with what huggingface_hub makes. With
// GRADHOP_TEST_CACHE the cache is made there; a Python test reads it.
func TestLayout(t *testing.T) {
	repo := aRepo()
	repo.Revisions = []string{"refs/pr/1"}
	srv, _ := start(t, repo)
	dir := os.Getenv("GRADHOP_TEST_CACHE")
	if dir == "" {
		dir = t.TempDir()
	}
	c := client(t, Options{Endpoint: srv.URL, Cache: dir})
	for _, ref := range []string{id, id + "@refs/pr/1", id + "@" + repo.Commit()} {
		s, err := fetch(bg, c, ref)
		if err != nil {
			t.Fatal(err)
		}
		if s.Commit != repo.Commit() || !slices.Equal(s.Files, []string{"config.json", "empty.txt", "onnx/model.onnx"}) {
			t.Errorf("got %+v", s)
		}
		same(t, s, repo)
	}
	root, commit := filepath.Join(dir, "models--owner--a-model"), repo.Commit()
	want := []string{"refs/main", "refs/refs/pr/1"}
	for name := range repo.Files {
		want = append(want, "blobs/"+repo.Checksum(name), "snapshots/"+commit+"/"+name)
		link, err := os.Readlink(filepath.Join(root, "snapshots", commit, name))
		if up := strings.Repeat("../", 2+strings.Count(name, "/")); err != nil || link != up+"blobs/"+repo.Checksum(name) {
			t.Errorf("%s is a link to %s (%v)", name, link, err)
		}
	}
	var got []string
	fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			got = append(got, p)
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the cache has\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, ref := range []string{"refs/main", "refs/refs/pr/1"} {
		if b, err := os.ReadFile(filepath.Join(root, ref)); err != nil || string(b) != commit {
			t.Errorf("%s holds %q (%v)", ref, b, err)
		}
	}
}

// TestCached counts requests: what the cache has is not asked for again.
func TestCached(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	if _, err := fetch(bg, c, id); err != nil {
		t.Fatal(err)
	}
	srv.Requests()
	if _, err := fetch(bg, c, id); err != nil {
		t.Fatal(err)
	}
	if got := srv.Requests(); !slices.Equal(got, []string{"GET /api/models/" + id + "/revision/main"}) {
		t.Errorf("requests: %v", got)
	}
	// A new commit that changes one file downloads that file only.
	repo.Files["config.json"] = []byte(`{"model_type": "roberta"}`)
	s, err := fetch(bg, c, id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo)
	if got := srv.Requests(); slices.ContainsFunc(got, func(r string) bool { return strings.HasSuffix(r, " cdn") }) {
		t.Errorf("the unchanged file was downloaded again: %v", got)
	}
}

// TestBroken breaks the connection three times in the middle of a file.
func TestBroken(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	file := repo.Files["onnx/model.onnx"]
	var served []string
	srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !cdn {
			return false
		}
		if served = append(served, r.Header.Get("Range")); len(served) <= 3 {
			hubtest.Cut(w, r, file, 700_000)
		}
		return false
	}
	last, increasing := Progress{}, true
	c.progress = func(p Progress) {
		increasing = increasing && p.Done >= last.Done
		last = p
	}
	s, err := fetch(bg, c, id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo)
	if want := []string{"", "bytes=700000-", "bytes=1400000-", "bytes=2100000-"}; !slices.Equal(served, want) {
		t.Errorf("ranges %q, want %q", served, want)
	}
	if total := int64(len(file) + len(repo.Files["config.json"])); !increasing || last.Done != total || last.Total != total {
		t.Errorf("progress ended with %+v, increasing %v", last, increasing)
	}
}

// TestResumed ends a download three times by its context; each later call goes on where the
// last one was.
func TestResumed(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	file := repo.Files["onnx/model.onnx"]
	srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if cdn {
			hubtest.Part(w, r, file, 700_000)
			<-r.Context().Done()
		}
		return cdn
	}
	for k := range 3 {
		ctx, cancel := context.WithCancel(bg)
		stop := int64(700_000 * (k + 1))
		c.progress = func(p Progress) {
			if p.Done == stop {
				cancel()
			}
		}
		if _, err := fetch(ctx, c, id, "onnx/model.onnx"); !errors.Is(err, context.Canceled) {
			t.Fatalf("call %d: %v", k, err)
		}
		part, err := os.Stat(filepath.Join(c.cache, folder(id), "blobs", repo.Checksum("onnx/model.onnx")+".incomplete"))
		if err != nil || part.Size() != stop {
			t.Fatalf("call %d left %v, %v", k, part, err)
		}
	}
	c.progress, srv.Hook = func(Progress) {}, nil
	srv.Requests()
	s, err := fetch(bg, c, id, "onnx/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo, "onnx/model.onnx")
	if requests := srv.Requests(); requests[len(requests)-1] != "GET /"+id+"/onnx/model.onnx cdn bytes=2100000-" {
		t.Errorf("requests: %q", requests)
	}
}

// TestKilled kills the process that downloads, three times; the next one goes on.
func TestKilled(t *testing.T) {
	if endpoint := os.Getenv("GRADHOP_TEST_ENDPOINT"); endpoint != "" { // this is that process
		_, err := fetch(bg, client(t, Options{Endpoint: endpoint}), id)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	repo := aRepo()
	srv, c := start(t, repo)
	t.Setenv("GRADHOP_TEST_ENDPOINT", srv.URL)
	sent := make(chan bool)
	var ranges []string
	srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !cdn {
			return false
		}
		if ranges = append(ranges, r.Header.Get("Range")); len(ranges) > 3 {
			return false
		}
		hubtest.Part(w, r, repo.Files["onnx/model.onnx"], 700_000)
		sent <- true
		<-r.Context().Done()
		return true
	}
	part := filepath.Join(c.cache, folder(id), "blobs", repo.Checksum("onnx/model.onnx")+".incomplete")
	child := func() *exec.Cmd { return exec.Command(os.Args[0], "-test.run=^TestKilled$") }
	for k := range 3 {
		process := child()
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		<-sent
		for st, err := os.Stat(part); err != nil || st.Size() < int64(700_000*(k+1)); st, err = os.Stat(part) {
			time.Sleep(time.Millisecond)
		}
		process.Process.Kill()
		process.Wait()
	}
	if out, err := child().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := []string{"", "bytes=700000-", "bytes=1400000-", "bytes=2100000-"}; !slices.Equal(ranges, want) {
		t.Errorf("ranges %q, want %q", ranges, want)
	}
	s, err := fetch(bg, client(t, Options{Offline: true}), id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo)
}

// TestPartial completes what an earlier run left: a good start, a bad one, one that is too
// long, and a whole file.
func TestPartial(t *testing.T) {
	repo := aRepo()
	file := repo.Files["onnx/model.onnx"]
	for name, left := range map[string][]byte{
		"good": file[:1000], "bad": bytesOf(1000), "long": append(bytes.Clone(file), 1), "whole": file, "bad whole": make([]byte, len(file)),
	} {
		_, c := start(t, repo)
		part := filepath.Join(c.cache, folder(id), "blobs", repo.Checksum("onnx/model.onnx")+".incomplete")
		os.MkdirAll(filepath.Dir(part), 0o755)
		if err := os.WriteFile(part, left, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := fetch(bg, c, id)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, s, repo)
		if _, err := os.Stat(part); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there", name, part)
		}
	}
}

// TestNoRange downloads from a server that ignores ranges.
func TestNoRange(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	n := 0
	srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !cdn {
			return false
		}
		if n++; n == 1 {
			hubtest.Cut(w, r, repo.Files["onnx/model.onnx"], 1000)
		}
		r.Header.Del("Range")
		return false
	}
	s, err := fetch(bg, c, id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo)
}

// TestBusy has the hub answer 429 and 503 before it serves.
func TestBusy(t *testing.T) {
	for _, after := range []string{"1", "later"} {
		repo := aRepo()
		srv, c := start(t, repo)
		busy := map[string]int{}
		srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
			kind := r.Method + strings.Split(r.URL.Path, "/")[1]
			if busy[kind]++; busy[kind] > 1 || after == "1" && kind != "GETapi" {
				return false
			}
			w.Header().Set("Retry-After", after)
			w.WriteHeader(map[bool]int{false: 429, true: 503}[cdn])
			return true
		}
		began := time.Now()
		s, err := fetch(bg, c, id, "onnx/model.onnx")
		if err != nil {
			t.Fatalf("%s: %v", after, err)
		}
		same(t, s, repo, "onnx/model.onnx")
		if took := time.Since(began); after == "1" && took < time.Second || after != "1" && took > 2*time.Second {
			t.Errorf("Retry-After %s: took %v", after, took)
		}
	}
}

// TestConcurrent has four clients of one cache fetch the same files. Each file is
// downloaded once.
func TestConcurrent(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	done := make(chan error)
	for range 4 {
		other := client(t, Options{Endpoint: srv.URL, Cache: c.cache})
		go func() {
			s, err := fetch(bg, other, id)
			if err == nil {
				same(t, s, repo)
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	n := 0
	for _, r := range srv.Requests() {
		if strings.HasSuffix(r, " cdn") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the large file was downloaded %d times", n)
	}
}

func TestOffline(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	off := client(t, Options{Endpoint: srv.URL, Offline: true})
	var missing *Error
	if _, err := fetch(bg, off, id); !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--offline") {
		t.Errorf("an empty cache: %v", err)
	}
	if _, err := fetch(bg, c, id, "config.json"); err != nil {
		t.Fatal(err)
	}
	srv.Requests()
	for _, ref := range []string{id, id + "@" + repo.Commit()} {
		s, err := fetch(bg, off, ref)
		if err != nil || s.Commit != repo.Commit() || !slices.Equal(s.Files, []string{"config.json"}) {
			t.Errorf("%s: got %+v, %v", ref, s, err)
		}
		if err := s.Fetch(bg, "config.json", "onnx/model.onnx"); !errors.As(err, &missing) || missing.File != "onnx/model.onnx" {
			t.Errorf("%s: a file that is not cached: %v", ref, err)
		}
	}
	if _, err := fetch(bg, off, id+"@v2"); !errors.As(err, &missing) {
		t.Errorf("a revision that is not cached: %v", err)
	}
	if got := srv.Requests(); len(got) != 0 {
		t.Errorf("requests in offline mode: %v", got)
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	if !client(t, Options{Endpoint: srv.URL}).offline {
		t.Error("HF_HUB_OFFLINE=1 is ignored")
	}
	// A hub that is gone is not the same: the cache is used, and the reason is told.
	srv.Close()
	told := ""
	c.unreachable = func(r Ref, err error) { told = r.String() }
	s, err := fetch(bg, c, id, "config.json")
	if err != nil || told != id || s.Commit != repo.Commit() {
		t.Errorf("without the hub: %+v, %v", s, err)
	}
	if _, err := fetch(bg, c, "owner/other"); !errors.As(err, &missing) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without hub and cache: %v", err)
	}
}

func TestToken(t *testing.T) {
	repo := aRepo()
	repo.Token = "hf_secret"
	srv, c := start(t, repo)
	refused := func(what, want string, c *Client) {
		t.Helper()
		var e *Error
		if _, err := fetch(bg, c, id); !errors.As(err, &e) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("no token", "no such repository", c)
	refused("wrong token", "no such repository", client(t, Options{Endpoint: srv.URL, Token: "other"}))
	repo.Gated = true
	refused("gated", "accept the terms at "+srv.URL+"/"+id, c)

	use := map[string]func(){
		"option":   func() {},
		"variable": func() { t.Setenv("HF_TOKEN", " hf_secret\n") },
		"file": func() {
			t.Setenv("HF_TOKEN", "")
			os.WriteFile(filepath.Join(os.Getenv("HF_HOME"), "token"), []byte("hf_secret\n"), 0o600)
		},
	}
	for _, name := range []string{"option", "variable", "file"} {
		use[name]()
		o := Options{Endpoint: srv.URL, Cache: t.TempDir()}
		if name == "option" {
			o.Token = "hf_secret"
		}
		s, err := fetch(bg, client(t, o), id) // the CDN refuses requests with a token
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, s, repo)
	}
	t.Setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
	refused("implicit token forbidden", "accept the terms", client(t, Options{Endpoint: srv.URL, Cache: t.TempDir()}))
}

// TestErrors has the server misbehave in one way at a time. No file may enter the cache.
func TestErrors(t *testing.T) {
	large := "onnx/model.onnx"
	head := func(name, value string) func(http.ResponseWriter, *http.Request, bool) bool {
		return func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if r.Method != http.MethodHead {
				return false
			}
			w.Header().Set("X-Linked-Etag", `"`+strings.Repeat("0", 64)+`"`)
			w.Header().Set("X-Linked-Size", "3000000")
			w.Header().Set(name, value)
			return true
		}
	}
	body := func(f func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request, bool) bool {
		return func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if cdn {
				f(w, r)
			}
			return cdn
		}
	}
	api := func(f func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request, bool) bool {
		return func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if strings.HasPrefix(r.URL.Path, "/api/models") {
				f(w)
				return true
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		ref, want string
		hook      func(http.ResponseWriter, *http.Request, bool) bool
	}{
		"no repository":  {"owner/none", "no such repository", nil},
		"no revision":    {id + "@v9", `no revision "v9"`, nil},
		"wrong bytes":    {id, "checksum", body(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 3_000_000)) })},
		"too long":       {id, "sends 3000001 bytes, not 3000000", body(func(w http.ResponseWriter, r *http.Request) { hubtest.Cut(w, r, make([]byte, 3_000_001), 10) })},
		"too short":      {id, "sends 10 bytes, not 3000000", body(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 10)) })},
		"always cut":     {id, "unexpected EOF", body(func(w http.ResponseWriter, r *http.Request) { hubtest.Cut(w, r, make([]byte, 3_000_000), 0) })},
		"always busy":    {id, "503", body(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })},
		"forbidden":      {id, "403", body(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403) })},
		"circle":         {id, "redirections", body(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, 302) })},
		"other checksum": {id, "checksum", head("X-Linked-Etag", `"`+strings.Repeat("a", 64)+`"`)},
		"no checksum":    {id, "states no checksum", head("X-Linked-Etag", `"abc"`)},
		"evil checksum":  {id, "states no checksum", head("X-Linked-Etag", `"../../x"`)},
		"other commit":   {id, "answers with commit", head("X-Repo-Commit", strings.Repeat("b", 40))},
		"no size":        {id, "no size", head("X-Linked-Size", "many")},
		"huge":           {id, "more than the limit", head("X-Linked-Size", "99999999999999")},
		"long wait":      {id, "asks to wait 1h0m0s", api(func(w http.ResponseWriter) { w.Header().Set("Retry-After", "3600"); w.WriteHeader(429) })},
		"not JSON":       {id, "cannot be read", api(func(w http.ResponseWriter) { w.Write([]byte("<html>")) })},
		"no commit":      {id, "names no commit", api(func(w http.ResponseWriter) { w.Write([]byte(`{"sha": "../../../x"}`)) })},
		"message": {id, "418 I'm a teapot (a line and another)", api(func(w http.ResponseWriter) {
			w.Header().Set("X-Error-Message", "a line \t and another")
			w.WriteHeader(418)
		})},
		"LFS not fetched": {id, "Git LFS pointer", nil},
	} {
		t.Run(name, func(t *testing.T) {
			repo := aRepo()
			if name == "LFS not fetched" {
				repo.Files[large] = []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3000000\n")
			}
			srv, cl := start(t, repo)
			srv.Hook = c.hook
			_, err := fetch(bg, cl, c.ref, large)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\r\n\t") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "signature") {
				t.Errorf("the error shows a signed address: %v", err)
			}
			if blobs, _ := filepath.Glob(filepath.Join(cl.cache, "*", "blobs", "*")); len(blobs) > 0 && !strings.HasSuffix(blobs[0], ".incomplete") {
				t.Errorf("left in the cache: %v", blobs)
			}
			if left, _ := filepath.Glob(filepath.Join(cl.cache, "*", "snapshots", "*", "*")); len(left) > 0 {
				t.Errorf("left in the snapshot: %v", left)
			}
		})
	}
}

// TestNames ignores files whose names would leave the snapshot.
func TestNames(t *testing.T) {
	repo := aRepo()
	for _, bad := range []string{"../x", "/etc/x", "a/../../x", `..\x`, "C:x"} {
		repo.Files[bad] = []byte("x")
	}
	_, c := start(t, repo)
	s, err := fetch(bg, c, id)
	if err != nil || len(s.Files) != 3 {
		t.Errorf("got %v, %v", s.Files, err)
	}
	var e *Error
	if err := s.Fetch(bg, "../x"); !errors.As(err, &e) || !strings.Contains(err.Error(), "leaves") {
		t.Errorf("a bad name: %v", err)
	}
}

// TestDisk uses the device that Linux systems have for a full disk, and a cache that is a
// file.
func TestDisk(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	var e *Error
	if _, err := os.Stat("/dev/full"); err == nil {
		part := filepath.Join(c.cache, folder(id), "blobs", repo.Checksum("onnx/model.onnx")+".incomplete")
		os.MkdirAll(filepath.Dir(part), 0o755)
		if err := os.Symlink("/dev/full", part); err != nil {
			t.Fatal(err)
		}
		if _, err := fetch(bg, c, id); !errors.As(err, &e) || !strings.Contains(err.Error(), "full; free some space") {
			t.Errorf("a full disk: %v", err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	if _, err := fetch(bg, client(t, Options{Endpoint: srv.URL, Cache: file}), id); !errors.As(err, &e) || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("a file in place of the cache: %v", err)
	}
}

// TestCancel ends the context while each kind of request hangs, while a lock is waited for
// and while bytes are compared. The call returns within a second.
func TestCancel(t *testing.T) {
	hang := func(match func(r *http.Request, cdn bool) bool) func(t *testing.T, srv *hubtest.Server, c *Client) chan bool {
		return func(t *testing.T, srv *hubtest.Server, c *Client) chan bool {
			reached := make(chan bool, 1)
			srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
				if !match(r, cdn) {
					return false
				}
				if cdn {
					w.Write(make([]byte, 1000))
					w.(http.Flusher).Flush()
				}
				reached <- true
				<-r.Context().Done()
				return true
			}
			return reached
		}
	}
	for name, prepare := range map[string]func(t *testing.T, srv *hubtest.Server, c *Client) chan bool{
		"list":     hang(func(r *http.Request, cdn bool) bool { return strings.HasPrefix(r.URL.Path, "/api/models") }),
		"describe": hang(func(r *http.Request, cdn bool) bool { return r.Method == http.MethodHead }),
		"get": hang(func(r *http.Request, cdn bool) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "resolve")
		}),
		"body": hang(func(r *http.Request, cdn bool) bool { return cdn }),
		"busy": func(t *testing.T, srv *hubtest.Server, c *Client) chan bool {
			reached := make(chan bool, 9)
			srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
				w.Header().Set("Retry-After", "60")
				w.WriteHeader(503)
				reached <- true
				return true
			}
			return reached
		},
		"lock": func(t *testing.T, srv *hubtest.Server, c *Client) chan bool {
			s, err := c.Open(bg, Ref{ID: id, Revision: "main"})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.describe(bg, "onnx/model.onnx")
			if err != nil {
				t.Fatal(err)
			}
			unlock, err := s.lock(bg, r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
			reached := make(chan bool, 1)
			time.AfterFunc(300*time.Millisecond, func() { reached <- true })
			return reached
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, c := start(t, aRepo())
			reached := prepare(t, srv, c)
			ctx, cancel := context.WithCancel(bg)
			result := make(chan error, 1)
			go func() {
				_, err := fetch(ctx, c, id, "onnx/model.onnx")
				result <- err
			}()
			<-reached
			cancel()
			began := time.Now()
			if err := <-result; !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	path := filepath.Join(t.TempDir(), "file")
	os.WriteFile(path, bytesOf(10), 0o644)
	if err := verify(ctx, path, remote{checksum: strings.Repeat("0", 64)}); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v", err)
	}
}

// TestStall begins a transfer again that brings no bytes.
func TestStall(t *testing.T) {
	repo := aRepo()
	srv, c := start(t, repo)
	c.stall = 200 * time.Millisecond
	n := 0
	srv.Hook = func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !cdn {
			return false
		}
		if n++; n == 1 {
			w.Header().Set("Content-Length", "3000000")
			w.Write(repo.Files["onnx/model.onnx"][:5000])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		return false
	}
	s, err := fetch(bg, c, id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, repo)
}

func TestSettings(t *testing.T) {
	home, _ := os.UserHomeDir()
	for _, c := range []struct{ hub, home, xdg, cache string }{
		{"/c", "/h", "/x", "/c"},
		{"~/c", "", "", home + "/c"},
		{"", "/h", "/x", "/h/hub"},
		{"", "", "/x", "/x/huggingface/hub"},
		{"", "", "", home + "/.cache/huggingface/hub"},
	} {
		environment(t)
		t.Setenv("HF_HUB_CACHE", c.hub)
		t.Setenv("HF_HOME", c.home)
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		if got := client(t, Options{}); got.cache != filepath.FromSlash(c.cache) || got.endpoint != "https://huggingface.co" {
			t.Errorf("%+v: cache %s, endpoint %s", c, got.cache, got.endpoint)
		}
	}
	t.Setenv("HF_ENDPOINT", "hub.example/")
	var e *Error
	if _, err := New(Options{}); !errors.As(err, &e) || !strings.Contains(err.Error(), "HF_ENDPOINT") {
		t.Errorf("an endpoint without a scheme: %v", err)
	}
	t.Setenv("HF_ENDPOINT", "https://hub.example/mirror/")
	if got := client(t, Options{}).endpoint; got != "https://hub.example/mirror" {
		t.Errorf("endpoint %s", got)
	}
}
