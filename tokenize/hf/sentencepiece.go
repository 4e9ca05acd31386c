package hf

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gradhop/gradhop/tokenize"
	"github.com/gradhop/gradhop/tokenize/internal/files"
	"github.com/gradhop/gradhop/tokenize/internal/model"
)

// sentencePiece holds the fields of a SentencePiece model that a tokenizer needs. Field numbers follow
// sentencepiece_model.proto.
type sentencePiece struct {
	pieces   []scored
	unk      int32
	charsmap []byte
	kind     uint64 // 1 is Unigram
}

// scored is a piece, its score and its type: 3 is a control piece, 4 a user-defined one.
type scored struct {
	piece string
	score float64
	kind  uint64
}

// deberta returns the tokenizer of DeBERTa-v3, whose repositories contain a SentencePiece model only.
func deberta(file string, data []byte, s *settings) (*pipeline, error) {
	m, err := parseSentencePiece(data)
	if err != nil {
		return nil, &tokenize.Error{File: file, Err: err}
	}
	if m.kind != 1 {
		return nil, tokenize.Unsupported(file, "a SentencePiece model other than Unigram")
	}
	c := &pipeline{file: file}
	v := files.Vocabulary{File: file, IDs: files.PieceIDs{}}
	vocab := make([][2]any, len(m.pieces))
	for id, p := range m.pieces {
		vocab[id] = [2]any{p.piece, p.score}
		if err := v.IDs.Add(p.piece, int32(id)); err != nil {
			return nil, &tokenize.Error{File: file, Err: err}
		}
		if p.kind == 3 || p.kind == 4 {
			c.Added = append(c.Added, files.AddedToken{ID: int32(id), Content: p.piece, Special: p.kind == 3})
		}
	}
	mask := s.or("mask_token", "[MASK]")
	if !v.IDs.Has(mask) { // transformers appends it to the vocabulary
		id := int32(len(m.pieces))
		v.IDs[mask] = id
		c.Added = append(c.Added, files.AddedToken{ID: id, Content: mask, Special: true})
	}
	err = s.specials(v, map[string]string{"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": mask})
	if err != nil {
		return nil, err
	}
	unk := s.tokens["unk_token"]
	c.Added = append(c.Added, files.AddedToken{ID: v.IDs[unk], Content: unk, Special: true, Normalized: true})
	var normalizers, splits []any
	if string(s.given["do_lower_case"]) == "true" {
		normalizers = append(normalizers, object{"type": "Lowercase"})
	}
	normalizers = append(normalizers, object{"type": "Strip", "strip_left": true, "strip_right": true})
	if len(m.charsmap) > 0 {
		normalizers = append(normalizers, object{"type": "Precompiled", "precompiled_charsmap": m.charsmap})
	}
	normalizers = append(normalizers, object{"type": "Replace", "pattern": object{"Regex": " {2,}"}, "content": " "})
	if string(s.given["split_by_punct"]) == "true" {
		splits = append(splits, object{"type": "Punctuation"})
	}
	metaspace := object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
	c.Normalizer = raw(object{"type": "Sequence", "normalizers": normalizers})
	c.PreTokenizer = raw(object{"type": "Sequence", "pretokenizers": append(splits, metaspace)})
	c.PostProcessor = raw(around(v.IDs, s.tokens["cls_token"], s.tokens["sep_token"]))
	c.Decoder = raw(metaspace)
	c.Model = model.Spec{Typed: files.Typed{Type: "Unigram"}, UnkID: &m.unk, Vocab: raw(vocab)}
	return c, nil
}

// parseSentencePiece decodes a ModelProto message.
func parseSentencePiece(data []byte) (m sentencePiece, err error) {
	m.kind = 1
	err = fields(data, func(number protowire.Number, value []byte, n uint64) error {
		switch number {
		case 1:
			p := scored{kind: 1}
			err := fields(value, func(number protowire.Number, value []byte, n uint64) error {
				switch number {
				case 1:
					p.piece = string(value)
				case 2:
					p.score = float64(math.Float32frombits(uint32(n)))
				case 3:
					p.kind = n
				}
				return nil
			})
			if math.IsNaN(p.score) || math.IsInf(p.score, 0) || !utf8.ValidString(p.piece) {
				err = fmt.Errorf("piece %d, %q, has the score %v or is not UTF-8", len(m.pieces), p.piece, p.score)
			}
			m.pieces = append(m.pieces, p)
			return err
		case 2: // trainer settings
			return fields(value, func(number protowire.Number, _ []byte, n uint64) error {
				switch number {
				case 3:
					m.kind = n
				case 40:
					m.unk = int32(n)
				}
				return nil
			})
		case 3: // normalizer settings
			return fields(value, func(number protowire.Number, value []byte, _ uint64) error {
				if number == 2 {
					m.charsmap = value
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && len(m.pieces) == 0 {
		err = errors.New("no pieces")
	}
	return m, err
}

// fields calls field for every field of a message, with its bytes or its integer value.
func fields(data []byte, field func(number protowire.Number, value []byte, n uint64) error) error {
	for len(data) > 0 {
		number, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("not a SentencePiece model: %w", protowire.ParseError(size))
		}
		data = data[size:]
		var value []byte
		var n uint64
		switch kind {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var bits uint32
			bits, size = protowire.ConsumeFixed32(data)
			n = uint64(bits)
		default:
			size = protowire.ConsumeFieldValue(number, kind, data)
		}
		if size < 0 {
			return fmt.Errorf("not a SentencePiece model: %w", protowire.ParseError(size))
		}
		if err := field(number, value, n); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}
