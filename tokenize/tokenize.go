// Package tokenize maps text to the ids of a model's vocabulary and back.
//
// Each sub-package implements one family of tokenizers. They read the files of models on the Hugging
// Face hub. Ids, offsets and decoded texts equal those of Hugging Face's tokenizers library, which
// produced the test fixtures.
//
// Offsets are byte positions in the input text. A token covers the characters that it was made from, so
// two tokens can share a character. A character removed by normalization belongs to no token.
//
// Truncation, padding and text pairs are not implemented. Encode does not add special tokens around a
// text.
package tokenize

// Token is a vocabulary id and the bytes [Start, End) of the text that it covers.
type Token struct {
	ID         int32
	Start, End int
	Special    bool // a special token spelled out in the text; the [UNK] of an unknown word is not Special
}

// Tokenizer maps text to vocabulary ids and back. Implementations are safe for concurrent use.
type Tokenizer interface {
	// Encode returns the tokens of text, without the special tokens that a model expects around it. It
	// returns an *Error if text is not valid UTF-8.
	Encode(text string) ([]Token, error)
	// Decode returns the text of ids. It skips special tokens and ids out of range.
	Decode(ids []int32) string
	// Size returns the number of ids, which run from 0 to Size()-1.
	Size() int
	// Piece returns the vocabulary entry of id, or "" if id is out of range.
	Piece(id int32) string
	// ID returns the id of a vocabulary entry, and whether it exists.
	ID(piece string) (int32, bool)
}
