"""BLiMP (Warstadt et al. 2020): does the model prefer the grammatical sentence of a minimal pair?

A sentence's score is its pseudo-log-likelihood (Salazar et al. 2020): the sum over its word pieces
of log p(piece | the rest). The data set is a folder of .jsonl files, one a paradigm, with the fields
"sentence_good" and "sentence_bad" in every line.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from .common import RecipeError
from .pseudo import Scorer


def read_pairs(path: Path, limit: int) -> list[tuple[str, str]]:
    """The first `limit` pairs (0: all) of a paradigm: good sentence, bad sentence."""
    with path.open(encoding="utf-8") as lines:
        try:
            return [(p["sentence_good"], p["sentence_bad"]) for p in map(json.loads, islice(lines, limit or None))]
        except (ValueError, KeyError, TypeError) as e:
            raise RecipeError(f"mlm: {path} is not a BLiMP file ({type(e).__name__}: {e})") from e


def accuracy(m: Scorer, pairs: list[tuple[str, str]]) -> float:
    """Share of the pairs whose good sentence has the higher score; equal scores count as wrong."""
    texts = [s for pair in pairs for s in pair]
    loss = m.score_all([e.ids for e in m.tokenizer.encode_batch(texts, add_special_tokens=False)])
    return sum(good < bad for good, bad in zip(loss[::2], loss[1::2], strict=True)) / len(pairs)


def blimp(m: Scorer, folder: Path, limit: int = 0) -> dict:
    """Accuracy of every paradigm on its first `limit` pairs (0: all), and the mean over the paradigms."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise RecipeError(f"mlm: no .jsonl files in {folder}")
    read = {f.stem: read_pairs(f, limit) for f in files}
    paradigms = {name: round(accuracy(m, pairs), 4) for name, pairs in read.items()}
    return {
        "mean": round(sum(paradigms.values()) / len(paradigms), 4),
        "pairs": sum(map(len, read.values())),
        "paradigms": paradigms,
    }
