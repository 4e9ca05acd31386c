package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/model"
)

// readVocabulary builds the pipeline from the file formats that predate tokenizer.json.
func readVocabulary(fsys fs.FS, s *settings) (*pipeline, error) {
	data, err := fs.ReadFile(fsys, files.VocabTxt)
	switch {
	case err == nil:
		v, err := files.ParseVocabTxt(data)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(s.class, "Esm") {
			return esm(v, s)
		}
		return bert(v, s)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("tokenize: %w", err)
	}
	var ids files.PieceIDs
	ok, err := files.ReadJSON(fsys, files.VocabJSON, &ids)
	if err != nil {
		return nil, err
	}
	if ok {
		return byteLevel(fsys, ids, s)
	}
	for _, name := range []string{"spiece.model", "spm.model", "sentencepiece.bpe.model", "sentencepiece.model", "tokenizer.model"} {
		data, err := fs.ReadFile(fsys, name)
		if err == nil && (s.model == "deberta-v2" || strings.HasPrefix(s.class, "DebertaV2")) {
			return deberta(name, data, s)
		}
		if err == nil {
			return nil, tokenize.Unsupported(name, "a SentencePiece model other than DeBERTa's needs a tokenizer.json; "+
				"write one with AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER) of transformers")
		}
	}
	return nil, files.Missing(files.TokenizerJSON, files.VocabTxt+" nor "+files.VocabJSON)
}

func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps, strings and numbers are passed
	}
	return data
}

type object = map[string]any

// around returns a post-processor that adds the tokens begin and end around a text; either may be "".
func around(ids files.PieceIDs, begin, end string) object {
	var single []any
	tokens := object{}
	for i, name := range []string{begin, end} {
		if i == 1 {
			single = append(single, object{"Sequence": object{}})
		}
		if name != "" {
			single = append(single, object{"SpecialToken": object{"id": name}})
			tokens[name] = object{"ids": []int32{ids[name]}}
		}
	}
	return object{"type": "TemplateProcessing", "single": single, "special_tokens": tokens}
}

// specials sets special tokens that the files do not mention to their usual names, and checks that the
// vocabulary has them.
func (s *settings) specials(v files.Vocabulary, usual map[string]string) error {
	for key, name := range usual {
		s.tokens[key] = s.or(key, name)
		if name := s.tokens[key]; name != "" && !v.IDs.Has(name) {
			return v.Lacks(name)
		}
	}
	return nil
}

func bert(v files.Vocabulary, s *settings) (*pipeline, error) {
	err := s.specials(v, map[string]string{"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]", "unk_token": "[UNK]"})
	if err != nil {
		return nil, err
	}
	return &pipeline{
		file:          v.File,
		Normalizer:    raw(object{"type": "BertNormalizer", "lowercase": s.configured || !hasCapitals(v.IDs)}),
		PreTokenizer:  raw(object{"type": "BertPreTokenizer"}),
		PostProcessor: raw(around(v.IDs, s.tokens["cls_token"], s.tokens["sep_token"])),
		Decoder:       raw(object{"type": "WordPiece", "prefix": "##"}),
		Model:         model.Spec{Typed: files.Typed{Type: "WordPiece"}, Unk: s.tokens["unk_token"], IDs: v.IDs},
	}, nil
}

// hasCapitals reports whether a vocabulary has capital letters. They would be unreachable if the tokenizer lower-cased,
// which is the default of transformers for a folder without tokenizer_config.json.
func hasCapitals(ids files.PieceIDs) bool {
	for r := 'A'; r <= 'Z'; r++ {
		if ids.Has(string(r)) {
			return true
		}
	}
	return false
}

