package recall

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
	"github.com/gradhop/gradhop/samplers/store"
)

// ParseIDs reads the --chain-ids flag, as "0-31,40". The numbers come out in increasing
// order. Errors: *app.Error.
func ParseIDs(text string) ([]int64, error) {
	var ids []int64
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseInt(lo, 10, 32)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseInt(hi, 10, 32)
		}
		if err != nil || first < 0 || last < first {
			return nil, app.Usagef("--chain-ids %q: want numbers and ranges, as 0-31,40", text)
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		return nil, app.Usagef("--chain-ids %q: a chain is named twice", text)
	}
	return ids, nil
}

// Join gives the folder of a run that was merged from parts what they were started with,
// so that it can be resumed, and returns it; nil where the first part does not know. ids
// are the chains of the whole. Errors: *store.Error, *store.WriteError.
func Join(to string, parts []string, ids []int64) (*Command, error) {
	c, err := Read(parts[0])
	if c == nil || err != nil {
		return nil, err
	}
	list := make([]string, len(ids))
	first := true // chains 0…n-1
	for i, id := range ids {
		list[i] = strconv.FormatInt(id, 10)
		first = first && id == int64(i)
	}
	delete(c.Flags, "chain-ids")
	if first {
		c.Flags["chains"] = []string{strconv.Itoa(len(ids))}
	} else {
		c.Flags["chain-ids"] = []string{strings.Join(list, ",")}
	}
	for _, name := range c.Outputs {
		delete(c.Flags, name)
	}
	for _, name := range c.Files {
		text, err := readFile(parts[0], name)
		if err != nil {
			return nil, err
		}
		if err := WriteFile(to, name, text); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Joined {
		var all []byte
		for _, part := range parts {
			text, err := readFile(part, name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if all = append(all, text...); len(text) > 0 && text[len(text)-1] != '\n' {
				all = append(all, '\n') // a line that a kill cut off
			}
		}
		if len(all) == 0 {
			continue
		}
		if err := WriteFile(to, name, all); err != nil {
			return nil, err
		}
	}
	return c, c.Write(to)
}

// readFile reads a file of a run's folder that its Command names.
func readFile(dir, name string) ([]byte, error) {
	if !filepath.IsLocal(name) {
		return nil, &store.Error{Path: filepath.Join(dir, app.CommandFile), Reason: "damaged: it names files outside the folder"}
	}
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &store.Error{Path: path, Reason: "cannot be read", Err: err}
	}
	return text, nil
}
