package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/decode"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/model"
	"github.com/gradhop/gradhop/tokenize/internal/normalize"
	"github.com/gradhop/gradhop/tokenize/internal/split"
)

// pipeline is the content of tokenizer.json.
type pipeline struct {
	Added         []files.AddedToken `json:"added_tokens"`
	Normalizer    json.RawMessage    `json:"normalizer"`
	PreTokenizer  json.RawMessage    `json:"pre_tokenizer"`
	PostProcessor json.RawMessage    `json:"post_processor"`
	Decoder       json.RawMessage    `json:"decoder"`
	Model         model.Spec         `json:"model"`

	file string // the file of the vocabulary
}

// Load reads the tokenizer of a model folder: tokenizer.json or, if absent, vocab.txt (BERT and ESM-2),
// vocab.json with merges.txt (RoBERTa, GPT-2 and CLIP) or spm.model (DeBERTa-v3). Special tokens and
// settings in tokenizer_config.json and special_tokens_map.json override the defaults.
//
// MaxLen is the smaller of model_max_length in tokenizer_config.json and the number of positions in
// config.json.
//
// Errors are a *tokenize.Error or an error of fsys. An error matches fs.ErrNotExist if the folder has
// no vocabulary.
func Load(fsys fs.FS) (*Tokenizer, error) {
	s, err := readSettings(fsys)
	if err != nil {
		return nil, err
	}
	c := &pipeline{file: files.TokenizerJSON}
	ok, err := files.ReadJSON(fsys, files.TokenizerJSON, c)
	if err == nil && !ok {
		c, err = readVocabulary(fsys, s)
	}
	if err != nil {
		return nil, err
	}
	t, err := c.build(s)
	if err != nil {
		return nil, inFile(c.file, err)
	}
	t.MaxLen = s.maxLen
	return t, nil
}

func inFile(file string, err error) error {
	var named *tokenize.Error
	if errors.As(err, &named) {
		return named
	}
	return &tokenize.Error{File: file, Err: err}
}

