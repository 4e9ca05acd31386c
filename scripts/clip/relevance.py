"""How well a text fits a picture, from the captions alone.

A text is read as a bag of words. Word w says g(p, w) about picture p, and the fit of a text of n tokens is

    s(p, t) = KAPPA / n * sum over its tokens of g(p, w)  + NAMED if all words of the picture's name are there.

g is positive for words of the picture's concept, more so for rare ones and for those of its name; negative for other
words, less so for those that keep company with its words; and negative for a word said before and for pieces that
make no caption's word. So every text has a fit in [-9, 15] or so, gibberish and half-right bags of words included,
and the towers are trained to rank all of them (train.py). An unrelated text says the same of every picture.
"""

from __future__ import annotations

import numpy as np

from .captions import FILLERS, Concept, Picture
from .tokens import Tokens

KAPPA, NAMED = 12.0, 3.0
WRONG, STRAY, REPEAT, FILLER = -0.6, -0.75, -0.3, -0.1
COLOURED, MEDIUM = 0.45, 0.1


class Relevance:
    """Fits of texts to pictures; words are columns, three more stand for strays, repeats and fillers."""

    def __init__(self, concepts: list[Concept], pictures: list[Picture], colours: list[str], t: Tokens) -> None:
        self.tokens = t
        every = {w for c in concepts for w in c.words()} | {c for c in colours if c} | {"photo", "emoji"}
        self.words = sorted(every - FILLERS)
        self.at = {w: i for i, w in enumerate(self.words)}
        n = len(self.words)
        self.stray, self.repeat, self.filler = n, n + 1, n + 2
        self.canonical = {tuple(t.word(w)): i for w, i in self.at.items()}
        self.canonical |= {tuple(t.word(w)): self.filler for w in FILLERS}
        self.longest = max(len(k) for k in self.canonical)

        has = np.zeros((len(concepts), n), np.float32)
        for i, c in enumerate(concepts):
            has[i, [self.at[w] for w in c.words() if w in self.at]] = 1
        # Photo classes have many pictures each; count them as ordinary concepts.
        share = (has.sum(0) + 1) / len(concepts)
        rare = np.clip(np.log(share) / np.log(1 / len(concepts)), 0, 1)  # 0 for a word of all, 1 for a word of one
        company = self.company(has)
        g = WRONG + 0.5 * company
        for i, c in enumerate(concepts):
            own = [self.at[w] for w in c.words() if w in self.at]
            named = [self.at[w] for w in c.name if w in self.at]
            g[i, own] = 0.45 + 0.35 * rare[own]
            g[i, named] += 0.2
        extra = np.tile(np.asarray([STRAY, REPEAT, FILLER], np.float32), (len(concepts), 1))
        self.g = np.concatenate([g, extra], 1).astype(np.float32)
        self.concept = np.asarray([p.concept for p in pictures])
        self.medium = np.asarray([self.at[concepts[p.concept].medium] for p in pictures])
        self.colour = np.asarray([self.at[c] if c else -1 for c in colours])
        self.named = [frozenset(self.at[w] for w in c.name if w in self.at) for c in concepts]

    def company(self, has: np.ndarray) -> np.ndarray:
        """[concepts, words]: largest cosine, over the concept's words, of the two words' occurrences; at most 0.8."""
        unit = has / np.maximum(np.linalg.norm(has, axis=0, keepdims=True), 1e-6)
        alike = np.minimum(unit.T @ unit, 0.8)
        alike[np.arange(len(alike)), np.arange(len(alike))] = 0
        return np.stack([alike[row > 0].max(0) if row.any() else 0 * alike[0] for row in has])

    def read(self, ids: list[int]) -> list[int]:
        """The column of every token: words as the tokenizer itself would cut them, strays otherwise."""
        out, begin, seen = [], 0, set()
        for i, token in enumerate(ids):
            if not self.tokens.closes[token]:
                continue
            part = tuple(ids[begin : i + 1])
            column = self.canonical.get(part, self.stray) if len(part) <= self.longest else self.stray
            if column < self.stray:
                column = self.repeat if column in seen else column
                seen.add(column)
            out += [column] * len(part)
            begin = i + 1
        return out + [self.stray] * (len(ids) - begin)

    def fits(self, pictures: np.ndarray, texts: list[list[int]]) -> np.ndarray:
        """[pictures, texts] of s, for texts given as token ids without specials."""
        columns = [self.read(t) for t in texts]
        bags = np.zeros((len(texts), self.g.shape[1]), np.float32)
        for row, cs in zip(bags, columns, strict=True):
            np.add.at(row, cs, 1 / max(len(cs), 1))
        used = np.flatnonzero(bags.any(0))
        rows = self.g[self.concept[pictures]].copy()
        hue, own = self.colour[pictures], np.arange(len(pictures))
        rows[own, self.medium[pictures]] = MEDIUM
        rows[own[hue >= 0], hue[hue >= 0]] = COLOURED
        s = KAPPA * rows[:, used] @ bags[:, used].T
        sets = [frozenset(c) for c in columns]
        names = [self.named[c] for c in self.concept[pictures]]
        full = {n: [n and n <= t for t in sets] for n in set(names)}
        return s + NAMED * np.asarray([full[n] for n in names], np.float32)
