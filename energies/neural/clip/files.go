package clip

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/gradhop/gradhop/onnx"
)

// Files says where the towers of a CLIP model are. models.OpenTowers finds them in a
// folder.
type Files struct {
	// FS holds the files.
	FS fs.FS
	// Dir is the folder of FS on disk, or empty. Large files are then mapped, not read.
	Dir string
	// Text and Vision are paths in FS, the same where one file holds both towers. Vision
	// is empty where there is no vision tower.
	Text, Vision string
}

// load reads one file.
func (f Files) load(name string) (*onnx.Model, error) {
	var m *onnx.Model
	var err error
	if f.Dir != "" {
		m, err = onnx.Load(filepath.Join(f.Dir, filepath.FromSlash(name)))
	} else {
		m, err = onnx.LoadFS(f.FS, name)
	}
	if err != nil {
		return nil, err
	}
	// Weights in other files that are missing or too short are found now, before a session
	// is opened on them. Large files are mapped, not read.
	for _, t := range m.Graph.Initializers {
		if t.External == nil {
			continue
		}
		if _, err := m.Data(t); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Open reads the files of a CLIP model and makes it ready. Where o does not bound the
// length of texts, config.json does, if there is one. No session of the runtime is opened
// yet.
//
// Errors: those of package onnx and of [New].
func Open(f Files, o Options) (*Model, error) {
	if f.Text == "" {
		return nil, missingTower(textTower, f.Vision)
	}
	if o.MaxLength == 0 {
		n, err := f.positions()
		if err != nil {
			return nil, err
		}
		o.MaxLength = n
	}
	text, err := f.load(f.Text)
	if err != nil {
		return nil, err
	}
	vision := text
	switch f.Vision {
	case "":
		vision = nil
	case f.Text:
	default:
		if vision, err = f.load(f.Vision); err != nil {
			return nil, err
		}
	}
	return New(text, vision, o)
}

// positions is the longest text according to config.json, 0 where that does not say.
func (f Files) positions() (int, error) {
	dir := path.Dir(f.Text)
	if path.Base(dir) == "onnx" {
		dir = path.Dir(dir)
	}
	file := path.Join(dir, "config.json")
	data, err := fs.ReadFile(f.FS, file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("clip: %w", err)
	}
	type tower struct {
		Positions int `json:"max_position_embeddings"`
	}
	var config struct {
		tower       // of a text tower alone
		Text  tower `json:"text_config"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return 0, fmt.Errorf("clip: %s: %w", file, err)
	}
	return max(0, config.Text.Positions, config.Positions), nil
}
