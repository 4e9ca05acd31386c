package sample

import (
	"fmt"
	"strings"

	"github.com/gradhop/gradhop/energies/known"
	"github.com/gradhop/gradhop/tasks/internal/run"
)

const command = "sample"

// recorded returns the options to record, including the image size.
func (p *plan) recorded() Options {
	o := *p.o
	if pic := p.picture; pic != nil {
		o.Picture = fmt.Sprintf("%dx%dx%d", pic.Height, pic.Width, pic.Channels)
	}
	return o
}

// Load reads the options of the run in a folder, for continuing it: Resume is set. Paths of files are
// converted to the current folder. Errors are *store.Error; one matches fs.ErrNotExist if the run has
// no options because a library created it.
func Load(dir string) (Options, error) {
	o := Defaults()
	moved, err := run.Recall(dir, command, &o)
	if err != nil {
		return o, err
	}
	o.Resume = dir
	o.Model, o.Allow, o.Init, o.Data = moved(o.Model), moved(o.Allow), moved(o.Init), moved(o.Data)
	if strings.HasSuffix(o.Draft, ".onnx") {
		o.Draft = moved(o.Draft)
	}
	if path := known.Path(o.Energy); path != "" {
		o.Energy = strings.Replace(o.Energy, path, moved(path), 1)
	}
	o.Start = moved(o.Start)
	o.moveConstraints(moved)
	for k, text := range o.Terms {
		if t := parseTerm(text); t.known {
			if path := known.Path(t.source); path != "" {
				o.Terms[k] = strings.Replace(text, path, moved(path), 1)
			}
		} else {
			o.Terms[k] = moved(text)
		}
	}
	for k, feed := range o.Feed {
		name, path, _ := strings.Cut(feed, "=")
		o.Feed[k] = name + "=" + moved(path)
	}
	return o, nil
}
