package models

import (
	"cmp"
	"context"
	"io/fs"

	"github.com/gradhop/gradhop/models/hub"
)

// DefaultCLIP is the name of the CLIP that is used where none is asked for.
const DefaultCLIP = "clip-pictures"

// Towers is a CLIP that is there to be read: a tower for texts, and one for pictures
// where the folder has one.
type Towers struct {
	// Name is the built-in name, the last element of the folder's path, or owner/name@commit.
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

// OpenTowers returns a CLIP: a built-in one, the one in a folder, or one on the Hugging Face
// Hub; see [Open] for ref. "" means DefaultCLIP. It looks for text_model.onnx and
// vision_model.onnx, then for one file with both towers, model.onnx, then for the text tower
// alone, each also in onnx/; textual/model.onnx and visual/model.onnx, or textual.onnx and
// visual.onnx, are the towers too. Without a variant, _fp16 files are
// taken where there are no others.
//
// Errors: as for Open, with *Error for a built-in model of another kind.
func OpenTowers(ctx context.Context, ref string, o hub.Options) (Towers, error) {
	src, err := find(ctx, cmp.Or(ref, DefaultCLIP), o)
	if err != nil {
		return Towers{}, err
	}
	t := Towers{Name: src.name, FS: src.fs, Dir: src.dir}
	t.Text, t.Vision = src.towers()
	if src.entry != nil && src.entry.kind() != kindCLIP {
		return Towers{}, wrongKind(t.Name, src.entry.kind(), kindCLIP, CLIPs())
	}
	if t.Text == "" {
		return Towers{}, src.missing(ctx, textTowers[0])
	}
	if err := src.fetch(ctx, t.Text, t.Vision); err != nil {
		return Towers{}, err
	}
	if t.TextSHA256, err = src.sum(ctx, t.Text); err != nil {
		return Towers{}, err
	}
	if t.VisionSHA256 = t.TextSHA256; t.Vision != t.Text {
		t.VisionSHA256, err = src.sum(ctx, t.Vision)
	}
	return t, err
}

// towers returns the files of the text tower and of the vision tower, or "" for one that is
// missing.
func (s *source) towers() (text, vision string) {
	list := func(names []string) []string {
		all := s.variants(names)
		if s.variant == "" {
			all = append(all, addVariant(names, "fp16")...)
		}
		return all
	}
	text, vision = s.first(list(textTowers)), s.first(list(visionTowers))
	if both := s.first(list(single)); both != "" && (text == "" || vision == "") {
		return both, both
	}
	return text, vision
}
