"""A run in pieces is the run in one: training, its files in parts, scoring."""

from __future__ import annotations

import json
import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from scripts.mlm import __main__ as driver
from scripts.mlm import pseudo
from scripts.mlm.common import MASK, RecipeError, Shape
from scripts.mlm.export import read_weights
from scripts.mlm.model import MaskedLM
from scripts.mlm.parts import join, split
from scripts.mlm.test_mlm import book
from scripts.mlm.worker import pick_device

STEPS = 6


def flags(root: Path, work: Path) -> list[str]:
    return ["--tiny", "--seed", "3", "--books", str(root / "books.txt"), "--work", str(work), "--held-out", "2",
            "--rows", "0", "--max-steps", str(STEPS), "--workers", "1", "--device", "cpu"]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text, and a run of all steps in one piece in root/whole."""
    root = tmp_path_factory.mktemp("pieces")
    rng = random.Random(5)
    (root / "books.txt").write_text("\n\n".join(book(rng, i) for i in range(6)) + "\n", encoding="utf-8")
    driver.run(["prepare", "train", "export", *flags(root, root / "whole")])
    return root


def checkpoint(work: Path) -> dict:
    return torch.load(work / "checkpoint.pt", weights_only=True)


def same(a: object, b: object) -> bool:
    """Equality to the bit of nested tensors."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("parts", [False, True])
def test_training_in_pieces_is_training_in_one(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture, parts: bool) -> None:
    """One step a piece; with parts, each piece runs on a bare machine that has only the parts."""
    work, brought = tmp_path / "work", tmp_path / "brought"
    for done in range(1, STEPS + 1):
        if parts:
            shutil.rmtree(work, ignore_errors=True)
        more = ["--part-mib", "0.1", "--parts", str(brought)] if parts else []
        driver.run(["prepare", "train", *flags(root, work), "--piece-minutes", "1e-9", *more])
        assert checkpoint(work)["counters"][0] == done
        assert ("the same command goes on" in capsys.readouterr().out) == (done < STEPS)
    want, got = checkpoint(root / "whole"), checkpoint(work)
    want["counters"][1] = got["counters"][1] = 0  # seconds
    assert same(got, want)
    steps = [int(line.split(",")[0]) for line in (work / "log.csv").read_text("utf-8").splitlines()[1:]]
    assert steps == list(range(1, STEPS + 1))
    if parts:
        sizes = [p.stat().st_size for p in brought.glob("checkpoint.[0-9]*")]
        assert len(sizes) > 3 and max(sizes) <= 0.1 * 2**20

    # A finished run has nothing left to train.
    driver.run(["train", *flags(root, work)])
    assert checkpoint(work)["counters"][0] == STEPS


def test_result_comes_back_in_parts(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "whole", tmp_path / "work")
    more = ["--part-mib", "0.02", "--parts", str(tmp_path / "brought")]
    driver.run(["export", "evaluate", *flags(root, tmp_path / "work"), *more])
    driver.run(["join", "--parts", str(tmp_path / "brought"), "--work", str(tmp_path / "home")])
    for name in [f"model/{f}" for f in driver.RESULT] + ["log.csv", "figures.json", "counts.json"]:
        assert (tmp_path / "home" / name).read_bytes() == (tmp_path / "work" / name).read_bytes(), name


