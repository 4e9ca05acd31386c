// Package split implements the pre-tokenizers of tokenizer.json, which split a text into words.
package split

import (
	"encoding/json"
	"unicode"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Func splits a text into non-empty words. It may change their characters.
type Func func(text []aligned.Char) [][]aligned.Char

// Sequence returns the composition of the functions of list, each applied to the words of the previous
// one.
func Sequence(list []Func) Func {
	return func(text []aligned.Char) [][]aligned.Char {
		words := [][]aligned.Char{text}
		for _, f := range list {
			var next [][]aligned.Char
			for _, w := range words {
				next = append(next, f(w)...)
			}
			words = next
		}
		return words
	}
}

type component struct {
	files.Typed
	Parts       []json.RawMessage `json:"pretokenizers"`
	Pattern     files.Pattern     `json:"pattern"`
	Behavior    Behavior          `json:"behavior"`
	Invert      bool              `json:"invert"`
	PrefixSpace *bool             `json:"add_prefix_space"`
	UseRegex    *bool             `json:"use_regex"`
	Replacement string            `json:"replacement"`
	Scheme      string            `json:"prepend_scheme"`
	Split       *bool             `json:"split"`
	Individual  bool              `json:"individual_digits"`
}

// Read returns the pre-tokenizer described by data, the value of "pre_tokenizer". If data is missing,
// the text is one word.
func Read(data json.RawMessage) (Func, error) {
	list, err := read(data)
	return Sequence(list), err
}

func read(data json.RawMessage) (list []Func, err error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	var c component
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	isTrue := func(b *bool) bool { return b == nil || *b }
	switch c.Type {
	case "Sequence":
		for _, d := range c.Parts {
			more, err := read(d)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		return list, nil
	case "BertPreTokenizer":
		return []Func{class(unicode.IsSpace, Removed), class(isPunctuation, Isolated)}, nil
	case "WhitespaceSplit":
		return []Func{class(unicode.IsSpace, Removed)}, nil
	case "Whitespace":
		return []Func{class(unicode.IsSpace, Removed), words}, nil
	case "Punctuation":
		if c.Behavior == "" {
			c.Behavior = Isolated
		}
		return []Func{class(isPunctuation, c.Behavior)}, c.Behavior.check()
	case "Digits":
		if c.Individual {
			return []Func{class(isNumber, Isolated)}, nil
		}
		return []Func{class(isNumber, Contiguous)}, nil
	case "Split":
		find, err := c.Pattern.Compile()
		if err == nil {
			err = c.Behavior.check()
		}
		return []Func{func(text []aligned.Char) [][]aligned.Char { return cut(text, find(text), c.Invert, c.Behavior) }}, err
	case "ByteLevel":
		return byteLevel(isTrue(c.PrefixSpace), isTrue(c.UseRegex))
	case "Metaspace":
		if c.PrefixSpace != nil && !*c.PrefixSpace {
			c.Scheme = "never"
		}
		return metaspace(c.Replacement, c.Scheme, isTrue(c.Split))
	}
	return nil, files.Unsupported("pre_tokenizer %s", c.Type)
}

func isPunctuation(r rune) bool { return aligned.Punctuation.Has(r) }
func isNumber(r rune) bool      { return aligned.Number.Has(r) }

func class(is func(rune) bool, b Behavior) Func {
	return func(text []aligned.Char) [][]aligned.Char {
		var found [][2]int
		for i, c := range text {
			if is(c.R) {
				found = append(found, [2]int{i, i + 1})
			}
		}
		return cut(text, found, false, b)
	}
}

// words splits between runs of word characters and runs of other characters.
func words(text []aligned.Char) (out [][]aligned.Char) {
	start := 0
	for i := range text {
		if i > 0 && aligned.Word.Has(text[i].R) != aligned.Word.Has(text[i-1].R) {
			out = append(out, text[start:i])
			start = i
		}
	}
	return append(out, text[start:])
}

// byteLevel splits by the word pattern of GPT-2, prepends a space to a text without one if prefixSpace,
// and maps every byte to a printable character.
func byteLevel(prefixSpace, useRegex bool) ([]Func, error) {
	find, err := files.Pattern{Regex: files.GPT2}.Compile()
	if err != nil {
		return nil, err
	}
	return []Func{func(text []aligned.Char) (out [][]aligned.Char) {
		if prefixSpace && len(text) > 0 && text[0].R != ' ' {
			text = aligned.Prepend(text, " ")
		}
		words := [][]aligned.Char{text}
		if useRegex {
			words = cut(text, find(text), false, Isolated)
		}
		for _, w := range words {
			out = append(out, aligned.ToBytes(w))
		}
		return out
	}}, nil
}

// metaspace replaces spaces by mark, usually "▁", and prepends mark to a text that does not start with
// it: always, only at the start of the source ("first"), or never.
func metaspace(mark, scheme string, split bool) ([]Func, error) {
	runes := []rune(mark)
	if len(runes) != 1 {
		return nil, files.Unsupported("Metaspace with replacement %q", mark)
	}
	isMark := func(r rune) bool { return r == runes[0] }
	switch scheme {
	case "", "always", "first", "never":
	default:
		return nil, files.Unsupported("Metaspace with prepend_scheme %q", scheme)
	}
	list := []Func{func(text []aligned.Char) [][]aligned.Char {
		for i := range text {
			if text[i].R == ' ' {
				text[i].R = runes[0]
			}
		}
		if len(text) > 0 && text[0].R != runes[0] && scheme != "never" && (scheme != "first" || text[0].Start == 0) {
			text = aligned.Prepend(text, mark)
		}
		return [][]aligned.Char{text}
	}}
	if split {
		list = append(list, class(isMark, MergedWithNext))
	}
	return list, nil
}
