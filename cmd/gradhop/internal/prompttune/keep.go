package prompttune

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/store"
)

// Files that the command adds to the folder of a run.
const (
	resultsFile = "prompts.json" // the document
	tokensFile  = "tokens.json"  // what the numbers in the draws stand for
)

// keeper records draws in the folder of --out; without one it does nothing.
type keeper struct {
	o *Options
	w *store.Writer
}

// newKeeper refuses a folder that holds something, before long work.
func (o *Options) newKeeper() (*keeper, error) {
	k := &keeper{o: o}
	if o.Out == "" {
		return k, nil
	}
	return k, unwritable(o.Out, store.Vacant(o.Out))
}

// unwritable says that a folder cannot be made, which is the caller's matter unless the
// disk is full.
func unwritable(dir string, err error) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) || errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return &app.OutputError{Path: dir, Before: true, Err: failed}
}

// begin makes the folder, after the first evaluation: a run that cannot begin leaves
// nothing behind.
func (k *keeper) begin(r *Runner, search *Finder, d *Document) error {
	if k.o.Out == "" {
		return nil
	}
	h := store.HeaderOf(search.Config)
	h.Gradhop, h.Versions, h.Sampler = d.Gradhop, d.Versions, d.Settings.Sampler
	var names []string
	sum := sha256.New()
	for _, m := range d.Models {
		names = append(names, m.Name)
		fmt.Fprintln(sum, m.TextSHA256, m.Weight)
	}
	h.Model, h.ModelSHA256 = strings.Join(names, "+"), hex.EncodeToString(sum.Sum(nil))
	if len(d.Models) == 1 {
		h.ModelSHA256 = d.Models[0].TextSHA256
	}
	s := d.Settings
	h.Settings = map[string]string{
		"template": s.Template, "tokens": tokenDigest(r.Problem.Tokens), "targets": r.digest(), "beta": s.Beta,
		"image-batch": strconv.Itoa(s.ImageBatch), "provider": s.Provider, "init": "random",
	}
	for name, value := range s.SamplerOptions {
		h.Settings[name] = value
	}
	var err error
	if k.w, err = store.Create(k.o.Out, h, store.Options{Every: k.o.Every}); err != nil {
		return unwritable(k.o.Out, err)
	}
	type token struct {
		ID    int32  `json:"id"`
		Piece string `json:"piece"`
	}
	list := make([]token, len(r.Problem.Tokens))
	for code, id := range r.Problem.Tokens {
		list[code] = token{id, r.Problem.Piece(int32(code))}
	}
	if err := k.write(tokensFile, list, ""); err != nil {
		return errors.Join(err, k.abandon())
	}
	return nil
}

func tokenDigest(ids []int32) string {
	h := sha256.New()
	fmt.Fprintln(h, ids)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Observe implements samplers.Observer.
func (k *keeper) Observe(s *samplers.State, info *samplers.Info) error {
	if k.w == nil {
		return nil
	}
	return k.w.Observe(s, info)
}

// end closes the folder and writes results and diagnostics into it.
func (k *keeper) end(d *Document) error {
	if k.w == nil {
		return nil
	}
	if err := k.w.Close(); err != nil {
		return err
	}
	if err := k.write(resultsFile, d, "  "); err != nil {
		return err
	}
	r, err := store.Open(k.o.Out)
	if err != nil {
		return err
	}
	if r.Draws(store.Sampling) == 0 {
		return nil
	}
	s, err := store.Summarize(r, store.TableOptions{})
	if err != nil {
		return err
	}
	return s.Write(k.o.Out)
}

// abandon closes the folder of a run that failed. What was drawn stays.
func (k *keeper) abandon() error {
	if k.w == nil {
		return nil
	}
	return k.w.Close()
}

// write writes a file into the folder, whole or not at all.
func (k *keeper) write(name string, v any, indent string) error {
	text, err := encode(v, indent)
	if err != nil {
		return err
	}
	path := filepath.Join(k.o.Out, name)
	if err := os.WriteFile(path+".tmp", text, 0o644); err != nil {
		return &store.WriteError{Path: path, Err: err}
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return &store.WriteError{Path: path, Err: err}
	}
	return nil
}
