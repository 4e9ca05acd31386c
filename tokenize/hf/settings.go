package hf

import (
	"encoding/json"
	"io/fs"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// settings holds the contents of the JSON files beside the vocabulary.
type settings struct {
	class      string                     // transformers class name, such as "BertTokenizer"
	tokens     map[string]string          // "mask_token" -> "[MASK]"; "" if the file says null
	given      map[string]json.RawMessage // tokenizer_config.json
	configured bool                       // there is a tokenizer_config.json
	model      string                     // model_type in config.json, such as "deberta-v2"
	maxLen     int
}

// offsetPositions lists the model types whose first positions are reserved for padding.
var offsetPositions = map[string]bool{"roberta": true, "xlm-roberta": true, "xlm-roberta-xl": true, "camembert": true,
	"roberta-prelayernorm": true, "data2vec-text": true, "longformer": true, "mpnet": true, "ibert": true, "xmod": true}

func readSettings(fsys fs.FS) (*settings, error) {
	s := &settings{tokens: map[string]string{}, given: map[string]json.RawMessage{}}
	// tokenizer_config.json overrides special_tokens_map.json.
	for _, file := range []string{files.SpecialTokensMap, files.TokenizerConfig} {
		s.given = map[string]json.RawMessage{}
		ok, err := files.ReadJSON(fsys, file, &s.given)
		if err != nil {
			return nil, err
		}
		s.configured = ok
		for _, name := range []string{"mask_token", "pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token"} {
			data, ok := s.given[name]
			if !ok {
				continue
			}
			var token files.TokenName
			if err := json.Unmarshal(data, &token); err != nil {
				return nil, &tokenize.Error{File: file, Err: err}
			}
			s.tokens[name] = string(token)
		}
	}
	var limit float64
	for name, into := range map[string]any{"tokenizer_class": &s.class, "model_max_length": &limit} {
		if data, ok := s.given[name]; ok {
			if err := json.Unmarshal(data, into); err != nil {
				return nil, &tokenize.Error{File: files.TokenizerConfig, Err: err}
			}
		}
	}
	var m struct {
		Type         string  `json:"model_type"`
		MaxPositions float64 `json:"max_position_embeddings"`
		Pad          float64 `json:"pad_token_id"`
		Text         struct {
			MaxPositions float64 `json:"max_position_embeddings"`
		} `json:"text_config"`
	}
	if _, err := files.ReadJSON(fsys, files.Config, &m); err != nil {
		return nil, err
	}
	if offsetPositions[m.Type] {
		m.MaxPositions -= m.Pad + 1
	}
	s.model = m.Type
	s.maxLen = files.SmallestLength(m.MaxPositions, m.Text.MaxPositions, limit)
	return s, nil
}

// or returns the special token named key: its content in the files, the default name if no file
// mentions it, or "" if a file says null.
func (s *settings) or(key, name string) string {
	if given, ok := s.tokens[key]; ok {
		return given
	}
	return name
}

// overrideBERT applies do_lower_case, strip_accents and tokenize_chinese_chars of tokenizer_config.json
// to a BertNormalizer, as transformers does.
func (c *pipeline) overrideBERT(s *settings) error {
	var n map[string]json.RawMessage
	if json.Unmarshal(c.Normalizer, &n) != nil || string(n["type"]) != `"BertNormalizer"` {
		return nil
	}
	for from, to := range map[string]string{"do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "handle_chinese_chars"} {
		data, ok := s.given[from]
		if !ok || string(data) == "null" && from != "strip_accents" {
			continue
		}
		var b *bool
		if err := json.Unmarshal(data, &b); err != nil {
			return &tokenize.Error{File: files.TokenizerConfig, Err: err}
		}
		n[to] = data
	}
	var err error
	c.Normalizer, err = json.Marshal(n)
	return err
}
