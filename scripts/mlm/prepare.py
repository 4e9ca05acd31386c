"""Text to token arrays: split off held-out books, learn the vocabulary, tokenise.

Each split becomes two flat files: NAME.tok (uint16 token ids without special tokens) and
NAME.sent (int64 offsets, one a sentence, a final total; a paragraph's first sentence is stored
as -offset-1), so that training reads them with numpy.memmap.
"""

from __future__ import annotations

import json
import lzma
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from .common import CLS, FILES, SEP, SPECIALS, RecipeError, need, write_json
from .parts import sha256
from .text import clean, penn, sentences

ALPHABET = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
VOCABULARY_CHARS = 60_000_000  # of the books, read to choose a vocabulary
OTHERS = 8  # characters outside ASCII that may be in the vocabulary, the commonest of the text


def read_books(path: Path) -> Iterator[list[str]]:
    """Yields books as lists of paragraphs; a blank line ends a book."""
    opener = lzma.open if path.suffix == ".xz" else open
    book: list[str] = []
    with opener(need(path, "book text"), "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip():
                book.append(line.rstrip("\n"))
            elif book:
                yield book
                book = []
    if book:
        yield book


def title(book: list[str]) -> str:
    """The text before the author, or the first words of a book without a header."""
    return book[0].split(" Author: ")[0].removeprefix("Title: ")[:80]


def split(books: list[list[str]], held_out: int, seed: int) -> tuple[list, list]:
    """Sets whole books aside; the choice depends on their titles and the seed alone."""
    if held_out >= len(books):
        raise RecipeError(f"mlm: cannot hold out {held_out} of {len(books)} books")
    names = sorted({title(b) for b in books})
    random.Random(seed).shuffle(names)
    chosen = set(names[:held_out])
    return [b for b in books if title(b) not in chosen], [b for b in books if title(b) in chosen]


def blank_tokenizer(vocab: dict[str, int] | None = None) -> Tokenizer:
    """A WordPiece tokenizer with BERT's uncased rules."""
    model = models.WordPiece(vocab or {}, unk_token="[UNK]", max_input_chars_per_word=100)
    tok = Tokenizer(model)
    tok.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(prefix="##")
    return tok


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """Learns the vocabulary; special tokens get ids 0 to 4. The same text gives the same pieces."""
    tok, texts = blank_tokenizer(), list(texts)
    count = Counter()
    for t in texts:
        count.update(tok.normalizer.normalize_str(t))
    others = sorted((c for c in count if not c.isspace() and c not in ALPHABET), key=lambda c: (-count[c], c))[:OTHERS]
    # The trainer numbers ##letters as it meets them in a hash map, and breaks ties between pairs by
    # number. Given in advance, as special tokens, their numbers are the same in every run.
    inner = ["##" + c for c in [*ALPHABET, *others] if c.isalnum() or c in others]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=SPECIALS + inner,
        limit_alphabet=len(ALPHABET) + len(others),
        initial_alphabet=ALPHABET + others,
        show_progress=False,
    )
    tok.train_from_iterator(texts, trainer)
    vocab = with_single_letters(tok.get_vocab(), size)
    return finish_tokenizer(blank_tokenizer(vocab))


def finish_tokenizer(tok: Tokenizer) -> Tokenizer:
    """Adds the special tokens, which are the first of the vocabulary, and [CLS] text [SEP]."""
    tok.add_special_tokens(SPECIALS)
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return tok


def with_single_letters(vocab: dict[str, int], size: int) -> dict[str, int]:
    """Adds every missing letter, digit and ##letter in place of the last pieces learnt.

    With all of them present no ASCII word can become [UNK].
    """
    order = sorted(vocab, key=vocab.get)
    must = ALPHABET + ["##" + c for c in ALPHABET if c.isalnum()]
    missing = [p for p in must if p not in vocab]
    keep = set(must) | set(SPECIALS)
    room = max(size - len(missing), 0)
    while len(order) > room:
        last = max(i for i, p in enumerate(order) if p not in keep)
        del order[last]
    return {p: i for i, p in enumerate(order + missing)}


def save_tokenizer(tok: Tokenizer, out: Path, positions: int) -> None:
    """Writes vocab.txt, tokenizer.json and tokenizer_config.json."""
    vocab = tok.get_vocab()
    order = sorted(vocab, key=vocab.get)
    (out / "vocab.txt").write_text("\n".join(order) + "\n", encoding="utf-8")
    tok.save(str(out / "tokenizer.json"))
    names = ["pad", "unk", "cls", "sep", "mask"]
    write_json(
        out / "tokenizer_config.json",
        {
            "do_lower_case": True,
            "strip_accents": True,
            "tokenize_chinese_chars": True,
            "model_max_length": positions,
            "tokenizer_class": "BertTokenizer",
            **{f"{n}_token": s for n, s in zip(names, SPECIALS, strict=True)},
        },
    )


