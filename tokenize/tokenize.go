// Package tokenize maps text to the ids of a model's vocabulary and back.
//
// The sub-packages hold one family of tokenizers each. They read the files that models on the Hugging
// Face hub ship. Ids, offsets and decoded texts equal those of Hugging Face's tokenizers library;
// the test fixtures come from it.
//
// Offsets are bytes of the text that was passed in. A token covers the characters it was made from,
// so two tokens can share a character. A character that normalization removes belongs to no token.
//
// Truncation, padding and pairs of texts are not implemented. Encode does not add the special tokens
// around a text.
package tokenize

// Token is one piece of a text: its vocabulary id and the bytes [Start, End) of the text it covers.
type Token struct {
	ID         int32
	Start, End int
	Special    bool // a special token that the text spells out; the [UNK] of an unknown word is not
}

// Tokenizer maps text to vocabulary ids and back. Implementations are safe for concurrent use.
type Tokenizer interface {
	// Encode returns the tokens of text, without the special tokens that a model expects around it.
	// Text that is not UTF-8 is an *Error.
	Encode(text string) ([]Token, error)
	// Decode returns the text of ids. Special tokens and ids out of range are left out.
	Decode(ids []int32) string
	// Size is the number of ids, 0 to Size()-1: the rows that a model's embedding must have.
	Size() int
	// Piece is the vocabulary entry of id, "" when id is out of range.
	Piece(id int32) string
	// ID is the id of a vocabulary entry.
	ID(piece string) (int32, bool)
}

// RoundTrip decodes ids and encodes the text again. It returns the text, and whether its tokens are
// ids. If not, a model that reads the text sees other tokens than a model that was given ids.
func RoundTrip(t Tokenizer, ids []int32) (text string, same bool) {
	text = t.Decode(ids)
	tokens, err := t.Encode(text)
	if err != nil || len(tokens) != len(ids) {
		return text, false
	}
	for i, k := range tokens {
		if k.ID != ids[i] {
			return text, false
		}
	}
	return text, true
}
