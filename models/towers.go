package models

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultCLIP is the name of the CLIP that is used where none is asked for.
const DefaultCLIP = "clip-pictures"

// Towers is a CLIP that is there to be read: a tower for texts, and one for pictures
// where the folder has one.
type Towers struct {
	// Name is the built-in name, or the last element of the folder's path.
	Name string
	// FS holds the model's files.
	FS fs.FS
	// Text and Vision are the towers' files in FS: the same for a combined model, ""
	// where there is no such tower.
	Text, Vision string
	// Dir is the folder on disk, or "" for a built-in model.
	Dir string
	// TextSHA256 and VisionSHA256 are those of the files, in hex, "" where there is none.
	// Weights that a file keeps in other files take no part in them.
	TextSHA256, VisionSHA256 string
}

// Places of the towers: in the folder or in onnx/, in single precision or, failing that,
// in half, as exporters name it.
var (
	towerFolders  = []string{"", "onnx/"}
	towerSuffixes = []string{"", "_fp16"}
)

const (
	textTower   = "text_model"
	visionTower = "vision_model"
	combined    = "model"
)

// KindError reports a model of another kind than the one that is wanted.
type KindError struct {
	Name       string
	Have, Want string   // as "masked language model"
	Known      []string // the built-in models of the kind that is wanted
}

func (e *KindError) Error() string {
	return fmt.Sprintf("models: %s is a %s; a %s is wanted (built in: %s)", e.Name, e.Have, e.Want, strings.Join(e.Known, ", "))
}

// ExitCode returns 2: bad usage or input.
func (*KindError) ExitCode() int { return 2 }

// The kinds of models, as they are called in messages.
const (
	kindMLM  = "masked language model"
	kindCLIP = "CLIP"
)

// MLMs returns the names of the built-in masked language models, sorted.
func MLMs() []string { return ofKind(false) }

// CLIPs returns the names of the built-in CLIPs, sorted.
func CLIPs() []string { return ofKind(true) }

// ofKind returns the built-in models that have a text tower of their own, or have none.
func ofKind(towers bool) []string {
	return slices.DeleteFunc(BuiltIn(), func(name string) bool {
		has := slices.ContainsFunc(entries()[name].Files, func(f File) bool { return f.Name == textTower+".onnx" })
		return has != towers
	})
}

// OpenTowers returns a built-in CLIP, by name, or the CLIP in a folder; "" means
// DefaultCLIP. In a folder it looks for text_model.onnx and vision_model.onnx, then for
// one file with both towers, model.onnx, then for the text tower alone; each of them
// there or in onnx/, and with _fp16 at the end of its name where there is no other.
//
// Errors: *UnknownError, *KindError, *MissingFileError for a folder without a text tower,
// *ChecksumError for a built-in model that is not the one in the manifest, or those of
// reading the files.
func OpenTowers(nameOrDir string) (Towers, error) {
	if nameOrDir == "" {
		nameOrDir = DefaultCLIP
	}
	t := Towers{Name: nameOrDir}
	if e, ok := entries()[nameOrDir]; ok {
		var err error
		if t.FS, err = e.files(); err != nil {
			return Towers{}, err
		}
	} else {
		if st, err := os.Stat(nameOrDir); err != nil || !st.IsDir() {
			return Towers{}, &UnknownError{Name: nameOrDir, Known: BuiltIn()}
		}
		t.Name, t.FS, t.Dir = folderName(nameOrDir), os.DirFS(nameOrDir), nameOrDir
	}
	t.find()
	if t.Dir == "" && (t.Text == "" || t.Text == t.Vision) {
		return Towers{}, &KindError{Name: t.Name, Have: kindMLM, Want: kindCLIP, Known: CLIPs()}
	}
	if t.Text == "" {
		return Towers{}, &MissingFileError{Dir: nameOrDir, File: textTower + ".onnx"}
	}
	return t, t.hash()
}

// find looks for the towers.
func (t *Towers) find() {
	text, vision := towerFile(t.FS, textTower), towerFile(t.FS, visionTower)
	both := towerFile(t.FS, combined)
	switch {
	case text != "" && vision != "", both == "":
		t.Text, t.Vision = text, vision
	default:
		t.Text, t.Vision = both, both
	}
}

// towerFile returns the file of a tower in fsys, or "".
func towerFile(fsys fs.FS, name string) string {
	for _, suffix := range towerSuffixes {
		for _, folder := range towerFolders {
			file := folder + name + suffix + ".onnx"
			if st, err := fs.Stat(fsys, file); err == nil && !st.IsDir() {
				return file
			}
		}
	}
	return ""
}

func (t *Towers) hash() (err error) {
	if t.TextSHA256, err = t.sum(t.Text); err != nil {
		return err
	}
	if t.Vision == t.Text {
		t.VisionSHA256 = t.TextSHA256
	} else if t.Vision != "" {
		t.VisionSHA256, err = t.sum(t.Vision)
	}
	return err
}

func (t *Towers) sum(file string) (string, error) {
	if e, ok := entries()[t.Name]; ok && t.Dir == "" { // which was compared with its files
		for _, f := range e.Files {
			if f.Name == file {
				return f.SHA256, nil
			}
		}
	}
	return sumFile(t.FS, t.Dir, file)
}

// sumFile returns the sha256 of a file, in hex.
func sumFile(fsys fs.FS, dir, file string) (string, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("models: %s: %w", filepath.Join(dir, file), err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
