package clip

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// tokenizerJSON is the part of tokenizer.json that decides how text is split. What differs between kinds
// of tokenizers stays raw until the model's kind is known.
type tokenizerJSON struct {
	Added         []files.AddedToken `json:"added_tokens"`
	Normalizer    json.RawMessage    `json:"normalizer"`
	PreTokenizer  json.RawMessage    `json:"pre_tokenizer"`
	PostProcessor json.RawMessage    `json:"post_processor"`
	Model         *struct {
		files.Model
		Suffix       string   `json:"end_of_word_suffix"`
		Dropout      *float64 `json:"dropout"`
		FuseUnk      bool     `json:"fuse_unk"`
		ByteFallback bool     `json:"byte_fallback"`
		IgnoreMerges bool     `json:"ignore_merges"`
	} `json:"model"`
}

func unsupported(format string, args ...any) error {
	return &tokenize.UnsupportedError{File: files.TokenizerJSON, What: fmt.Sprintf(format, args...)}
}

// read fills in the files.Vocabulary, the merges, the heads of the word pattern, and sot and eot where the
// post-processor has them.
func (t *tokenizerJSON) read(f *folder) error {
	m := t.Model
	if m == nil || m.Vocab == nil {
		return &tokenize.FormatError{File: files.TokenizerJSON, Err: errors.New("no model.vocab")}
	}
	if kind := m.Kind(); kind != "BPE" {
		return unsupported("model type %q, only CLIP's BPE", kind)
	}
	if m.Suffix != wordEnd {
		return unsupported("end_of_word_suffix %q, only CLIP's %q", m.Suffix, wordEnd)
	}
	if m.Prefix != nil && *m.Prefix != "" || m.Dropout != nil && *m.Dropout != 0 || m.FuseUnk || m.ByteFallback || m.IgnoreMerges {
		return unsupported("model with continuing_subword_prefix, dropout, fuse_unk, byte_fallback or ignore_merges")
	}
	var ids files.PieceIDs
	if err := json.Unmarshal(m.Vocab, &ids); err != nil {
		return &tokenize.FormatError{File: files.TokenizerJSON, Err: err}
	}
	f.vocab = files.Vocabulary{File: files.TokenizerJSON, IDs: ids, Added: t.Added, Unk: m.Unk}
	var rules []mergeRule
	if err := json.Unmarshal(m.Merges, &rules); err != nil {
		return &tokenize.FormatError{File: files.TokenizerJSON, Err: err}
	}
	for _, r := range rules {
		f.merges = append(f.merges, r)
	}
	for _, a := range t.Added {
		if a.SingleWord || a.LStrip || a.RStrip {
			return unsupported("added token %q with single_word, lstrip or rstrip", a.Content)
		}
	}
	if err := t.checkNormalizer(); err != nil {
		return err
	}
	var err error
	if f.heads, err = t.heads(); err != nil {
		return err
	}
	return t.ends(f)
}

// checkNormalizer checks that text is normalised CLIP's way.
func (t *tokenizerJSON) checkNormalizer() error {
	var n struct {
		Normalizers []struct {
			files.Typed
			Pattern struct{ Regex string } `json:"pattern"`
			Content string                 `json:"content"`
		} `json:"normalizers"`
	}
	if json.Unmarshal(t.Normalizer, &n) == nil && len(n.Normalizers) == 3 {
		a, b, c := n.Normalizers[0], n.Normalizers[1], n.Normalizers[2]
		if a.Type == "NFC" && b.Type == "Replace" && b.Pattern.Regex == `\s+` && b.Content == " " && c.Type == "Lowercase" {
			return nil
		}
	}
	return unsupported("normalizer other than CLIP's NFC, one blank for white space, Lowercase")
}

// wordPattern is how the pattern of words ends; alternatives that are literals may stand before it.
const wordPattern = `'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`