def test_parts_cut_anywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    files = {f"deep/{n}": tmp_path / f"f{n}" for n in (0, 1, 7, 64, 100)}
    for n, path in zip((0, 1, 7, 64, 100), files.values(), strict=True):
        path.write_bytes(rng.bytes(n))
    for size in (1, 7, 8, 63, 64, 65, 172, 500):  # many parts first: later splits leave fewer behind
        index = split(files, tmp_path / "parts", "all", size)
        held = sorted((tmp_path / "parts").glob("all.[0-9]*"), key=lambda p: int(p.suffix[1:]))
        assert [p.stat().st_size for p in held] == [size] * (172 // size) + [172 % size] * (172 % size > 0)
        shutil.rmtree(tmp_path / "back", ignore_errors=True)
        assert len(join(index, tmp_path / "back")) == len(files)
        for name, path in files.items():
            assert (tmp_path / "back" / name).read_bytes() == path.read_bytes()
    with pytest.raises(RecipeError, match="above zero"):
        split(files, tmp_path / "parts", "all", 0)


def edit(path: Path, change: str, to: str) -> None:
    text = path.read_text("utf-8")
    assert change in text
    path.write_text(text.replace(change, to, 1), "utf-8")


FAULTS = {
    "a part is missing": (lambda d: (d / "run.01").unlink(), r"part not found: .*run\.01"),
    "a part is short": (lambda d: (d / "run.01").write_bytes(b"abc"), r"run\.01 has 3 bytes, not 40; bring it again"),
    "a part has changed": (lambda d: (d / "run.02").write_bytes(b"x" * 20), r"run\.02 has another sha256"),
    "no index": (lambda d: (d / "run.json").unlink(), r"index of parts not found: .*run\.json"),
    "half an index": (lambda d: (d / "run.json").write_text('{"files": [', "utf-8"), r"run\.json is damaged"),
    "an index of something else": (lambda d: (d / "run.json").write_text("{}", "utf-8"), r"run\.json is damaged"),
    "a name outside": (lambda d: edit(d / "run.json", '"b"', '"../b"'), r"run\.json is damaged"),
    "files that are not in the parts": (lambda d: edit(d / "run.json", '"size": 50', '"size": 51'), r"is not what the index says"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_parts_are_one_line_and_touch_nothing(tmp_path: Path, fault: str) -> None:
    rng = np.random.default_rng(2)
    for name in "ab":
        (tmp_path / name).write_bytes(rng.bytes(50))
    index = split({n: tmp_path / n for n in "ab"}, tmp_path / "parts", "run", 40)
    breaks, message = FAULTS[fault]
    breaks(tmp_path / "parts")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a").write_bytes(b"as it was")
    with pytest.raises(RecipeError, match=message) as caught:
        join(index, tmp_path / "home")
    assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.joinpath("home").iterdir()] == ["a"]
    assert (tmp_path / "home" / "a").read_bytes() == b"as it was"


def test_a_checkpoint_of_another_text_or_half_of_one(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(root / "whole", work)
    edit(work / "vocab.txt", "[UNK]\n", "[UNKNOWN]\n")
    with pytest.raises(RecipeError, match="another vocab.txt"):
        driver.run(["train", *flags(root, work)])
    whole = (work / "checkpoint.pt").read_bytes()
    (work / "checkpoint.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecipeError, match="is no whole checkpoint"):
        driver.run(["train", *flags(root, work)])
    with pytest.raises(RecipeError, match="no index of parts in"):
        driver.run(["join", "--work", str(tmp_path / "nothing")])


def test_preparing_again_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    """The vocabulary too: a run may go on, on another machine, from its checkpoint alone."""
    for i in range(3):
        driver.run(["prepare", *flags(root, tmp_path / str(i))])
        for name in ("vocab.txt", "tokenizer.json", "train.tok", "train.sent", "held.tok", "counts.json"):
            assert (tmp_path / str(i) / name).read_bytes() == (root / "whole" / name).read_bytes(), name


def test_a_run_starts_from_a_model_folder(root: Path, tmp_path: Path) -> None:
    """Its vocabulary and weights; a deeper model repeats its layers."""
    start = root / "whole" / "model"
    driver.run(["prepare", *flags(root, tmp_path), "--held-out", "3", "--start", str(start)])
    assert (tmp_path / "vocab.txt").read_bytes() == (start / "vocab.txt").read_bytes()

    state, trained = read_weights(start), checkpoint(root / "whole")
    shape = Shape(**trained["shape"])
    model = MaskedLM(shape)
    model.load_hf(state)
    for name, v in trained["model"].items():
        step = v.abs().amax(-1, keepdim=True) / 127 if v.ndim == 2 else v.abs() * 2**-10
        assert torch.all((model.state_dict()[name] - v).abs() <= 0.5001 * step + 1e-7), name
    deep = MaskedLM(replace(shape, num_hidden_layers=2 * shape.num_hidden_layers))
    deep.load_hf(state)
    for i, layer in enumerate(deep.layers):
        assert same(layer.state_dict(), model.layers[i % len(model.layers)].state_dict())
    with pytest.raises(RecipeError, match="weights of another size"):
        MaskedLM(replace(shape, hidden_size=16)).load_hf(state)


def test_prepared_text_is_kept_until_the_settings_change(root: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "train.tok"
    driver.run(["prepare", *flags(root, tmp_path)])
    first = tokens.stat().st_mtime_ns
    driver.run(["prepare", *flags(root, tmp_path)])
    assert tokens.stat().st_mtime_ns == first
    driver.run(["prepare", *flags(root, tmp_path), "--held-out", "3"])
    assert tokens.stat().st_mtime_ns > first


def test_device_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == "cpu"
    with pytest.raises(RecipeError, match="no CUDA device found"):
        pick_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [pick_device(d) for d in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


SENTENCES = ["the old man opened the door again .", "my sister", "", "a child did not see her letter at night .",
             "his wife remembered an open window after the storm .", "the doctor " * 40, "the captain looked at the river ."]  # fmt: skip


def test_pseudo_perplexity_is_that_of_transformers(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one forward pass of BertForMaskedLM for every piece, and in windows of two sentences."""
    from transformers import BertTokenizer

    from scripts.mlm.export import hf_model

    shape = Shape(**checkpoint(root / "whole")["shape"])
    hf = hf_model(read_weights(root / "whole" / "model"), shape)
    tokenizer = BertTokenizer(str(root / "whole" / "model" / "vocab.txt"))
    total = words = 0
    for s in SENTENCES:
        ids = tokenizer(s, return_tensors="pt").input_ids[0]
        if not 2 < len(ids) <= shape.max_position_embeddings:
            continue
        words += len(s.split())
        for at in range(1, len(ids) - 1):
            hidden = ids.clone()
            hidden[at] = MASK
            with torch.no_grad():
                total -= torch.log_softmax(hf(hidden[None]).logits[0, at].double(), -1)[ids[at]].item()
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES) + "\n", "utf-8")
    m = pseudo.Scorer(root / "whole" / "model")
    whole = pseudo.pseudo_perplexity(m, text)
    assert whole["first"] == whole["of"] == 6 and whole["scored"] == 5 and whole["words"] == words
    assert whole["pseudo_perplexity_per_word"] == pytest.approx(math.exp(total / words), abs=0.011, rel=1e-6)

    monkeypatch.setattr(pseudo, "WINDOW", 2)
    store = tmp_path / "store.json"
    for first in (2, 4, 6, 6):
        got = pseudo.pseudo_perplexity(m, text, store=store, minutes=1e-9)
        assert got["first"] == first
    assert got == whole and len(json.loads(store.read_text("utf-8"))["sums"]) == 6
    assert pseudo.pseudo_perplexity(m, text, 3, store)["first"] == 3

    edit(text, "my sister", "the captain")  # another text: nothing of the old one counts
    assert pseudo.pseudo_perplexity(m, text, store=store, minutes=1e-9)["first"] == 2
    store.write_text('{"key"', "utf-8")
    with pytest.raises(RecipeError, match="damaged; remove it"):
        pseudo.pseudo_perplexity(m, text, store=store)
