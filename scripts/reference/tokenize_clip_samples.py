"""Lines for the CLIP tokenizer's fixtures, beside those in tokenize_samples.py, and random ones."""

from tokenize_samples import HARD, PLAIN, random_line

SOT, EOT = "<|startoftext|>", "<|endoftext|>"

CAPTIONS = [
    "a photo of a fox", "this is a test string of text", "A photo of a small red panda, asleep in a tree.",
    "an oil painting of two ships in a storm", "a close-up of a hand holding a smartphone", "the man's dog and the dogs' man",
    "a black and white photo of the city at night", "people walking on the beach at sunset", "3 cats & 12 dogs @ the park!!!",
    "emoji of a smiling face with heart-eyes", "a bad photo of the airplane", "a rendering of a snowman", "flag: France 🇫🇷",
    "trending on artstation, 4k, hdr, highly detailed", "graffiti of a t-rex, photo-realistic", "it's what they've said we'll do: I'd go, you're late, I'm not",
]

CLIP_HARD = [
    # Contractions, in both cases, after everything, and only nearly.
    "don't DON'T don'T", "'s's't're've'm'll'd", "a's b'S c'ſ d'ſ", "''s '''t '_'m", "rock'n'roll 'twas o'clock", "we'lll they'rent 'mad 'd", "x'  s", "\u2019s it\u2019s", "!'s ?'t .'re",
    # Digits one by one, of many scripts; letters and numbers that meet.
    "2024 3.14 1e10 a1b2", "x² ½ Ⅷ ①②③ ㉈ 〇 ١٢٣ १२३ 𝟘𝟙 𐄇", "A4 b52's 7's", "九 三十",
    # Punctuation runs and marks, which are neither letter nor number.
    "!!!???...", "<<>>||<|", "a\u0301! \u0301!\u0301", "q\u0308\u0301\u0323z", "é́é", "…—„“", "a_b__c", "#@$%^&*()[]{}", "¿¡", "‽⸘",
    # What canonical composition joins, reorders and leaves.
    "cafe\u0301 cafe\u0323\u0301 e\u0301\u0323", "A\u030a \u212b K \u212a \u2126", "\u1100\u1161\u11a8 \u1100\u1161 가\u11a8", "\u0958 \u0915\u093c", "\u1e9b\u0323", "q\u0307\u0323 q\u0323\u0307",
    "\u0344 a\u0344 e\u0344\u0323", "\u0308\u0301", "\u0f71\u0f72 \u0f73 \u0f76", "\U0001d15e \U0001d160\U0001d165", "\u09c7\u09be \u0bc6\u0bbe \u1b05\u1b35", "\u0dd9\u0dcf\u0dca",
    "a" + "\u0301\u0323" * 20, "e\u0301" * 40, "\u2000\u2001x\u2002", "\U00011131\U00011127 \U00011935\U00011930 \U00011347\U0001133e", "\u0061\u0315\u0300\u05ae\u0062", "\u03b9\u0308\u0301 \u1fd3 \u0390",
    "\u304b\u3099\u304b\u0300\u3099", "\u2adc \u2add\u0338", "\u226e <\u0338 =\u0338 \u2260", "\u0340\u0341\u0343 \u0374 \u037e \u0387", "\ufb1d\ufb2a\ufb4e", "\uf900\ufa0e\U0002f804",
    # Case.
    "İİ I\u0307 ı ŞİŞLİ", "ΣΑΣ Σ ς", "ẞ ß ŉ ǰ", "ǅ Ǆ ᾈ ᾼ", "ＡＢＣ ａｂｃ", "𝐀𝓑 𐐀 Ⓐ Ⅻ", "ꭰ Ꭰ ᏸ", "Ა ა",
    # White space of all kinds and what only looks like it.
    "a\tb\nc\r\nd\x0be\x0cf\x1cg\x1dh\x1ei\x1fj\x85k", "a\u00a0b\u1680c\u2009d\u2028e\u2029f\u202fg\u205fh\u3000i", "a\u180eb\u200bc\u2060d\ufeffe", "   lead and trail   ", " \t ", "\u3000",
    "a\x00b\x01c\x7fd\x80e", "\ufffd\ufffe\U0010ffff", "\u061c\u202ex\u202c", "\ue000\U000f0000",
    # Emoji.
    "😀😃😄", "👨\u200d👩\u200d👧\u200d👦!", "🏴\U000e0067\U000e0062\U000e007f", "☺\ufe0f1\ufe0f\u20e3", "a😀b😀 😀's", "🫠🫨\U0001fae9",
    # Special tokens in the text: whole, in part, in other cases, beside everything.
    SOT, EOT, f"{SOT}{EOT}", f"a{SOT}b{EOT}c", f" {SOT} x {EOT} ", "<|STARTOFTEXT|> <|EndOfText|>", "<|startoftext |> <|startoftext|", "|>startoftext<|", f"!{SOT}! !{EOT}!", f"<{SOT}> <{EOT}>",
    "!<|ENDOFTEXT|>!'s", "<|ENDOFTEXT|>'s", "<|ENDOFTEXT|>!! <|ENDOFTEXT|><|ENDOFTEXT|>", "<|\u212aENDOFTEXT|>", "<|\u017ftartoftext|>", f"e{SOT}\u0301 e{EOT}\u0301", f"{EOT}\u0301", "<|startoftex\u0301t|>", "</w> a</w>b <w> w>",
    "<NEW> <new> <New>x<ne\u0301w> <new", "<unk> <s> </s> <S></S>", "Ġ Ċ Ā ā ń", "&lt;b&gt; &amp;amp; &#39;",
    # Long words.
    "a" * 300, "ab" * 200 + " " + "the" * 100, "!?" * 150, "é" * 120, "antidisestablishmentarianism" * 3, "ing" * 60, "x" * 77 + "y", "漢字" * 60, "😀" * 30,
]

