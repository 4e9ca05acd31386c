package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// The files of a CLIP folder besides those that BERT has too.
const (
	vocabJSONFile = "vocab.json"
	mergesFile    = "merges.txt"
	specialsFile  = "special_tokens_map.json"
)

// The special tokens of CLIP where the files do not name them.
const (
	clipSOT = "<|startoftext|>"
	clipEOT = "<|endoftext|>"
)

// clipFiles is what a folder says about its tokenizer. The vocabulary has sot, eot, pad and unk,
// the last unless it is empty.
type clipFiles struct {
	vocab         vocabulary
	merges        [][2]string
	mergesFrom    string // the file
	heads         []string
	sot, eot, pad string
	maxLen        int
}

// clipSettings is the part of tokenizer_config.json and special_tokens_map.json that is looked at.
type clipSettings struct {
	MaxLength float64   `json:"model_max_length"`
	BOS       tokenName `json:"bos_token"`
	EOS       tokenName `json:"eos_token"`
	Pad       tokenName `json:"pad_token"`
	Unk       tokenName `json:"unk_token"`
}

func readCLIPFiles(fsys fs.FS) (f clipFiles, err error) {
	var t clipJSON
	var s clipSettings
	var m struct {
		MaxPositions int `json:"max_position_embeddings"`
		Text         struct {
			MaxPositions int `json:"max_position_embeddings"`
		} `json:"text_config"`
	}
	hasTokenizer, err := readJSON(fsys, tokenizerFile, &t)
	// What tokenizer_config.json says overrides special_tokens_map.json.
	for _, o := range []struct {
		file string
		into any
	}{{specialsFile, &s}, {settingsFile, &s}, {modelFile, &m}} {
		if err == nil {
			_, err = readJSON(fsys, o.file, o.into)
		}
	}
	if err != nil {
		return f, err
	}
	if hasTokenizer {
		f.mergesFrom = tokenizerFile
		err = t.read(&f)
	} else {
		f.mergesFrom = mergesFile
		f.vocab, f.merges, err = readVocabAndMerges(fsys)
		f.vocab.unk = s.Unk.or(clipEOT)
	}
	if err != nil {
		return f, err
	}
	f.sot, f.eot = tokenName(f.sot).or(s.BOS.or(clipSOT)), tokenName(f.eot).or(s.EOS.or(clipEOT))
	f.pad = s.Pad.or(f.eot)
	f.maxLen = smallestLength(float64(m.MaxPositions), float64(m.Text.MaxPositions), s.MaxLength)
	return f, f.check(!hasTokenizer)
}

// check reports names that the vocabulary lacks, and adds SOT and EOT to the added tokens where the
// files do not: transformers does so, to the normalised text where it has no tokenizer.json.
func (f *clipFiles) check(normalized bool) error {
	if err := f.vocab.check(); err != nil {
		return err
	}
	all := f.vocab.all()
	for _, name := range []string{f.sot, f.eot, f.pad, f.vocab.unk} {
		if _, ok := all[name]; !ok && name != "" {
			return &MissingPieceError{f.vocab.file, name}
		}
	}
	if _, ok := f.vocab.ids[f.vocab.unk]; !ok && f.vocab.unk != "" {
		return &MissingPieceError{f.vocab.file, f.vocab.unk} // an added token is no help to BPE
	}
	if f.sot == f.eot {
		return &FormatError{File: f.vocab.file, Err: fmt.Errorf("%q both starts and ends a text", f.sot)}
	}
	for _, name := range []string{f.sot, f.eot} {
		found := false
		for i := range f.vocab.added {
			if t := &f.vocab.added[i]; t.Content == name {
				t.Special, found = true, true
			}
		}
		if !found {
			f.vocab.added = append(f.vocab.added, addedToken{ID: all[name], Content: name, Special: true, Normalized: normalized})
		}
	}
	return nil
}

// readVocabAndMerges reads the two files that stand for tokenizer.json.
func readVocabAndMerges(fsys fs.FS) (v vocabulary, merges [][2]string, err error) {
	var ids pieceIDs
	found, err := readJSON(fsys, vocabJSONFile, &ids)
	if err != nil {
		return v, nil, err
	}
	if !found {
		return v, nil, &MissingFileError{[]string{tokenizerFile, vocabJSONFile}}
	}
	data, err := fs.ReadFile(fsys, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil, &MissingFileError{[]string{tokenizerFile, mergesFile}}
	}
	if err != nil {
		return v, nil, fmt.Errorf("tokenize: %w", err)
	}
	merges, err = parseMergesTxt(data)
	return vocabulary{file: vocabJSONFile, ids: ids}, merges, err
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
			return nil, &FormatError{mergesFile, i + 1, err}
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
