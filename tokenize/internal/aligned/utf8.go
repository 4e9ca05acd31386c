package aligned

import (
	"errors"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
)

// CheckUTF8 returns a *tokenize.Error at the first byte of text that is not valid UTF-8, else nil.
func CheckUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i := 0; ; {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return &tokenize.Error{Offset: i, Err: errors.New("text is not UTF-8")}
		}
		i += size
	}
}