def tokenise(tok: Tokenizer, books: list[list[str]], out: Path, penn_share: float, seed: int) -> int:
    """Writes out.tok and out.sent, rewriting a share of paragraphs in Penn style; returns tokens."""
    rng = random.Random(seed)
    starts: list[int] = []
    total = 0
    with open(out.with_suffix(".tok"), "wb") as sink:
        for book in books:
            texts, first = [], []
            for paragraph in book:
                line = clean(paragraph)
                rewrite = rng.random() < penn_share
                parts = sentences(line)
                texts += [penn(s) for s in parts] if rewrite else parts
                first += [True] + [False] * (len(parts) - 1) if parts else []
            for opens, enc in zip(first, tok.encode_batch_fast(texts, add_special_tokens=False), strict=True):
                if not enc.ids:
                    continue
                starts.append(-total - 1 if opens else total)
                sink.write(np.asarray(enc.ids, dtype=np.uint16).tobytes())
                total += len(enc.ids)
    starts.append(total)
    np.asarray(starts, dtype=np.int64).tofile(out.with_suffix(".sent"))
    return total


def finished(work: Path, made_from: dict) -> dict | None:
    """The counts of an earlier run from the same text and settings, if its files are there."""
    try:
        counts = json.loads((work / "counts.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    there = all((work / f).exists() for f in ("vocab.txt", "tokenizer.json", "train.tok", "train.sent", "held.tok", "held.sent"))
    return counts if there and counts.get("made_from") == made_from else None


def vocabulary_text(train: list[list[str]], extra: list[Path], exclude: list[Path], seed: int, chars: int) -> Iterator[str]:
    """The text that a vocabulary is chosen by: paragraphs of the training books, about `chars` characters, and `extra`.

    Lines of extra lose the sentences that are in the files `exclude`.
    """
    banned = {s.strip() for p in exclude for s in need(p, "reference sentences").read_text("utf-8").split("\n")}
    paragraphs = [p for b in train for p in b]
    random.Random(seed).shuffle(paragraphs)
    used = 0
    for i, p in enumerate(paragraphs):
        if used > chars:
            break
        used += len(p)
        yield penn(clean(p)) if i % 3 == 0 else clean(p)
    # Encyclopedic text is small beside the books; repeating it lets modern words in.
    for path in extra:
        for line in need(path, "vocabulary text").read_text("utf-8").split("\n"):
            parts = [s for s in line.split(" . ") if (s + " .").strip() not in banned]
            yield from [clean(" . ".join(parts).replace("<unk>", " ").replace("@", ""))] * 6


def prepare(books_file: Path, work: Path, *, vocab_size: int, positions: int, held_out: int, seed: int,
            extra: list[Path], exclude: list[Path], start: Path | None = None, vocab_chars: int = VOCABULARY_CHARS) -> dict:  # fmt: skip
    """Runs the whole step into the folder work; returns the token counts.

    With start, a model folder, its vocabulary is used. Where an earlier run left the same work done, that is all it does: pieces of a run begin at once.
    """
    work.mkdir(parents=True, exist_ok=True)
    made_from = {
        "books": sha256(need(books_file, "book text")),
        "extra": [sha256(need(p, "vocabulary text")) for p in extra],
        "exclude": [sha256(need(p, "reference sentences")) for p in exclude],
        "vocab_size": vocab_size, "positions": positions, "held_out": held_out, "seed": seed, "vocab_chars": vocab_chars,
        "vocabulary": sha256(need(start / "vocab.txt", "vocabulary")) if start else "",
    }  # fmt: skip
    if (counts := finished(work, made_from)) is not None:
        return counts
    (work / "counts.json").unlink(missing_ok=True)
    books = list(read_books(books_file))
    train, held = split(books, held_out, seed)
    if start:
        for name in FILES:
            shutil.copyfile(need(start / name, name), work / name)
        tok = Tokenizer.from_file(str(work / "tokenizer.json"))
    else:
        tok = train_tokenizer(vocabulary_text(train, extra, exclude, seed, vocab_chars), vocab_size)
        save_tokenizer(tok, work, positions)
    counts = {
        "train_books": len(train),
        "held_out_books": sorted(title(b) for b in held),
        "vocab_size": tok.get_vocab_size(),
        "train_tokens": tokenise(tok, train, work / "train", 1 / 3, seed),
        "held_out_tokens": tokenise(tok, held, work / "held", 0.0, seed),
        "made_from": made_from,
    }
    write_json(work / "counts.json", counts)
    return counts
