package clip

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// The special tokens of CLIP where the files do not name them.
const (
	defaultSOT = "<|startoftext|>"
	defaultEOT = "<|endoftext|>"
)

// folder is what a folder says about its tokenizer. The vocabulary has sot, eot, pad and unk,
// the last unless it is empty.
type folder struct {
	vocab         files.Vocabulary
	merges        [][2]string
	mergesFrom    string // the file
	heads         []string
	sot, eot, pad string
	maxLen        int
}

// settings is the part of tokenizer_config.json and special_tokens_map.json that is looked at.
type settings struct {
	MaxLength float64         `json:"model_max_length"`
	BOS       files.TokenName `json:"bos_token"`
	EOS       files.TokenName `json:"eos_token"`
	Pad       files.TokenName `json:"pad_token"`
	Unk       files.TokenName `json:"unk_token"`
}

func readFolder(fsys fs.FS) (f folder, err error) {
	var t tokenizerJSON
	var s settings
	var m struct {
		MaxPositions int `json:"max_position_embeddings"`
		Text         struct {
			MaxPositions int `json:"max_position_embeddings"`
		} `json:"text_config"`
	}
	hasTokenizer, err := files.ReadJSON(fsys, files.TokenizerJSON, &t)
	// What tokenizer_config.json says overrides special_tokens_map.json.
	for _, o := range []struct {
		file string
		into any
	}{{files.SpecialTokensMap, &s}, {files.TokenizerConfig, &s}, {files.Config, &m}} {
		if err == nil {
			_, err = files.ReadJSON(fsys, o.file, o.into)
		}
	}
	if err != nil {
		return f, err
	}
	if hasTokenizer {
		f.mergesFrom = files.TokenizerJSON
		err = t.read(&f)
	} else {
		f.mergesFrom = files.MergesTxt
		f.vocab, f.merges, err = readVocabAndMerges(fsys)
		f.vocab.Unk = s.Unk.Or(defaultEOT)
	}
	if err != nil {
		return f, err
	}
	f.sot, f.eot = files.TokenName(f.sot).Or(s.BOS.Or(defaultSOT)), files.TokenName(f.eot).Or(s.EOS.Or(defaultEOT))
	f.pad = s.Pad.Or(f.eot)
	f.maxLen = files.SmallestLength(float64(m.MaxPositions), float64(m.Text.MaxPositions), s.MaxLength)
	return f, f.check(!hasTokenizer)
}

// check reports names that the vocabulary lacks, and adds SOT and EOT to the added tokens where the
// files do not: transformers does so, to the normalised text where it has no tokenizer.json.
func (f *folder) check(normalized bool) error {
	if err := f.vocab.Check(); err != nil {
		return err
	}
	all := f.vocab.All()
	for _, name := range []string{f.sot, f.eot, f.pad, f.vocab.Unk} {
		if _, ok := all[name]; !ok && name != "" {
			return f.vocab.Lacks(name)
		}
	}
	if _, ok := f.vocab.IDs[f.vocab.Unk]; !ok && f.vocab.Unk != "" {
		return f.vocab.Lacks(f.vocab.Unk) // an added token is no help to BPE
	}
	if f.sot == f.eot {
		return &tokenize.FormatError{File: f.vocab.File, Err: fmt.Errorf("%q both starts and ends a text", f.sot)}
	}
	for _, name := range []string{f.sot, f.eot} {
		found := false
		for i := range f.vocab.Added {
			if t := &f.vocab.Added[i]; t.Content == name {
				t.Special, found = true, true
			}
		}
		if !found {
			f.vocab.Added = append(f.vocab.Added, files.AddedToken{ID: all[name], Content: name, Special: true, Normalized: normalized})
		}
	}
	return nil
}

// readVocabAndMerges reads the two files that stand for tokenizer.json.
func readVocabAndMerges(fsys fs.FS) (v files.Vocabulary, merges [][2]string, err error) {
	var ids files.PieceIDs
	found, err := files.ReadJSON(fsys, files.VocabJSON, &ids)
	if err != nil {
		return v, nil, err
	}
	if !found {
		return v, nil, files.Missing(files.TokenizerJSON, files.VocabJSON)
	}
	data, err := fs.ReadFile(fsys, files.MergesTxt)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil, files.Missing(files.TokenizerJSON, files.MergesTxt)
	}
	if err != nil {
		return v, nil, fmt.Errorf("tokenize: %w", err)
	}
	merges, err = parseMergesTxt(data)
	return files.Vocabulary{File: files.VocabJSON, IDs: ids}, merges, err
}

// parseMergesTxt reads merges.txt: after a head line "#version", two pieces a line.
func parseMergesTxt(data []byte) ([][2]string, error) {
	var merges [][2]string
	lines := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 && (strings.HasPrefix(line, "#version") || line == "") {
			continue
		}
		m, err := parseMerge(line)
		if !utf8.ValidString(line) {
			err = errors.New("not UTF-8")
		}
		if err != nil {
			return nil, &tokenize.FormatError{File: files.MergesTxt, Line: i + 1, Err: err}
		}
		merges = append(merges, m)
	}
	return merges, nil
}

// parseMerge splits a merge as it is spelled in one string.
func parseMerge(text string) (m [2]string, err error) {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return m, fmt.Errorf("merge %q is not two pieces", text)
	}
	return [2]string{left, right}, nil
}

// mergeRule is a merge in JSON: "a b" in older files, ["a", "b"] in newer ones.
type mergeRule [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergeRule) UnmarshalJSON(data []byte) (err error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err = json.Unmarshal(data, &text); err == nil {
			*m, err = parseMerge(text)
		}
		return err
	}
	var pair []string
	if err = json.Unmarshal(data, &pair); err == nil && (len(pair) != 2 || pair[0] == "" || pair[1] == "") {
		err = fmt.Errorf("merge %q is not two pieces", pair)
	}
	if err == nil {
		*m = mergeRule(pair)
	}
	return err
}
