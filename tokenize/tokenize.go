// Package tokenize turns text into the integer codes of a model's vocabulary and back.
//
// BERT is WordPiece and CLIP is byte-level BPE as the Hugging Face tokenizers library runs them, from
// the files that models on its hub ship: tokenizer.json, or vocab.txt (BERT), or vocab.json with
// merges.txt (CLIP), and the optional tokenizer_config.json and config.json.
// Ids, offsets and decoded texts equal the library's, character for character; the fixtures in
// testdata come from it.
//
// The words of BERT are split by github.com/sugarme/tokenizer. CLIP's merges are done here: that
// library does not append the suffix of a word's end, and offsets must be exact where composition
// changes the text.
//
// BERT's steps, in the library's order (CLIP's are with its type):
//
//  1. Literal special tokens ("[MASK]") are cut out of the raw text; what lies between them goes on.
//  2. clean_text: control characters go, every white space becomes a blank.
//  3. tokenize_chinese_chars: an ideograph gets a blank on either side.
//  4. strip_accents (unset: as do_lower_case): canonical decomposition, then nonspacing marks go.
//  5. do_lower_case: character by character.
//  6. Words are split at white space, which goes, and at punctuation, which stands alone.
//  7. WordPiece: the longest piece that fits from the left; a word that cannot be split is [UNK].
//
// Offsets are bytes of the text that was passed in. A token covers the characters it was made from,
// so two tokens may share a character (the letters of one Hangul syllable can), and a removed
// character or accent at a word's end belongs to none.
//
// Not here: truncation, padding, pairs of texts, adding [CLS] and [SEP], and the clean-up of blanks
// before punctuation when decoding.
package tokenize

// Token is one piece of a text: its vocabulary id and the bytes [Start, End) of the text it covers.
type Token struct {
	ID         int32
	Start, End int
	Special    bool // a special token that stood in the text literally; the [UNK] of an unknown word is not
}

// Tokenizer maps text to vocabulary ids and back. Implementations are safe for concurrent use.
type Tokenizer interface {
	// Encode returns the tokens of text, without the tokens that models want around it.
	// The only errors are *EncodingError and, should the piece splitter fail, *ModelError.
	Encode(text string) ([]Token, error)
	// Decode joins the pieces of ids to words and the words by single blanks.
	// Special tokens and ids that are out of range are left out.
	Decode(ids []int32) string
	// Size is the number of ids, 0 to Size()-1: the rows that a model's embedding must have.
	Size() int
	// Piece is the vocabulary entry of id, "" when id is out of range.
	Piece(id int32) string
	// ID is the id of a vocabulary entry.
	ID(piece string) (int32, bool)
}

// RoundTrip decodes ids and encodes the text again. It returns the text, and whether its tokens are
// ids: if not, a model that reads the text sees something else than one that was given ids.
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
