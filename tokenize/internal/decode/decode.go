// Package decode implements the decoders of tokenizer.json, which join pieces into text.
package decode

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Func rewrites a list of pieces. The decoded text is the concatenation of its result.
type Func func(pieces []string) []string

// Text returns the decoded text of pieces.
func (f Func) Text(pieces []string) string { return strings.Join(f(pieces), "") }

// Read returns the decoder described by data, the value of "decoder". A missing decoder joins pieces
// with spaces. The clean-up option of WordPiece, which removes spaces before punctuation, is ignored
// because it loses information.
func Read(data json.RawMessage) (Func, error) {
	if len(data) == 0 || string(data) == "null" {
		return func(pieces []string) []string { return []string{strings.Join(pieces, " ")} }, nil
	}
	var d struct {
		files.Typed
		Decoders    []json.RawMessage `json:"decoders"`
		Prefix      string            `json:"prefix"`
		Suffix      string            `json:"suffix"`
		Replacement string            `json:"replacement"`
		Scheme      string            `json:"prepend_scheme"`
		PrefixSpace *bool             `json:"add_prefix_space"`
		Pattern     files.Pattern     `json:"pattern"`
		Content     string            `json:"content"`
		Start       int               `json:"start"`
		Stop        int               `json:"stop"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	switch d.Type {
	case "Sequence":
		var list []Func
		for _, data := range d.Decoders {
			f, err := Read(data)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return func(pieces []string) []string {
			for _, f := range list {
				pieces = f(pieces)
			}
			return pieces
		}, nil
	case "WordPiece":
		return func(pieces []string) []string { return wordPiece(pieces, d.Prefix) }, nil
	case "ByteLevel":
		return byteLevel, nil
	case "Metaspace":
		never := d.Scheme == "never" || d.PrefixSpace != nil && !*d.PrefixSpace
		return func(pieces []string) []string { return metaspace(pieces, d.Replacement, never) }, nil
	case "BPEDecoder":
		return func(pieces []string) []string { return suffixed(pieces, d.Suffix) }, nil
	case "Fuse":
		return func(pieces []string) []string { return []string{strings.Join(pieces, "")} }, nil
	case "ByteFallback":
		return byteFallback, nil
	case "Replace":
		if d.Pattern.String == "" {
			return nil, files.Unsupported("decoder Replace with a regular expression")
		}
		return each(func(p string) string { return strings.ReplaceAll(p, d.Pattern.String, d.Content) }), nil
	case "Strip":
		return each(func(p string) string {
			for range d.Start {
				p = strings.TrimPrefix(p, d.Content)
			}
			for range d.Stop {
				p = strings.TrimSuffix(p, d.Content)
			}
			return p
		}), nil
	}
	return nil, files.Unsupported("decoder %s", d.Type)
}

func each(f func(string) string) Func {
	return func(pieces []string) []string {
		out := make([]string, len(pieces))
		for i, p := range pieces {
			out[i] = f(p)
		}
		return out
	}
}

// wordPiece inserts spaces between words. A continuation piece at the start keeps its prefix.
func wordPiece(pieces []string, prefix string) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		if rest, ok := strings.CutPrefix(p, prefix); i == 0 || ok {
			if ok && i > 0 {
				p = rest
			}
			out[i] = p
		} else {
			out[i] = " " + p
		}
	}
	return out
}

// byteLevel maps characters back to bytes.
func byteLevel(pieces []string) []string {
	var data []byte
	for _, p := range pieces {
		data = aligned.AppendBytes(data, p)
	}
	return []string{aligned.Lossy(data)}
}

// metaspace replaces marks by spaces. Marks of the first piece are removed, unless the tokenizer adds
// none (never).
func metaspace(pieces []string, mark string, never bool) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		space := " "
		if i == 0 && !never {
			space = ""
		}
		out[i] = strings.ReplaceAll(p, mark, space)
	}
	return out
}

// suffixed replaces the word-end suffix by a space, except at the end of the text.
func suffixed(pieces []string, suffix string) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		space := " "
		if i == len(pieces)-1 {
			space = ""
		}
		out[i] = strings.ReplaceAll(p, suffix, space)
	}
	return out
}

// byteFallback joins runs of pieces "<0x41>" to text. Where the bytes are not UTF-8 each becomes
// U+FFFD.
func byteFallback(pieces []string) (out []string) {
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			for range run {
				out = append(out, "\ufffd")
			}
		}
		run = run[:0]
	}
	for _, p := range pieces {
		if len(p) == 6 && strings.HasPrefix(p, "<0x") && p[5] == '>' {
			if b, err := strconv.ParseUint(p[3:5], 16, 8); err == nil {
				run = append(run, byte(b))
				continue
			}
		}
		flush()
		out = append(out, p)
	}
	flush()
	return out
}