// build assembles the components into a Tokenizer.
func (c *pipeline) build(s *settings) (*Tokenizer, error) {
	if err := c.overrideBERT(s); err != nil {
		return nil, err
	}
	t := &Tokenizer{special: map[int32]bool{}, suffix: c.Model.Suffix}
	m, v, err := model.Read(c.Model)
	if err != nil {
		return nil, err
	}
	v.File, v.Added, t.model = c.file, c.Added, m
	if t.normalize, err = normalize.Read(c.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.split, err = split.Read(c.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.decode, err = decode.Read(c.Decoder); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if err := t.nameSpecials(s, &v); err != nil {
		return nil, err
	}
	if err := v.Check(); err != nil {
		return nil, err
	}
	t.list, t.ids = v.List(), v.All()
	if err := t.readPost(c.PostProcessor); err != nil {
		return nil, err
	}
	var raw, normalized []files.AddedToken
	for _, a := range v.Added {
		t.special[a.ID] = t.special[a.ID] || a.Special
		if a.Normalized {
			normalized = append(normalized, a)
		} else {
			raw = append(raw, a)
		}
	}
	t.rawAdded = newAdded(raw, func(s string) string { return s })
	t.normalizedAdded = newAdded(normalized, func(s string) string { return aligned.String(t.normalize(aligned.Of(s, 0))) })
	t.marked = t.decode.Text([]string{"a", "b"}) == "ab"
	if words := t.split(t.normalize(aligned.Of("a", 0))); len(words) > 0 {
		t.prefix = len(words[0]) > 1
	}
	return t, c.checkBytes(v)
}

// nameSpecials sets Mask, Pad and Unk, and adds named special tokens to the added tokens of v as
// transformers does.
func (t *Tokenizer) nameSpecials(s *settings, v *files.Vocabulary) error {
	all := v.All()
	find := func(name string, usual ...string) (int32, error) {
		if name != "" {
			if id, ok := all[name]; ok {
				if !slices.ContainsFunc(v.Added, func(a files.AddedToken) bool { return a.Content == name }) {
					v.Added = append(v.Added, files.AddedToken{ID: id, Content: name, Special: true})
				}
				t.special[id] = true
				return id, nil
			}
			return -1, v.Lacks(name)
		}
		for _, u := range usual {
			if id, ok := all[u]; ok {
				return id, nil
			}
		}
		return -1, nil
	}
	var errs [3]error
	t.Mask, errs[0] = find(s.tokens["mask_token"], "[MASK]", "<mask>")
	t.Pad, errs[1] = find(s.tokens["pad_token"], "[PAD]", "<pad>")
	t.Unk, errs[2] = find(s.tokens["unk_token"], v.Unk)
	for _, name := range []string{"cls_token", "sep_token", "bos_token", "eos_token"} {
		if _, err := find(s.tokens[name]); err != nil {
			return err
		}
	}
	return errors.Join(errs[:]...)
}

// checkBytes requires a piece for every byte from a BPE model without an unknown token: the reference
// silently drops bytes that have none.
func (c *pipeline) checkBytes(v files.Vocabulary) error {
	if c.Model.Merges == nil && c.Model.Rules == nil || c.Model.Unk != "" || c.Model.ByteFallback {
		return nil
	}
	for b, r := range aligned.ByteToRune {
		for _, piece := range []string{string(r), string(r) + c.Model.Suffix} {
			if _, ok := v.IDs[piece]; !ok {
				return files.Unsupported("no unk_token, and byte 0x%02X has no piece %q", b, piece)
			}
		}
	}
	return nil
}

type post struct {
	files.Typed
	Processors  []json.RawMessage `json:"processors"`
	CLS         taggedID          `json:"cls"`
	SEP         taggedID          `json:"sep"`
	Trim        *bool             `json:"trim_offsets"`
	PrefixSpace *bool             `json:"add_prefix_space"`
	Single      []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		}
		Sequence *struct{}
	} `json:"single"`
	Tokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// readPost sets Begin, End and offset trimming from the post-processor.
func (t *Tokenizer) readPost(data json.RawMessage) error {
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	var p post
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	isTrue := func(b *bool) bool { return b == nil || *b }
	switch p.Type {
	case "Sequence":
		for _, d := range p.Processors {
			if err := t.readPost(d); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel", "RobertaProcessing":
		if isTrue(p.Trim) {
			t.trims = append(t.trims, trim{isTrue(p.PrefixSpace)})
		}
	case "BertProcessing", "TemplateProcessing":
	default:
		return files.Unsupported("post_processor %s", p.Type)
	}
	switch p.Type {
	case "RobertaProcessing", "BertProcessing":
		for _, end := range []taggedID{p.CLS, p.SEP} {
			if id, ok := t.ids[end.name]; !ok {
				return fmt.Errorf("vocabulary has no %s", end.name)
			} else if id != end.id {
				return fmt.Errorf("%q is listed twice, as %d and %d", end.name, id, end.id)
			}
		}
		t.Begin, t.End = []int32{p.CLS.id}, []int32{p.SEP.id}
	case "TemplateProcessing":
		ends := []*[]int32{&t.Begin, &t.End}
		for _, part := range p.Single {
			if part.SpecialToken == nil {
				ends = ends[1:]
				if len(ends) == 0 {
					return files.Unsupported("post_processor with two texts")
				}
				continue
			}
			*ends[0] = append(*ends[0], p.Tokens[part.SpecialToken.ID].IDs...)
		}
	}
	for _, id := range slices.Concat(t.Begin, t.End) {
		if t.Piece(id) == "" {
			return fmt.Errorf("post_processor adds the id %d, which has no piece", id)
		}
		t.special[id] = true
	}
	return nil
}

// taggedID is the JSON array ["name", id].
type taggedID struct {
	name string
	id   int32
}

func (t *taggedID) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("special token is not a [name, id] pair")
	}
	return errors.Join(json.Unmarshal(pair[0], &t.name), json.Unmarshal(pair[1], &t.id))
}
