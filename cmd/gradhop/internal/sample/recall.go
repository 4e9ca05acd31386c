package sample

import (
	"path/filepath"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/recall"
)

// paths are flags whose value is a path, or may be.
var paths = recall.Paths{"allow": recall.Path, "init": recall.Path, "feed": recall.NamedPath}

// remember writes what the run was started with into its folder.
func (o *Options) remember(dir string, flags flagSet, picture string) error {
	c := recall.Command{Name: commandName, Picture: picture}
	var err error
	if c.Model, err = filepath.Abs(o.Model); err != nil {
		return err
	}
	if err := c.Remember(flags, o.Seed); err != nil {
		return err
	}
	return c.Write(dir)
}

// recall sets what is not given to what the run in o.Resume was started with.
func (o *Options) recall(flags flagSet) error {
	c, err := recall.Resume(o.Resume, commandName, flags, paths)
	switch {
	case err != nil || o.Model != "":
		return err
	case c == nil:
		return recall.Forgotten(o.Resume, "the model")
	}
	o.Model = c.Model
	return nil
}

// PictureOf returns the size that states of a run have as pictures, as --picture takes
// it, or "".
func PictureOf(dir string) (string, error) {
	c, err := recall.Read(dir)
	if c == nil || err != nil {
		return "", err
	}
	return c.Picture, nil
}
