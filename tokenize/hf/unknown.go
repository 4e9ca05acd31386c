package hf

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
)

// Unknown reports the tokens of a text that the vocabulary lacks: a model sees the same id for each of them.
type Unknown struct {
	// Tokens is the number of unknown tokens, of Of tokens that are not special.
	Tokens, Of int
	// First is what the first of them stands for in the text.
	First string
	// Cause says why it is likely unknown, and what to do.
	Cause string
}

// Unknown returns nil if the vocabulary has all tokens of text; tokens must be its encoding.
func (t *Tokenizer) Unknown(text string, tokens []tokenize.Token) *Unknown {
	u := &Unknown{}
	for _, k := range tokens {
		if k.Special {
			continue
		}
		u.Of++
		if k.ID != t.Unk {
			continue
		}
		if u.Tokens++; u.Tokens == 1 {
			u.First = strings.TrimSpace(text[k.Start:k.End])
			u.Cause = t.cause(u.First)
		}
	}
	if u.Tokens == 0 {
		return nil
	}
	return u
}

// Most reports whether the text is four fifths unknown, so that a model says nothing about it.
func (u *Unknown) Most() bool { return 5*u.Tokens >= 4*u.Of }

// Error implements error.
func (u *Unknown) Error() string {
	first := []rune(u.First)
	if len(first) > 20 {
		first = append(first[:17], '.', '.', '.')
	}
	return fmt.Sprintf("the model does not know %d of %d tokens, such as %q: %s", u.Tokens, u.Of, string(first), u.Cause)
}

// cause says why the vocabulary lacks a word.
func (t *Tokenizer) cause(word string) string {
	read := aligned.String(t.normalize(aligned.Of(word, 0)))
	lacks := func(word, prefix string) (string, bool) {
		for _, r := range word {
			if _, ok := t.ids[prefix+string(r)]; !ok {
				return string(r), true
			}
		}
		return "", false
	}
	_, capitals := lacks(word, "")
	letter, unknown := lacks(read, "")
	_, inside := lacks(read, "##")
	_, lower := t.ids[strings.ToLower(word)]
	switch {
	case !capitals && unknown:
		return `the tokenizer lower-cases, but the vocabulary has capitals; write {"do_lower_case": false} into tokenizer_config.json`
	case !unknown && inside && utf8.RuneCountInString(word) > 1:
		return "the vocabulary has single letters; put spaces between them"
	case lower && word == read:
		return `the vocabulary has it in lower case; write {"do_lower_case": true} into tokenizer_config.json`
	case unknown:
		return fmt.Sprintf("the vocabulary has no %q", letter)
	}
	return "the vocabulary has neither it nor its parts"
}
