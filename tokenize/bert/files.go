package bert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// bertFiles is what a folder says about its tokenizer.
type bertFiles struct {
	vocab      files.Vocabulary
	normalizer normalizer
	names      specialNames
	maxLen     int
}

// specialNames are the spellings of the special tokens, [UNK] apart: that is part of the model.
type specialNames struct {
	CLS, SEP, Mask, Pad string
}

func readFiles(fsys fs.FS) (f bertFiles, err error) {
	var t tokenizerJSON
	var s settingsJSON
	var m struct {
		MaxPositions int `json:"max_position_embeddings"`
	}
	hasTokenizer, err := files.ReadJSON(fsys, files.TokenizerJSON, &t)
	if err == nil {
		_, err = files.ReadJSON(fsys, files.TokenizerConfig, &s)
	}
	if err == nil {
		_, err = files.ReadJSON(fsys, files.Config, &m)
	}
	if err != nil {
		return f, err
	}
	f.normalizer = normalizer{clean: true, splitIdeographs: true, lowercase: true}
	var accents *bool
	if hasTokenizer {
		if f.vocab, err = t.vocabulary(); err != nil {
			return f, err
		}
		if f.normalizer, accents, err = t.normalizer(); err != nil {
			return f, err
		}
	} else {
		data, err := fs.ReadFile(fsys, files.VocabTxt)
		if errors.Is(err, fs.ErrNotExist) {
			return f, files.Missing(files.TokenizerJSON, files.VocabTxt)
		}
		if err != nil {
			return f, fmt.Errorf("tokenize: %w", err)
		}
		if f.vocab, err = files.ParseVocabTxt(data); err != nil {
			return f, err
		}
	}
	if err := f.vocab.Check(); err != nil {
		return f, err
	}
	s.apply(&f, &accents)
	f.normalizer.stripAccents = f.normalizer.lowercase
	if accents != nil {
		f.normalizer.stripAccents = *accents
	}
	f.maxLen = files.SmallestLength(float64(m.MaxPositions), s.MaxLength)
	return f, nil
}

// settingsJSON is tokenizer_config.json. Absent and null differ for strip_accents: null there
// overrides tokenizer.json.
type settingsJSON struct {
	Lowercase    *bool           `json:"do_lower_case"`
	StripAccents json.RawMessage `json:"strip_accents"`
	Ideographs   *bool           `json:"tokenize_chinese_chars"`
	MaxLength    float64         `json:"model_max_length"` // may be 1e30, for "no limit"
	CLS          files.TokenName `json:"cls_token"`
	SEP          files.TokenName `json:"sep_token"`
	Mask         files.TokenName `json:"mask_token"`
	Pad          files.TokenName `json:"pad_token"`
	Unk          files.TokenName `json:"unk_token"`
}

// apply lets the settings that are present override those in f.
func (s *settingsJSON) apply(f *bertFiles, accents **bool) {
	if s.Lowercase != nil {
		f.normalizer.lowercase = *s.Lowercase
	}
	if s.Ideographs != nil {
		f.normalizer.splitIdeographs = *s.Ideographs
	}
	switch string(s.StripAccents) {
	case "null":
		*accents = nil
	case "true", "false":
		strip := string(s.StripAccents) == "true"
		*accents = &strip
	}
	f.names = specialNames{s.CLS.Or("[CLS]"), s.SEP.Or("[SEP]"), s.Mask.Or("[MASK]"), s.Pad.Or("[PAD]")}
	if f.vocab.Unk == "" {
		f.vocab.Unk = s.Unk.Or("[UNK]")
	}
}