// esm returns the tokenizer of ESM-2 and of nucleotide models: every piece matches its spelling in the
// text, white space is skipped, and the rest is unknown. Decoding puts no spaces between letters,
// unlike transformers.
func esm(v files.Vocabulary, s *settings) (*pipeline, error) {
	usual := map[string]string{"cls_token": "<cls>", "mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
	if v.IDs.Has("<eos>") {
		usual["eos_token"] = "<eos>"
	}
	if err := s.specials(v, usual); err != nil {
		return nil, err
	}
	c := &pipeline{
		file:          v.File,
		PreTokenizer:  raw(object{"type": "Split", "behavior": "Removed", "pattern": object{"Regex": `[\s\x1C-\x1F]+`}}), // Python's white space
		PostProcessor: raw(around(v.IDs, s.tokens["cls_token"], s.tokens["eos_token"])),
		Decoder:       raw(object{"type": "Fuse"}),
		Model:         model.Spec{Typed: files.Typed{Type: "WordLevel"}, Unk: s.tokens["unk_token"], IDs: v.IDs},
	}
	for piece, id := range v.IDs {
		if piece != "" {
			special := false
			for _, name := range s.tokens {
				special = special || name == piece
			}
			c.Added = append(c.Added, files.AddedToken{ID: id, Content: piece, Special: special})
		}
	}
	return c, nil
}

// byteLevel returns a byte-level BPE tokenizer: CLIP's if pieces have a suffix, RoBERTa's if the
// vocabulary has <s>, else GPT-2's.
func byteLevel(fsys fs.FS, ids files.PieceIDs, s *settings) (*pipeline, error) {
	data, err := fs.ReadFile(fsys, files.MergesTxt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, files.Missing(files.TokenizerJSON, files.MergesTxt)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenize: %w", err)
	}
	merges, err := parseMerges(data)
	if err != nil {
		return nil, err
	}
	v := files.Vocabulary{File: files.VocabJSON, IDs: ids}
	prefixSpace := string(s.given["add_prefix_space"]) == "true"
	c := &pipeline{
		file:         v.File,
		PreTokenizer: raw(object{"type": "ByteLevel", "add_prefix_space": prefixSpace}),
		Decoder:      raw(object{"type": "ByteLevel"}),
		Model:        model.Spec{Typed: files.Typed{Type: "BPE"}, IDs: ids, Rules: merges},
	}
	const end = "<|endoftext|>"
	var usual map[string]string
	begins, ends := "cls_token", "sep_token"
	switch {
	case ids.Has("!</w>"):
		c.clip()
		begins, ends = "bos_token", "eos_token"
		usual = map[string]string{begins: "<|startoftext|>", ends: end, "unk_token": end}
	case ids.Has("<s>"):
		usual = map[string]string{begins: "<s>", ends: "</s>", "mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
	default:
		begins, ends = "", ""
		usual = map[string]string{"eos_token": end, "bos_token": end, "unk_token": end}
	}
	if err := s.specials(v, usual); err != nil {
		return nil, err
	}
	if begins != "" {
		trims := c.Model.Suffix == ""
		post := around(ids, s.tokens[begins], s.tokens[ends])
		c.PostProcessor = raw(object{"type": "Sequence", "processors": []any{
			object{"type": "ByteLevel", "trim_offsets": trims, "add_prefix_space": prefixSpace}, post}})
	}
	if c.Model.Suffix != "" {
		c.Model.Unk = s.tokens["unk_token"]
	}
	c.addSpecials(ids, s)
	return c, nil
}

func (c *pipeline) clip() {
	c.Model.Suffix = "</w>"
	c.Normalizer = raw(object{"type": "Sequence", "normalizers": []any{
		object{"type": "NFC"},
		object{"type": "Replace", "pattern": object{"Regex": `\s+`}, "content": " "},
		object{"type": "Lowercase"},
	}})
	c.PreTokenizer = raw(object{"type": "Sequence", "pretokenizers": []any{
		object{"type": "Split", "behavior": "Removed", "invert": true,
			"pattern": object{"Regex": `'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`}},
		object{"type": "ByteLevel", "add_prefix_space": false},
	}})
}

// addSpecials adds the special tokens with the settings of transformers: the mask token strips the
// white space to its left.
func (c *pipeline) addSpecials(ids files.PieceIDs, s *settings) {
	seen := map[string]bool{"": true}
	for key, name := range s.tokens {
		id, ok := ids[name]
		if ok && !seen[name] {
			mask := key == "mask_token"
			c.Added = append(c.Added, files.AddedToken{ID: id, Content: name, Special: true, LStrip: mask, Normalized: !mask})
		}
		seen[name] = true
	}
}

// parseMerges parses merges.txt: an optional "#version" line, then two pieces a line.
func parseMerges(data []byte) ([]model.MergeRule, error) {
	var merges []model.MergeRule
	lines := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 && (strings.HasPrefix(line, "#version") || line == "") {
			continue
		}
		m, err := model.ParseMerge(line)
		if !utf8.ValidString(line) {
			err = errors.New("not UTF-8")
		}
		if err != nil {
			return nil, &tokenize.Error{File: files.MergesTxt, Line: i + 1, Err: err}
		}
		merges = append(merges, m)
	}
	return merges, nil
}
