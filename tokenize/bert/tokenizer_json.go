package bert

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// tokenizerJSON is the part of tokenizer.json that decides how text is split.
type tokenizerJSON struct {
	Added        []files.AddedToken `json:"added_tokens"`
	PreTokenizer *files.Typed       `json:"pre_tokenizer"`
	Normalizer   *struct {
		files.Typed
		Clean        *bool `json:"clean_text"`
		Ideographs   *bool `json:"handle_chinese_chars"`
		StripAccents *bool `json:"strip_accents"`
		Lowercase    *bool `json:"lowercase"`
	} `json:"normalizer"`
	Model *files.Model `json:"model"`
}

// vocabulary checks that the model is WordPiece with plain added tokens and returns its pieces.
func (t *tokenizerJSON) vocabulary() (files.Vocabulary, error) {
	v := files.Vocabulary{File: files.TokenizerJSON, Prefix: "##", MaxChars: 100, Added: t.Added}
	m := t.Model
	if m == nil || m.Vocab == nil {
		return v, &tokenize.FormatError{File: files.TokenizerJSON, Err: errors.New("no model.vocab")}
	}
	if kind := m.Kind(); kind != "WordPiece" {
		return v, &tokenize.UnsupportedError{File: files.TokenizerJSON, What: fmt.Sprintf("model type %q, only WordPiece", kind)}
	}
	var ids files.PieceIDs
	if err := json.Unmarshal(m.Vocab, &ids); err != nil {
		return v, &tokenize.FormatError{File: files.TokenizerJSON, Err: err}
	}
	v.IDs, v.Unk = ids, m.Unk
	if m.Prefix != nil {
		v.Prefix = *m.Prefix
	}
	if v.Prefix == "" {
		return v, &tokenize.UnsupportedError{File: files.TokenizerJSON, What: "empty continuing_subword_prefix"}
	}
	if m.MaxChars != nil {
		v.MaxChars = *m.MaxChars
	}
	for _, a := range t.Added {
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return v, &tokenize.UnsupportedError{File: files.TokenizerJSON, What: fmt.Sprintf("added token %q with single_word, lstrip, rstrip or normalized", a.Content)}
		}
	}
	return v, nil
}

// normalizer checks that text is normalised and split BERT's way and returns the settings;
// strip_accents apart, which is nil where it follows lowercase.
func (t *tokenizerJSON) normalizer() (n normalizer, accents *bool, err error) {
	if t.PreTokenizer == nil || t.PreTokenizer.Type != "BertPreTokenizer" {
		return n, nil, &tokenize.UnsupportedError{File: files.TokenizerJSON, What: "pre_tokenizer other than BertPreTokenizer"}
	}
	if t.Normalizer == nil || t.Normalizer.Type != "BertNormalizer" {
		return n, nil, &tokenize.UnsupportedError{File: files.TokenizerJSON, What: "normalizer other than BertNormalizer"}
	}
	isTrue := func(b *bool) bool { return b == nil || *b }
	z := t.Normalizer
	return normalizer{clean: isTrue(z.Clean), splitIdeographs: isTrue(z.Ideographs), lowercase: isTrue(z.Lowercase)}, z.StripAccents, nil
}
