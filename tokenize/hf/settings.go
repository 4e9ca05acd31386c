package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
)

// Names of the files in a model folder.
const (
	tokenizerJSON    = "tokenizer.json"
	tokenizerConfig  = "tokenizer_config.json"
	specialTokensMap = "special_tokens_map.json"
	modelConfig      = "config.json"
	vocabTxt         = "vocab.txt"
	vocabJSON        = "vocab.json"
	mergesTxt        = "merges.txt"
)

// readFile returns the contents of a file, nil if there is none.
func readFile(fsys fs.FS, file string) ([]byte, error) {
	data, err := fs.ReadFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokenize: %w", err)
	}
	return data, nil
}

// readJSON decodes an optional file into into. It reports whether the file exists.
func readJSON(fsys fs.FS, file string, into any) (bool, error) {
	data, err := readFile(fsys, file)
	if data == nil || err != nil {
		return false, err
	}
	if err = json.Unmarshal(data, into); !utf8.Valid(data) { // encoding/json silently replaces invalid bytes
		err = errors.New("not UTF-8")
	}
	if err != nil {
		return false, tokenize.InFile(file, err)
	}
	return true, nil
}

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
	s := &settings{tokens: map[string]string{}}
	// tokenizer_config.json overrides special_tokens_map.json.
	for _, file := range []string{specialTokensMap, tokenizerConfig} {
		var err error
		s.given = map[string]json.RawMessage{}
		if s.configured, err = readJSON(fsys, file, &s.given); err != nil {
			return nil, err
		}
		for _, key := range []string{"mask_token", "pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token"} {
			data, ok := s.given[key]
			if !ok {
				continue
			}
			var name string
			if err := json.Unmarshal(data, &name); err != nil {
				var object struct{ Content string }
				if json.Unmarshal(data, &object) != nil {
					return nil, tokenize.InFile(file, fmt.Errorf("%s: %w", key, err))
				}
				name = object.Content
			}
			s.tokens[key] = name
		}
	}
	var limit float64
	for name, into := range map[string]any{"tokenizer_class": &s.class, "model_max_length": &limit} {
		if data, ok := s.given[name]; ok {
			if err := json.Unmarshal(data, into); err != nil {
				return nil, tokenize.InFile(tokenizerConfig, fmt.Errorf("%s: %w", name, err))
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
	if _, err := readJSON(fsys, modelConfig, &m); err != nil {
		return nil, err
	}
	if offsetPositions[m.Type] {
		m.MaxPositions -= m.Pad + 1
	}
	s.model = m.Type
	for _, n := range []float64{m.MaxPositions, m.Text.MaxPositions, limit} {
		if n >= 1 && n <= math.MaxInt32 && (s.maxLen == 0 || int(n) < s.maxLen) { // some files write 1e30 for no limit
			s.maxLen = int(n)
		}
	}
	return s, nil
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
			return tokenize.InFile(tokenizerConfig, fmt.Errorf("%s: %w", from, err))
		}
		n[to] = data
	}
	var err error
	c.Normalizer, err = json.Marshal(n)
	return err
}
