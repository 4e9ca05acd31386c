"""Measures an exported model folder: held-out books, reference sentences, the infilling task.

Everything runs the ONNX file through onnxruntime, so that the figures are those of the file that
is shipped. The same numbers come out for the same file and seed.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from .blimp import blimp
from .common import CLS, MASK, SEP, need
from .data import Corpus, following, inner_pieces, mask, read_vocab
from .pseudo import Scorer, log_softmax, pseudo_perplexity

DEMO = "he had not , after all , [MASK] me the chance but [MASK] abandoned me [MASK] ."


class Model:
    """A model folder opened for inference."""

    def __init__(self, folder: Path, threads: int = 2) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        path = str(need(folder / "model.onnx", "model"))
        began = time.perf_counter()
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.load_seconds = time.perf_counter() - began
        self.tokenizer = Tokenizer.from_file(str(need(folder / "tokenizer.json", "tokenizer")))
        self.vocab = read_vocab(folder)
        self.inner = inner_pieces(self.vocab)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.positions, self.causal = config["max_position_embeddings"], config.get("is_decoder", False)

    def logits(self, ids: np.ndarray, live: np.ndarray | None = None) -> np.ndarray:
        live = np.ones_like(ids) if live is None else live.astype(np.int64)
        feed = {"input_ids": ids, "attention_mask": live, "token_type_ids": np.zeros_like(ids)}
        return self.session.run(["logits"], feed)[0]

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids[: self.positions]


def held_out(m: Model, stem: Path, *, length: int = 128, limit: int = 1024, seed: int = 0) -> dict:
    """Top-1, top-5 and loss at 15% of the tokens, chosen as whole words and one by one.

    Two protocols: "bert" replaces 80% of the targets by [MASK] and 10% by a random token;
    "masked" replaces every target by [MASK], as the samplers do.
    """
    corpus = Corpus(stem)
    rng = np.random.default_rng(seed)
    rows = corpus.rows(length, rng, single=0.0)
    rows = rows[rng.permutation(len(rows))[:limit]]
    out = {"rows": len(rows), "length": length}
    for protocol, shown in (("bert", 0.2), ("masked", 0.0)):
        out[protocol] = {}
        for name, whole in (("words", True), ("tokens", False)):
            loss = top1 = top5 = count = 0.0
            for i in range(0, len(rows), 16):
                ids, live = corpus.fill(rows[i : i + 16], length)
                hidden, where, target = mask(ids, 0.15, m.inner, rng, whole=whole, shown=shown)
                scores = m.logits(hidden, live).reshape(-1, len(m.vocab))[where]
                own = scores[np.arange(len(where)), target]
                rank = (scores > own[:, None]).sum(-1)
                loss -= log_softmax(scores)[np.arange(len(where)), target].sum()
                top1, top5, count = top1 + (rank < 1).sum(), top5 + (rank < 5).sum(), count + len(where)
            rates = {k: round(float(v / count), 4) for k, v in (("top1", top1), ("top5", top5), ("loss", loss))}
            out[protocol][name] = rates | {"targets": int(count)}
    return out


def next_tokens(m: Model, stem: Path, *, length: int = 128, limit: int = 1024, seed: int = 0) -> dict:
    """Top-1, top-5 and loss of a causal model at the tokens of rows of whole sentences."""
    corpus = Corpus(stem)
    rng = np.random.default_rng(seed)
    rows = corpus.rows(length, rng, single=0.0)
    rows = rows[rng.permutation(len(rows))[:limit]]
    sums, count = np.zeros(3), 0
    for part in np.array_split(rows, -(-len(rows) // 16)):
        ids, live = corpus.fill(part, length)
        where, target = following(ids, np.isin(part[:, 1], corpus.marks))
        scores = log_softmax(m.logits(ids, live).reshape(-1, len(m.vocab))[where])
        own = scores[np.arange(len(where)), target]
        rank = (scores > own[:, None]).sum(-1)
        sums += [(rank < 1).sum(), (rank < 5).sum(), -own.sum()]
        count += len(where)
    rates = {k: round(float(v / count), 4) for k, v in zip(("top1", "top5", "loss"), sums, strict=True)}
    return {"rows": len(rows), "length": length, **rates, "targets": count}


def spell(pieces: list[str]) -> list[str]:
    """The words that pieces make."""
    return " ".join(pieces).replace(" ##", "").split()


def words(m: Model, stem: Path, *, limit: int = 2048, seed: int = 0) -> dict:
    """Whole words of single sentences, 15% of them masked: models with different vocabularies get the same task.

    A word of k pieces becomes k [MASK]; it counts as found if the likeliest piece at each of them is right. Bits are
    those of all its pieces. Sentences have 5 to 60 words and are chosen by the seed, as their masked words are.
    """
    corpus, vocab = Corpus(stem), read_vocab(stem.parent)
    rng, rows = np.random.default_rng(seed), []
    for i in rng.permutation(len(corpus.marks) - 1):
        text = spell([vocab[t] for t in corpus.tokens[corpus.marks[i] : corpus.marks[i + 1]]])
        chosen = rng.random(len(text)) < 0.15
        if 5 <= len(text) <= 60 and chosen.any():
            parts = [e.ids for e in m.tokenizer.encode_batch(text, add_special_tokens=False)]
            rows.append((parts, chosen, sum(len(w) for w, c in zip(text, chosen, strict=True) if c)))
        if len(rows) == limit:
            break
    found = count = characters = nats = 0.0
    for parts, chosen, size in rows:
        ids = np.asarray([CLS, *(p for part in parts for p in part), SEP])
        ends = np.cumsum([1, *map(len, parts)])
        places = [np.arange(ends[j], ends[j + 1]) for j in np.flatnonzero(chosen)]
        hidden = ids.copy()
        hidden[np.concatenate(places)] = MASK
        scores = log_softmax(m.logits(hidden[None])[0])
        for at in places:
            nats -= scores[at, ids[at]].sum()
            found += bool((scores[at].argmax(-1) == ids[at]).all())
        count, characters = count + len(places), characters + size
    return {"sentences": len(rows), "words": int(count), "found": round(found / count, 4),
            "bits_a_character": round(float(nats / characters / np.log(2)), 4)}  # fmt: skip


def infilling(m: Model, path: Path) -> dict:
    """How often the original word is among the five likeliest at its blank, all blanks masked.

    A word of several pieces counts as missed: one [MASK] stands for one piece.
    """
    hits = blanks = single = 0
    for task in json.loads(need(path, "infilling task").read_text("utf-8")):
        shown, original = task["sentence"].split(), task["gt_sentence"].split()
        if len(shown) != len(original):
            continue
        ids = m.encode(" ".join(shown))
        scores = m.logits(np.asarray([ids]))[0]
        answers = [w for w, s in zip(original, shown, strict=True) if s == "[MASK]"]
        for at, word in zip(np.flatnonzero(np.asarray(ids) == MASK), answers, strict=True):
            enc = m.tokenizer.encode(word, add_special_tokens=False).ids
            blanks += 1
            single += len(enc) == 1
            hits += len(enc) == 1 and enc[0] in np.argsort(-scores[at])[:5]
    return {"blanks": blanks, "one_piece": single, "in_top5": hits}


def demo(m: Model, text: str = DEMO, top: int = 5) -> list[list[str]]:
    """The likeliest pieces at every blank, each blank on its own."""
    ids = np.asarray(m.encode(text))
    scores = m.logits(ids[None])[0]
    return [[m.vocab[i] for i in np.argsort(-scores[at])[:top]] for at in np.flatnonzero(ids == MASK)]


def speed(m: Model, batch: int = 25, length: int = 24, repeats: int = 20) -> dict:
    """Milliseconds of one forward pass with the full vocabulary head: median and best."""
    length = min(length, m.positions)
    ids = np.random.default_rng(0).integers(5, len(m.vocab), (batch, length))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        m.logits(ids)
        times.append(1e3 * (time.perf_counter() - began))
    return {"batch": batch, "length": length, "median_ms": round(float(np.median(times)), 1),
            "best_ms": round(min(times), 1), "load_s": round(m.load_seconds, 3)}  # fmt: skip


def evaluate(folder: Path, work: Path, infill: Path | None, *, rows: int = 1024, limit: int = 500,
             threads: int = 2, minutes: float = 0.0, pairs: Path | None = None, pair_limit: int = 0) -> dict:  # fmt: skip
    """All figures as one dictionary; infill is the folder of reference sentences, if there is one.

    pairs: the folder of BLiMP, if there is one; pair_limit: pairs scored a paradigm, 0 for all.

    rows: held-out rows, 0 for none; limit: reference sentences a file, 0 for all, scored for at most
    `minutes` a file before the next call goes on with them.
    """
    m = Model(folder, threads)
    out: dict = {}
    if m.causal:
        return {"held_out": next_tokens(m, work / "held", length=min(128, m.positions), limit=rows), "speed": speed(m)}
    if rows:
        out["held_out"] = held_out(m, work / "held", length=min(128, m.positions), limit=rows)
        out["words"] = words(m, work / "held", limit=2 * rows)
    if infill is not None:
        scorer = Scorer(folder, threads)
        for name in ("tbc", "wiki103"):
            store = work / f"scored-{name}.json"
            out[name] = pseudo_perplexity(scorer, infill / f"{name}.5k.txt", limit, store, minutes / 2)
        out["infilling_task"] = infilling(m, infill / "infilling_task.json")
    if pairs is not None:
        out["blimp"] = blimp(Scorer(folder, threads), pairs, pair_limit)
    out["speed"] = speed(m)
    out["demo"] = demo(m)
    return out
