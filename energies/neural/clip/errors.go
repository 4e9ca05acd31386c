package clip

import (
	"fmt"
	"strings"
)

// Towers of a CLIP model, as errors name them.
const (
	textTower   = "text"
	visionTower = "vision"
)

// TowerError reports a CLIP model without one of its two towers.
type TowerError struct {
	Tower string // "text" or "vision"
	File  string // the file of the other tower, or empty
}

func (e *TowerError) Error() string {
	s := "clip: the model has no " + e.Tower + " tower"
	if e.File != "" {
		s += " beside " + e.File
	}
	if e.Tower == visionTower {
		return s + ": add vision_model.onnx, or take texts as targets"
	}
	return s + ": add text_model.onnx"
}

// ModelError reports a file that is not the tower of a CLIP model that it should be.
type ModelError struct {
	File   string // its path, or empty for a model that has none
	Tower  string // "text" or "vision"
	Have   string // its inputs and outputs
	Reason string
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("clip: %s is not a %s tower of CLIP: %s; the model has %s", fileName(e.File), e.Tower, e.Reason, e.Have)
}

// ProjectionError reports a tower that ends before the projection into the space that
// texts and pictures share.
type ProjectionError struct {
	File, Tower string
	Have        []string // its outputs
}

func (e *ProjectionError) Error() string {
	class := "CLIPTextModelWithProjection"
	if e.Tower == visionTower {
		class = "CLIPVisionModelWithProjection"
	}
	return fmt.Sprintf("clip: %s has the outputs %s but no %s; export it with its projection (%s)",
		fileName(e.File), strings.Join(e.Have, ", "), outputOf[e.Tower], class)
}

// WidthError reports towers whose vectors cannot be compared.
type WidthError struct {
	TextFile, VisionFile string
	Text, Vision         int // lengths of their vectors
}

func (e *WidthError) Error() string {
	return fmt.Sprintf("clip: text_embeds of %s have %d numbers, image_embeds of %s have %d; the two must be of one model, each exported with its projection",
		fileName(e.TextFile), e.Text, fileName(e.VisionFile), e.Vision)
}

// LengthError reports a text that is longer than the model's context.
type LengthError struct {
	File      string
	Have, Max int // tokens, with those around the text
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("clip: a text of %d tokens, with those around it, is too long: %s takes at most %d", e.Have, fileName(e.File), e.Max)
}

// ImageSizeError reports pictures of another size than the model takes.
type ImageSizeError struct {
	File       string
	Have, Want string
}

func (e *ImageSizeError) Error() string {
	return fmt.Sprintf("clip: pictures of %s do not fit %s, which takes %s", e.Have, fileName(e.File), e.Want)
}

// TokenError reports an id that is not in the model's vocabulary.
type TokenError struct {
	ID         int32
	Vocabulary int
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("clip: token id %d is outside the model's vocabulary of %d; is the tokenizer that of another model?", e.ID, e.Vocabulary)
}

func fileName(path string) string {
	if path == "" {
		return "the model"
	}
	return path
}
