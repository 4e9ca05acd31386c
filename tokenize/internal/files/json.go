package files

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
	TokenizerJSON    = "tokenizer.json"
	TokenizerConfig  = "tokenizer_config.json"
	SpecialTokensMap = "special_tokens_map.json"
	Config           = "config.json"
	VocabTxt         = "vocab.txt"
	VocabJSON        = "vocab.json"
	MergesTxt        = "merges.txt"
)

// ReadJSON decodes an optional file into into. It reports whether the file exists.
func ReadJSON(fsys fs.FS, file string, into any) (bool, error) {
	data, err := fs.ReadFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tokenize: %w", err)
	}
	if !utf8.Valid(data) { // encoding/json would silently replace invalid bytes
		return false, &tokenize.Error{File: file, Err: errors.New("not UTF-8")}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, &tokenize.Error{File: file, Err: err}
	}
	return true, nil
}

// Missing returns the error for a folder without a vocabulary file. It matches fs.ErrNotExist.
func Missing(first, second string) error {
	return fmt.Errorf("tokenize: no vocabulary: found neither %s nor %s: %w", first, second, fs.ErrNotExist)
}

// Typed is the type field of a component in tokenizer.json.
type Typed struct {
	Type string `json:"type"`
}

// TokenName is the content of a special token: a JSON string, or an object with the key "content".
type TokenName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *TokenName) UnmarshalJSON(data []byte) error {
	var object struct{ Content string }
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &object)
		*n = TokenName(object.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(n))
}

// SmallestLength returns the smallest length that is at least 1 and fits in 32 bits, or 0 if there is
// none. Some files write 1e30 for no limit.
func SmallestLength(lengths ...float64) int {
	least := 0
	for _, l := range lengths {
		if l >= 1 && l <= math.MaxInt32 && (least == 0 || int(l) < least) {
			least = int(l)
		}
	}
	return least
}
