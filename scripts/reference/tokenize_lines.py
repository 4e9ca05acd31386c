"""Reference values for the BERT in the Go package tokenize/hf, from Hugging Face's tokenizers library.

    tokenize_lines.py             write tokenize/hf/testdata/bert and tokenize/internal/aligned/classes.json
    tokenize_lines.py --check     regenerate in memory; exit 1 if a file differs
    tokenize_lines.py --full OUT [DIR]
        write a folder for each way to load a tokenizer below OUT: its files and lines.jsonl, one
        JSON line for each of more than 20,000 texts: {"text", "tokens": [[id, start, end]],
        "decoded", "ids", "ids_decoded"}, where ids are random. DIR holds tokenizers/bert-base-uncased
        and infilling/*.5k.txt; without it the vocabulary is the fixtures'.

Offsets are bytes of the UTF-8 text. The library reports characters; byte_offsets converts.
"""

import collections
import hashlib
import json
import pathlib
import random
import shutil

import stored
import tokenizers
from tokenize_samples import HARD, PLAIN, random_line
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

MADE_BY = "scripts/reference/tokenize_lines.py"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENDINGS = ["##s", "##ed", "##ing", "##er", "##ly", "##ness", "##able", "##un", "##ment"]

# Each setting is one BertNormalizer; "uncased" sees every line, the others the hard ones only.
SETTINGS = {
    "uncased": {},
    "cased": {"lowercase": False},
    "cased_stripped": {"lowercase": False, "strip_accents": True},
    "lower_accents": {"strip_accents": False},
    "whole_cjk": {"handle_chinese_chars": False},
    "raw": {"clean_text": False},
}


def normalizer(**changes):
    options = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return normalizers.BertNormalizer(**(options | changes))


def vocabulary(lines):
    """Specials, every character of the lines alone and as a continuation, and frequent words.

    Deterministic on purpose: the library's trainer breaks ties by hash order.
    """
    split = pre_tokenizers.BertPreTokenizer()
    words, characters = collections.Counter(), set()
    for line in lines:
        for setting in ("uncased", "cased", "lower_accents"):
            found = [w for w, _ in split.pre_tokenize_str(normalizer(**SETTINGS[setting]).normalize_str(line))]
            characters.update("".join(found))
            if setting == "uncased":
                words.update(w for w in found if w.isascii() and w.isalpha() and len(w) > 1)
    # A few characters stay out, so that a short word can be unknown as well.
    letters = sorted(c for c in characters if c not in "qŋ😀")
    frequent = sorted(w for w, n in words.items() if n >= 3)
    pieces = SPECIAL + ["[unused0]", "[unused1]"] + letters + ["##" + c for c in letters] + frequent + ENDINGS
    return list(dict.fromkeys(pieces))


def reference(pieces, setting="uncased"):
    model = models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]", max_input_chars_per_word=100)
    tok = Tokenizer(model)
    tok.normalizer = normalizer(**SETTINGS[setting])
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tok.add_special_tokens(SPECIAL)
    return tok


def byte_offsets(text):
    """at[i] is the byte offset of character i."""
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return at


def tokens(tok, text):
    at, enc = byte_offsets(text), tok.encode(text, add_special_tokens=False)
    return [[i, at[s], at[e]] for i, (s, e) in zip(enc.ids, enc.offsets)]


def decodings(tok):
    """Id sequences as a sampler makes them, with the text that the library decodes them to."""
    rng, size = random.Random(3), tok.get_vocab_size()
    rows = [[], [2, 3], [size, 7], [2, 40, 3]]
    rows += [[rng.randrange(size) for _ in range(rng.randrange(1, 12))] for _ in range(40)]
    return [{"ids": ids, "text": tok.decode(ids, skip_special_tokens=True)} for ids in rows]


def characters():
    """All of Unicode but surrogates and the planes 4 to 13, which hold nothing."""
    return (chr(c) for c in range(0x110000) if not (0xD800 <= c < 0xE000 or 0x40000 <= c < 0xE0000))


def rune_blocks():
    """For each 4,096 code points, a hash of what every setting makes of each of them.

    This pins all of Unicode in a few kilobytes: Go's tables are of another Unicode version than the
    three that the reference was built with.
    """
    norms = [normalizer(**SETTINGS[s]) for s in SETTINGS]
    split = pre_tokenizers.BertPreTokenizer()
    blocks = {}
    for c in characters():
        made = [n.normalize_str("a" + c + "\u0334a") for n in norms]
        row = "|".join(made) + f"|{len(split.pre_tokenize_str('a' + c + 'a'))}\n"
        blocks.setdefault(ord(c) >> 12, hashlib.sha256()).update(row.encode())
    return {f"{b:X}": h.hexdigest()[:16] for b, h in blocks.items()}


def ranges(member):
    """Maximal runs of code points for which member(character) holds."""
    runs = []
    for c in filter(member, characters()):
        if runs and ord(c) == runs[-1][1] + 1:
            runs[-1][1] = ord(c)
        else:
            runs.append([ord(c), ord(c)])
    return runs


def runs_file(made_by, classes):
    """JSON with the runs of each class on a line."""
    head = [f'"made_by": {json.dumps(made_by)}', f'"library": "tokenizers {tokenizers.__version__}"', '"classes": {\n']
    return "{\n" + ",\n".join(head) + ",\n".join(f"{json.dumps(name)}: {json.dumps(runs)}" for name, runs in classes.items()) + "\n}}\n"