_ALPHABET = (
    list("aaeeiinnooststhrd   ''.,!<|>_-ABEST019") + list("éÉüßİıǅﬁ한국각가語漢😀👩ΣςÅ²½٣") + ["'s", "'re", "'LL", "the", "ing", "photo", " a ", "<new>"]
    + [SOT, EOT, SOT.upper(), EOT.upper(), "<|", "|>", "</w>", "\u0301", "\u0323", "\u0344", "\u0308", "\u0327", "\u0345", "\u0338", "\u3099", "\u094d", "\u0f73", "\u0f71"]
    + [chr(c) for c in (0x0, 0x9, 0xA, 0x1C, 0x85, 0xA0, 0xAD, 0x180E, 0x200B, 0x200D, 0x2028, 0x3000, 0xFE0F, 0xFFFD, 0xE001, 0x378)]
    + [chr(c) for c in (0x1100, 0x1161, 0x11A8, 0x11A7, 0xAC00, 0x212A, 0x212B, 0x2126, 0x1E69, 0x958, 0x915, 0x93C, 0x9C7, 0x9BE, 0xDD9, 0xDCF, 0xDCA, 0x1B05, 0x1B35)]
    + [chr(c) for c in (0x1D15E, 0x1D165, 0x11935, 0x11930, 0x11938, 0x11347, 0x1133E, 0x16FF0, 0x11F41, 0x10D50, 0x1C89, 0xA7CB, 0x1E4EE, 0x10EFD, 0x113C2, 0x113C9)]
)


def random_clip_line(rng):
    """Mostly of the alphabet above; one in eight with any character at all, one in eight BERT's."""
    kind = rng.random()
    if kind < 0.125:
        return random_line(rng)
    made = []
    for _ in range(rng.randrange(1, 30)):
        c = rng.choice(_ALPHABET)
        if kind < 0.25 and rng.random() < 0.5:
            c = chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x20000)]))
        made.append(c)
    return "".join(made)


def hard_lines():
    return CAPTIONS + CLIP_HARD + HARD


def plain_lines():
    return PLAIN + CAPTIONS
