// Package normalize implements the normalizers of tokenizer.json.
package normalize

import (
	"encoding/json"
	"slices"
	"unicode"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Func returns the normalized text. It may reuse the memory of its argument.
type Func func([]aligned.Char) []aligned.Char

// Sequence returns the composition of the functions of list, applied in order.
func Sequence(list []Func) Func {
	return func(chars []aligned.Char) []aligned.Char {
		for _, f := range list {
			if len(chars) > 0 {
				chars = f(chars)
			}
		}
		return chars
	}
}

// Read returns the normalizer described by data, the value of "normalizer". If data is missing, the
// text is unchanged.
func Read(data json.RawMessage) (Func, error) {
	list, err := read(data)
	return Sequence(list), err
}

func read(data json.RawMessage) (list []Func, err error) {
	var n struct {
		files.Typed
		Normalizers []json.RawMessage `json:"normalizers"`
		StripLeft   bool              `json:"strip_left"`
		StripRight  bool              `json:"strip_right"`
		Prepend     string            `json:"prepend"`
		Pattern     files.Pattern     `json:"pattern"`
		Content     string            `json:"content"`
		Charsmap    []byte            `json:"precompiled_charsmap"`
	}
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, err
	}
	var f Func
	switch n.Type {
	case "Sequence":
		for _, d := range n.Normalizers {
			more, err := read(d)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		return list, nil
	case "BertNormalizer":
		var b BERT
		err = json.Unmarshal(data, &b)
		f = b.Normalize
	case "NFC":
		f = aligned.NFC
	case "NFD":
		f = aligned.NFD
	case "NFKC":
		f = aligned.NFKC
	case "NFKD":
		f = aligned.NFKD
	case "Lowercase":
		f = aligned.Lower
	case "StripAccents":
		f = func(chars []aligned.Char) []aligned.Char { return aligned.Remove(chars, aligned.Mark) }
	case "Strip":
		f = func(chars []aligned.Char) []aligned.Char { return strip(chars, n.StripLeft, n.StripRight) }
	case "Prepend":
		f = func(chars []aligned.Char) []aligned.Char { return aligned.Prepend(chars, n.Prepend) }
	case "Replace":
		f, err = replace(n.Pattern, n.Content)
	case "Precompiled":
		var m *charsmap
		m, err = parseCharsmap(n.Charsmap)
		f = func(chars []aligned.Char) []aligned.Char { return m.normalize(chars) }
	default:
		return nil, files.Unsupported("normalizer %s", n.Type)
	}
	return []Func{f}, err
}

// strip removes leading or trailing white space.
func strip(chars []aligned.Char, left, right bool) []aligned.Char {
	for left && len(chars) > 0 && unicode.IsSpace(chars[0].R) {
		chars = chars[1:]
	}
	for right && len(chars) > 0 && unicode.IsSpace(chars[len(chars)-1].R) {
		chars = chars[:len(chars)-1]
	}
	return chars
}

// replace replaces every match of a pattern by content, which has the offsets of the last character of
// the match.
func replace(p files.Pattern, content string) (Func, error) {
	find, err := p.Compile()
	if err != nil {
		return nil, err
	}
	insert := []rune(content)
	return func(chars []aligned.Char) []aligned.Char {
		var out []aligned.Char
		last := 0
		for _, m := range find(chars) {
			out = append(out, chars[last:m[0]]...)
			for _, r := range insert {
				out = append(out, aligned.Char{R: r, Start: chars[m[1]-1].Start, End: chars[m[1]-1].End})
			}
			last = m[1]
		}
		if last == 0 {
			return chars
		}
		return append(out, chars[last:]...)
	}, nil
}

// BERT is the normalizer of BERT.
type BERT struct {
	Clean        bool  `json:"clean_text"`           // remove control characters; white space becomes a space
	Ideographs   bool  `json:"handle_chinese_chars"` // put spaces around them
	StripAccents *bool `json:"strip_accents"`        // nil: same as Lowercase
	Lowercase    bool  `json:"lowercase"`
}

// UnmarshalJSON implements json.Unmarshaler. Missing fields are true.
func (b *BERT) UnmarshalJSON(data []byte) error {
	type plain BERT
	p := plain{Clean: true, Ideographs: true, Lowercase: true}
	err := json.Unmarshal(data, &p)
	*b = BERT(p)
	return err
}

// Normalize implements Func.
func (b BERT) Normalize(chars []aligned.Char) []aligned.Char {
	out := make([]aligned.Char, 0, len(chars))
	ascii := true
	for _, c := range chars {
		if b.Clean {
			if aligned.Dropped.Has(c.R) {
				continue
			}
			if unicode.IsSpace(c.R) {
				c.R = ' '
			}
		}
		ascii = ascii && c.R < 0x80
		if b.Ideographs && aligned.Ideograph.Has(c.R) {
			space := c
			space.R = ' '
			out = append(out, space, c, space)
			continue
		}
		out = append(out, c)
	}
	stripAccents := b.Lowercase
	if b.StripAccents != nil {
		stripAccents = *b.StripAccents
	}
	if stripAccents && !ascii {
		out = aligned.Remove(aligned.NFD(out), aligned.Accent)
	}
	if b.Lowercase {
		out = aligned.Lower(out)
	}
	return slices.Clip(out)
}