// heads checks that words are split CLIP's way and returns the literals in front of wordPattern.
func (t *tokenizerJSON) heads() ([]string, error) {
	var p struct {
		Parts []struct {
			files.Typed
			Pattern     struct{ Regex string } `json:"pattern"`
			Behavior    string                 `json:"behavior"`
			Invert      bool                   `json:"invert"`
			PrefixSpace bool                   `json:"add_prefix_space"`
			UseRegex    *bool                  `json:"use_regex"`
		} `json:"pretokenizers"`
	}
	err := unsupported("pre_tokenizer other than CLIP's Split and ByteLevel")
	if json.Unmarshal(t.PreTokenizer, &p) != nil || len(p.Parts) != 2 {
		return nil, err
	}
	split, level := p.Parts[0], p.Parts[1]
	head, ok := strings.CutSuffix(split.Pattern.Regex, wordPattern)
	if !ok || split.Type != "Split" || split.Behavior != "Removed" || !split.Invert ||
		level.Type != "ByteLevel" || level.PrefixSpace || level.UseRegex != nil && !*level.UseRegex {
		return nil, err
	}
	if head == "" {
		return nil, nil
	}
	heads, ok := literalAlternatives(head)
	if !ok {
		return nil, err
	}
	return heads, nil
}

// literalAlternatives takes the regular expression `a|b|` apart, where the alternatives are literals.
func literalAlternatives(pattern string) (list []string, ok bool) {
	var word strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '|':
			if word.Len() == 0 {
				return nil, false
			}
			list = append(list, word.String())
			word.Reset()
		case c == '\\':
			if i++; i == len(pattern) || !strings.Contains(`\.+*?()|[]{}^$-/`, pattern[i:i+1]) {
				return nil, false
			}
			word.WriteByte(pattern[i])
		case strings.IndexByte(`.+*?()[]{}^$`, c) >= 0:
			return nil, false
		default:
			word.WriteByte(c)
		}
	}
	return list, word.Len() == 0
}

// ends takes the names of SOT and EOT from the post-processor, if that is one that adds them.
func (t *tokenizerJSON) ends(f *folder) error {
	var p struct {
		files.Typed
		CLS    taggedID `json:"cls"`
		SEP    taggedID `json:"sep"`
		Single []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
			Sequence *struct{}
		} `json:"single"`
		Tokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if len(t.PostProcessor) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.PostProcessor, &p); err != nil {
		return &tokenize.FormatError{File: files.TokenizerJSON, Err: err}
	}
	sot, eot := p.CLS, p.SEP
	switch p.Type {
	case "RobertaProcessing", "BertProcessing":
	case "TemplateProcessing":
		s := p.Single
		if len(s) != 3 || s[0].SpecialToken == nil || s[1].Sequence == nil || s[2].SpecialToken == nil {
			return unsupported("post_processor other than one token, the text, one token")
		}
		for i, end := range []*taggedID{&sot, &eot} {
			end.name = s[2*i].SpecialToken.ID
			if ids := p.Tokens[end.name].IDs; len(ids) != 1 {
				return unsupported("post_processor whose %q is %d tokens", end.name, len(ids))
			}
			end.id = p.Tokens[end.name].IDs[0]
		}
	default:
		return nil
	}
	all := f.vocab.All()
	for _, end := range []taggedID{sot, eot} {
		id, ok := all[end.name]
		if !ok {
			return f.vocab.Lacks(end.name)
		}
		if id != end.id {
			return &tokenize.FormatError{File: files.TokenizerJSON, Err: fmt.Errorf("%q is listed twice, as %d and %d", end.name, id, end.id)}
		}
	}
	f.sot, f.eot = sot.name, eot.name
	return nil
}

// taggedID is ["name", id] in JSON.
type taggedID struct {
	name string
	id   int32
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *taggedID) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("special token is not a name and an id")
	}
	return errors.Join(json.Unmarshal(pair[0], &t.name), json.Unmarshal(pair[1], &t.id))
}