def tables():
    """The character classes as runs of code points, measured by asking the library about every character."""
    clean = normalizer(handle_chinese_chars=False, strip_accents=False, lowercase=False)
    strip = normalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    cjk = normalizer(clean_text=False, strip_accents=False, lowercase=False)
    nfd, split = normalizers.NFD(), pre_tokenizers.BertPreTokenizer()
    nfkd, marks, word = normalizers.NFKD(), normalizers.StripAccents(), pre_tokenizers.Whitespace()
    classes = {
        "Dropped": lambda c: clean.normalize_str(c) == "",
        "Accent": lambda c: strip.normalize_str(c) == "",
        "Mark": lambda c: marks.normalize_str(c) == "",
        "Word": lambda c: len(word.pre_tokenize_str("a" + c + "a")) == 1,
        "Compatible": lambda c: nfkd.normalize_str(c) != c,
        "Combining": lambda c: c == "\u0345" or nfd.normalize_str("\u0345" + c)[0] != "\u0345",
        "Ideograph": lambda c: cjk.normalize_str(c) != c,
        "Punctuation": lambda c: len(split.pre_tokenize_str("a" + c + "a")) == 3,
    }
    return runs_file(MADE_BY, {name: ranges(member) for name, member in classes.items()})


def fixture():
    """Every generated file by its path from the repository root."""
    rng = random.Random(20)
    noise = [random_line(rng) for _ in range(60)]
    lines = PLAIN + HARD + noise
    pieces = vocabulary(lines)
    data = {
        "made_by": MADE_BY,
        "library": "tokenizers " + tokenizers.__version__,
        "settings": SETTINGS,
        "cases": {s: [] for s in SETTINGS},
        "decode": decodings(reference(pieces)),
        "rune_blocks": rune_blocks(),
    }
    for setting in SETTINGS:
        tok = reference(pieces, setting)
        for text in lines if setting == "uncased" else HARD + noise:
            data["cases"][setting].append({"text": text, "tokens": tokens(tok, text)})
    head = {k: v for k, v in data.items() if k != "cases"}
    rows = [f'"{s}": [\n' + ",\n".join(json.dumps(c) for c in cs) + "\n]" for s, cs in data["cases"].items()]
    body = json.dumps(head, indent=0)[:-2] + ',\n"cases": {\n' + ",\n".join(rows) + "\n}}\n"
    return {
        "tokenize/hf/testdata/bert/vocab.txt": "".join(p + "\n" for p in pieces),
        "tokenize/hf/testdata/bert/tokenizer.json": reference(pieces).to_str(pretty=False) + "\n",
        "tokenize/hf/testdata/bert/lines.json": body,
        "tokenize/internal/aligned/classes.json": tables(),
    }



def cases(tok, texts, rng, decode):
    """Each text with its tokens and what they decode to; and ids as a sampler makes them, now and then out of range."""
    size = tok.get_vocab_size()  # slow: it builds the vocabulary
    return [case(tok, size, text, rng, decode) for text in texts]


def case(tok, size, text, rng, decode):
    made = tokens(tok, text)
    ids = [rng.randrange(size + (rng.random() < 0.02)) for _ in range(rng.randrange(12))]
    return {"text": text, "tokens": made, "decoded": decode(tok, [t[0] for t in made]),
            "ids": ids, "ids_decoded": decode(tok, ids)}


def full_texts(data, first, random_text, seed):
    """First, the reference sentences if data has them, and 20,000 random lines."""
    lines = list(first)
    for name in ("tbc.5k.txt", "wiki103.5k.txt"):
        if data and (data / "infilling" / name).is_file():
            lines += (data / "infilling" / name).read_bytes().decode().removesuffix("\n").split("\n")
    rng = random.Random(seed)
    return lines + [random_text(rng) for _ in range(20000)]


def write_lines(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lines.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def write_full(out, data=None):
    """Returns the folders it wrote."""
    known = data and data / "tokenizers" / "bert-base-uncased"
    if not known or not (known / "tokenizer.json").is_file():
        known = stored.ROOT / "tokenize" / "hf" / "testdata" / "bert"
    tok = Tokenizer.from_file(str(known / "tokenizer.json"))
    tok.no_truncation()
    tok.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    rng = random.Random(9)
    rows = cases(tok, full_texts(data, PLAIN + HARD, random_line, 7), rng, lambda t, ids: t.decode(ids, skip_special_tokens=True))
    for name, files in (("tokenizer-json", ["tokenizer.json"]), ("vocab-txt", ["vocab.txt"])):
        write_lines(out / name, rows)
        for f in files:
            shutil.copyfile(known / f, out / name / f)
    # The fixtures' vocabulary has capitals: without settings gradhop would not lower-case.
    (out / "vocab-txt" / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return [out / "tokenizer-json", out / "vocab-txt"]


def main():
    ap = stored.command_line(__doc__)
    ap.add_argument("--full", nargs="+", type=pathlib.Path, metavar=("OUT", "DIR"))
    args = ap.parse_args()
    if args.full:
        print(*write_full(*args.full[:2]))
        return
    stored.finish(args.check, MADE_BY, fixture())


if __name__ == "__main__":
    main()
