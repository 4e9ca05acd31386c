"""Reference values for the CLIP tokenizer of the Go package tokenize, from Hugging Face's libraries.

    tokenize_clip.py             write tokenize/clip/testdata and tokenize/internal/aligned/patterns.json
    tokenize_clip.py --check     regenerate in memory; exit 1 if a file differs
    tokenize_clip.py --full OUT [DIR]
        write a folder for each way to load a tokenizer below OUT: its files and lines.jsonl, one
        JSON line for each of more than 20,000 texts: {"text", "tokens": [[id, start, end]],
        "decoded", "ids", "ids_decoded"}, where ids are random. DIR holds tokenizers/clip-vit-base-patch32
        and infilling/*.5k.txt; without it the vocabulary is trained on this repository's own texts.

Offsets are bytes of the UTF-8 text. The library reports characters; byte_offsets converts.
"""

import collections
import hashlib
import itertools
import json
import pathlib
import random
import shutil

import stored
import tokenizers
from tokenize_clip_samples import EOT, SOT, hard_lines, plain_lines, random_clip_line
from tokenize_lines import cases, characters, full_texts, ranges, runs_file, write_lines
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

MADE_BY = "scripts/reference/tokenize_clip.py"
SUFFIX = "</w>"
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
HEADS = r"<\|startoftext\|>|<\|endoftext\|>|"  # what OpenAI's files have in front


def normalizer():
    return normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])


def splitter(heads=""):
    split = pre_tokenizers.Split(Regex(heads + PATTERN), behavior="removed", invert=True)
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def clip(vocab, merges, added, unk=EOT, heads=""):
    """A tokenizer as CLIP's files make it; the first two added tokens stand around a text."""
    model = models.BPE(vocab, merges, continuing_subword_prefix="", end_of_word_suffix=SUFFIX, unk_token=unk)
    tok = Tokenizer(model)
    tok.normalizer, tok.pre_tokenizer, tok.decoder = normalizer(), splitter(heads), decoders.ByteLevel()
    for t in added:
        (tok.add_special_tokens if t.special else tok.add_tokens)([t])
    sot, eot = ((t.content, tok.token_to_id(t.content)) for t in added[:2])
    tok.post_processor = processors.RobertaProcessing(sep=eot, cls=sot, trim_offsets=False, add_prefix_space=False)
    return tok


def special(content, normalized):
    return AddedToken(content, normalized=normalized, special=True)


def learn(lines, count):
    """The first count merges of the words in lines, most frequent pair first, ties by spelling.

    Deterministic on purpose: the library's trainer breaks ties by hash order.
    """
    words = collections.Counter()
    for line in lines:
        words.update(w for w, _ in splitter().pre_tokenize_str(normalizer().normalize_str(line)))
    split = {w: [*w[:-1], w[-1] + SUFFIX] for w in words}
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for w, parts in split.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += words[w]
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for parts in split.values():
            for i in range(len(parts) - 1, 0, -1):
                if (parts[i - 1], parts[i]) == best:
                    parts[i - 1:i + 1] = ["".join(best)]
    return merges


def vocabulary(merges, without=()):
    """Every byte inside a word and at its end, then what the merges make."""
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(without))
    pieces = alphabet + [c + SUFFIX for c in alphabet] + ["".join(m) for m in merges]
    return {p: i for i, p in enumerate(dict.fromkeys(pieces))}


def settings():
    """The fixtures' tokenizers by name.

    "own" has a file like OpenAI's; "files" is what transformers makes of vocab.json and merges.txt;
    "holes" lacks some bytes and has other names and an ordinary added token. The merges of "odd"
    are shuffled, so that a pair made by a merge can come before older ones.
    """
    merges = learn(plain_lines(), 280) + [("ð", "Ł"), ("ðŁ", "ĺ"), ("Ã", "©</w>")]
    vocab = vocabulary(merges)
    vocab |= {SOT: len(vocab), EOT: len(vocab) + 1}
    odd = list(merges)
    random.Random(5).shuffle(odd)
    gaps = "zqx!ğĠ"
    some = [m for m in merges if not set(gaps) & set("".join(m))]
    holes = vocabulary(some, without=gaps)
    holes |= {n: len(holes) + i for i, n in enumerate(("<unk>", "<s>", "</s>"))}
    added = [special("<s>", False), special("</s>", True), AddedToken("<NEW>", normalized=True), AddedToken("\u2126m", normalized=False)]
    return {
        "own": clip(vocab, merges, [special(SOT, True), special(EOT, False)], heads=HEADS),
        "odd": clip(vocab, odd, [special(SOT, True), special(EOT, False)], heads=HEADS),
        "files": clip(vocab, merges, [special(SOT, True), special(EOT, True)]),
        "holes": clip(holes, some, added, unk="<unk>"),
    }


