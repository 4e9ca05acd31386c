"""The words that prompts are made of unless a user says otherwise: words.txt of the model folder.

A byte-level vocabulary of a few thousand tokens has many that close a word and are none, as "tle" or "kzod". Here are
the tokens that are whole words of the captions that the model was trained on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from . import captions
from .captions import Concept, words
from .prepare import load
from .texts import FRAMES
from .tokens import Tokens

NAME = "words.txt"
HEAD = "# Words of the training captions that are one token: what is proposed unless other words are asked for."

# Below three letters most "words" of captions are letters, abbreviations and pieces of names: these are English ones.
SHORT = words("a ad am an as at ax be by do go he hi i if in is it me my no of oh ok on or ox so to tv up us we")
# What is left of slang, names and abbreviations, and what a prompt about a person should not say unasked.
STRAY = words("abcd bday blu bro fleek glbt glbtq hong jan jew lis lob mao mic muah non pga pissed rad rex roflmao sar sexy swag twinsies wtv")


def listed(concepts: list[Concept], shown: set[int], colours: set[str], tokens: Tokens) -> list[str]:
    """The words of the concepts that are shown in training, and of what frames them, sorted.

    A word counts if it is in a name, in the keywords of two concepts, or of one that many photos show; chat slang
    only if it is in a name.
    """
    named: Counter = Counter()
    key: Counter = Counter()
    for i in shown:
        c = concepts[i]
        # Of flags only the names of countries say anything, and of those only what is not an abbreviation.
        named.update(w for w in set(c.name) if not captions.is_flag(c) or len(w) > 3)
        key.update({w: 2 if c.medium == "photo" else 1 for k in c.keywords for w in k})
    usual = {w for frames in FRAMES.values() for f in frames for w in f.split() if w != "{}"}
    found = {*named, *usual, *colours, *captions.FILLERS, *(w for w, n in key.items() if n > 1 and w not in captions.SLANG)} - STRAY
    return sorted(w for w in found if w.isalpha() and (len(w) > 2 or w in SHORT) and len(tokens.word(w)) == 1)


def write(work: Path, out: Path) -> int:
    """Writes the list of a prepared WORK into a model folder; returns the number of words."""
    concepts, pictures, part, colours = load(work)
    shown = {p.concept for p, k in zip(pictures, part, strict=True) if k == "train"}
    found = listed(concepts, shown, set(colours), Tokens(work))
    (out / NAME).write_text("\n".join([HEAD, *found]) + "\n", encoding="utf-8")
    return len(found)
