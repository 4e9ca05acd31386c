package clip

import (
	"fmt"
	"strings"

	"github.com/gradhop/gradhop/energies/neural"
)

// Towers of a CLIP model, as errors name them.
const (
	textTower   = "text"
	visionTower = "vision"
)

// Error reports a model that is not the CLIP model that it should be.
type Error struct {
	File   string // path of the file at fault, or empty
	Tower  string // "text" or "vision"
	Reason string
	Have   string // the inputs and outputs of the model, or empty
}

func (e *Error) Error() string {
	s := "clip: " + e.Reason
	if e.Have != "" {
		s += "; the model has " + e.Have
	}
	return s
}

// ExitCode returns 3: runtime or model unavailable.
func (*Error) ExitCode() int { return 3 }

// missingTower reports a model without its text or vision tower, found beside file, which
// may be empty.
func missingTower(tower, file string) error {
	s := "the model has no " + tower + " tower"
	if file != "" {
		s += " beside " + file
	}
	if tower == visionTower {
		s += ": add vision_model.onnx, or use text targets"
	} else {
		s += ": add text_model.onnx"
	}
	return &Error{File: file, Tower: tower, Reason: s}
}

// missingProjection reports a tower that ends before the projection into the space that
// texts and images share. have are its outputs.
func missingProjection(file, tower string, have []string) error {
	class := "CLIPTextModelWithProjection"
	if tower == visionTower {
		class = "CLIPVisionModelWithProjection"
	}
	return &Error{File: file, Tower: tower, Reason: fmt.Sprintf("%s has the outputs %s but no %s; export it with its projection (%s)",
		fileName(file), strings.Join(have, ", "), outputOf[tower], class)}
}

// unknownToken reports an id that is not in the vocabulary.
func unknownToken(id int32, vocabulary int) error {
	return &neural.OptionError{Option: "token id", Value: fmt.Sprint(id), Want: fmt.Sprintf("an id inside the model's vocabulary of %d; is the tokenizer that of another model?", vocabulary)}
}

func fileName(path string) string {
	if path == "" {
		return "the model"
	}
	return path
}
