package bert

import (
	"unicode"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// splitWords is step 6: it calls word for each maximal run without white space or punctuation and
// for each punctuation character, in order, until word fails.
func splitWords(chars []aligned.Char, word func([]aligned.Char) error) error {
	start := 0
	flush := func(end int) error {
		if start == end {
			return nil
		}
		return word(chars[start:end])
	}
	for i, c := range chars {
		blank, punct := unicode.IsSpace(c.R), unicode.Is(aligned.Punctuation, c.R)
		if !blank && !punct {
			continue
		}
		if err := flush(i); err != nil {
			return err
		}
		start = i + 1
		if punct {
			if err := word(chars[i : i+1]); err != nil {
				return err
			}
		}
	}
	return flush(len(chars))
}
