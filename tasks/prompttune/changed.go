package prompttune

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gradhop/gradhop/samplers/store"
)

// targetList is targets.json: what the targets of a run are made of.
type targetList struct {
	Sets  []pictureList `json:"sets"`
	Texts []Text        `json:"texts"`
}

type pictureList struct {
	Path     string    `json:"path"`
	Weight   float64   `json:"weight"`
	Pictures []picture `json:"pictures"` // those that are used
}

type picture struct {
	File   string `json:"file"` // below Path
	SHA256 string `json:"sha256"`
}

func (r *Task) listTargets() targetList {
	list := targetList{Sets: []pictureList{}, Texts: r.texts}
	for k, s := range r.sets {
		p := pictureList{Path: s.Path, Weight: s.Weight}
		for i, file := range r.files[k] {
			name, err := filepath.Rel(s.Path, file)
			if err != nil || name == "." { // a set of one file
				name = filepath.Base(file)
			}
			p.Pictures = append(p.Pictures, picture{filepath.ToSlash(name), r.sums[k][i].String()})
		}
		list.Sets = append(list.Sets, p)
	}
	return list
}

// shown is the path of a picture; a set may be one picture.
func (l *pictureList) shown(p picture) string {
	if filepath.Base(l.Path) == p.File {
		return l.Path
	}
	return filepath.Join(l.Path, p.File)
}

// explain says why the run that was asked for is not the one in the folder.
func (o *Config) explain(err error, r *Task) error {
	var m *store.MismatchError
	if !errors.As(err, &m) {
		return err
	}
	why := ""
	switch m.Field {
	case "model_sha256":
		why = "the model is another one than when the run was begun"
	case "settings.vision":
		why = "the model's vision tower is another one than when the run was begun"
	case "settings.model-files":
		why = "the model's tokenizer, or how it wants its pictures, has changed since the run was begun"
	case "space.sites":
		why = fmt.Sprintf("the run's prompts have %s blanks, not %s", m.There, m.Here)
	case "space.values", "settings.tokens":
		why = "other words may be proposed than when the run was begun (tokens, allowed and blocked words, and their files)"
	case "settings.targets":
		why = r.changed(o.Resume) + " since the run was begun"
	default:
		return err
	}
	in := *m
	in.Reason = why
	return &in
}

// changed says what has changed of the targets that are listed in a folder.
func (r *Task) changed(dir string) string {
	const some = "pictures or texts have changed"
	var old targetList
	text, err := os.ReadFile(filepath.Join(dir, targetsFile))
	if err != nil || json.Unmarshal(text, &old) != nil {
		return some
	}
	now := r.listTargets()
	if len(old.Sets) != len(now.Sets) {
		return fmt.Sprintf("%d sets of images have become %d", len(old.Sets), len(now.Sets))
	}
	for k, a := range old.Sets {
		b := now.Sets[k]
		if a.Weight != b.Weight {
			return fmt.Sprintf("images %s: weight %g has become %g", b.Path, a.Weight, b.Weight)
		}
		had := map[string]string{}
		for _, p := range a.Pictures {
			had[p.File] = p.SHA256
		}
		for _, p := range b.Pictures {
			was, there := had[p.File]
			delete(had, p.File)
			switch {
			case !there:
				return b.shown(p) + " has come"
			case was != p.SHA256:
				return b.shown(p) + " has changed"
			}
		}
		for _, p := range a.Pictures {
			if _, gone := had[p.File]; gone {
				return b.shown(p) + " has gone"
			}
		}
	}
	if fmt.Sprint(old.Texts) != fmt.Sprint(now.Texts) {
		return "a target text has changed"
	}
	return some
}