def decode(tok, ids):
    """As transformers' CLIPTokenizerFast does."""
    return tok.decode(ids, skip_special_tokens=True).replace(SUFFIX, " ").strip()


def rune_blocks():
    """For each 4,096 code points, a hash of how each of them is normalised and split among others."""
    norm, split = normalizer(), pre_tokenizers.Split(Regex(PATTERN), behavior="removed", invert=True)
    blocks = {}
    for c in characters():
        made = norm.normalize_str("e" + c + "\u0323\u0301" + c + "1")
        words = "|".join(w for w, _ in split.pre_tokenize_str("a" + c + "1!"))
        blocks.setdefault(ord(c) >> 12, hashlib.sha256()).update(f"{made}|{words}\n".encode())
    return {f"{b:X}": h.hexdigest()[:16] for b, h in blocks.items()}


def tables():
    """The character classes of word patterns as runs of code points, measured by asking the library about every character."""
    splits = {p: pre_tokenizers.Split(Regex(p), behavior="removed") for p in (r"\s", r"\p{L}", r"\p{N}")}
    return runs_file(MADE_BY, {p: ranges(lambda c, split=split: not split.pre_tokenize_str(c)) for p, split in splits.items()})


def fixture():
    """Every generated file by its path from the repository root."""
    rng = random.Random(21)
    lines = hard_lines() + plain_lines() + [random_clip_line(rng) for _ in range(100)]
    made = settings()
    head = {"made_by": MADE_BY, "library": "tokenizers " + tokenizers.__version__, "rune_blocks": rune_blocks()}
    rows = []
    for name, tok in made.items():
        some = lines if name == "own" else lines[::3]
        rows.append(f'"{name}": [\n' + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases(tok, some, rng, decode)) + "\n]")
    body = json.dumps(head, indent=0)[:-2] + ',\n"cases": {\n' + ",\n".join(rows) + "\n}}\n"
    files = {f"tokenize/clip/testdata/{n}.json": made[n].to_str(pretty=False) + "\n" for n in ("own", "odd", "holes")}
    return files | {"tokenize/clip/testdata/lines.json": body, "tokenize/internal/aligned/patterns.json": tables()}


def trained():
    """A vocabulary that the library trains on the texts of this repository."""
    tok = Tokenizer(models.BPE(unk_token=EOT, continuing_subword_prefix="", end_of_word_suffix=SUFFIX))
    tok.normalizer, tok.pre_tokenizer = normalizer(), splitter()
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=[SOT, EOT], end_of_word_suffix=SUFFIX, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    sources = sorted([*stored.ROOT.glob("*.md"), *stored.ROOT.glob("*/*.md"), *(stored.ROOT / "scripts").rglob("*.py")])
    tok.train_from_iterator([s.read_text() for s in sources] + full_texts(None, hard_lines(), random_clip_line, 10)[:4000], trainer)
    model = json.loads(tok.to_str())["model"]
    vocab = model["vocab"]
    for c in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab.setdefault(c + SUFFIX, len(vocab))  # the trainer adds those it saw only
    return clip(vocab, [tuple(m) for m in model["merges"]], [special(SOT, True), special(EOT, False)], heads=HEADS)


def write_full(out, data=None):
    """Returns the folders it wrote."""
    known = data and data / "tokenizers" / "clip-vit-base-patch32"
    if known and (known / "tokenizer.json").is_file():
        tok = Tokenizer.from_file(str(known / "tokenizer.json"))
    else:
        known, tok = None, trained()
    model = json.loads(tok.to_str())["model"]
    merges = [tuple(m) for m in model["merges"]]
    plain = clip(model["vocab"], merges, [special(SOT, True), special(EOT, True)])
    texts, whole, parts = full_texts(data, hard_lines() + plain_lines(), random_clip_line, 8), out / "tokenizer-json", out / "vocab-merges"
    for folder, reference in ((whole, tok), (parts, plain)):
        rng = random.Random(9)
        write_lines(folder, cases(reference, texts, rng, decode))
    if known:
        shutil.copyfile(known / "tokenizer.json", whole / "tokenizer.json")
    else:
        tok.save(str(whole / "tokenizer.json"))
    (parts / "vocab.json").write_text(json.dumps(model["vocab"]))
    (parts / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    return [whole, parts]


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
