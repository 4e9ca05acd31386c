"""The rivals in the benchmark compute the energy that they are timed on, and draw from its proposal."""

import functools
import subprocess
import sys
from pathlib import Path

import bench_torch
import numpy as np
import pytest
import run
import torch
from best import Best
from best_clip import BestClip
from plain import Clip, Pll
from tower import random_tower

from export_bert import random_model

VOCAB, ALLOWED = 300, list(range(20, 290))


class Case:
    """A small model and a task, for all programs."""

    def __init__(self, plain, best, model, spec: dict) -> None:
        self.plain, self.best, self.model, self.spec = plain, best, model, spec
        self.x = torch.tensor(spec["init"])

    def authors(self) -> bench_torch.Authors:
        program = bench_torch.Authors(self.plain(self.model, self.spec), self.spec)
        program.use(self.spec["init"])
        return program

    def cached(self, **how) -> bench_torch.Cached:
        program = bench_torch.Cached(functools.partial(self.best, **how), self.model, self.spec, False)
        program.use(self.spec["init"])
        return program


def pll() -> Case:
    torch.manual_seed(0)
    model = random_model(VOCAB, 32, 3, 4, 16, attention="sdpa").requires_grad_(False)
    ids, init = torch.randint(20, 290, (10,)).tolist(), torch.randint(20, 290, (5, 3)).tolist()
    return Case(Pll, Best, model, {"ids": ids, "blanks": [1, 4, 8], "allowed": ALLOWED, "mask_id": 6, "init": init, "step_size": 0.5, "device": "cpu"})


def clip(blanks: list[int]) -> Case:
    """A text with words before, between and after the blanks."""
    model = random_tower(VOCAB, 32, 3, 4)
    ids, target = torch.randint(0, 298, (10,)).tolist(), torch.randn(32)
    ids[0], ids[-1] = VOCAB - 2, VOCAB - 1
    init = torch.randint(0, len(ALLOWED), (5, len(blanks))).tolist()
    return Case(Clip, BestClip, model, {"ids": ids, "blanks": blanks, "allowed": ALLOWED, "init": init, "step_size": 0.5, "device": "cpu", "weight": 30.0,
                                        "target": (target / target.norm()).tolist()})  # fmt: skip


CASES = {"pll": pll, "clip": lambda: clip([1, 2, 3]), "clip-words": lambda: clip([3, 5, 7])}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.mark.parametrize("attention", ["flash", "plain"])
def test_best_computes_what_autograd_computes(case, attention):
    x, authors = case.x, case.authors()
    with torch.inference_mode():
        u, p = case.best(case.model, case.spec, attention)(x)
    want = torch.softmax(authors.gradient(x) / 2 + authors.energy.bias, -1).flatten(0, 1)
    torch.testing.assert_close(u, authors.energy(authors.one_hot(x)), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(p, want, rtol=1e-4, atol=1e-7)
    for a, b in zip(authors.check(), case.cached().check(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_autocast_rounds_little(case):
    """U and tilt in bfloat16 are near those in float32, and not equal to them."""
    how = {"packed": False} if case.best is BestClip else {}
    with torch.inference_mode():
        (u, p), rounded = (case.cached(**how).evaluate(case.x), case.cached(**how))
        bench_torch.halve(rounded.evaluate)
        with torch.autocast("cpu", torch.bfloat16):
            v, q = rounded.evaluate(case.x)
    assert 0 < (u - v).abs().max() < 0.2
    assert 0 < (p.log() - q.log())[p > 0].abs().max() < 0.2


@pytest.mark.parametrize("blanks", [[1, 2, 3], [3, 5, 7]])
def test_prompts_are_read_as_transformers_reads_them(blanks):
    """The energy by one-hot codes is that of the tower's own forward pass on token ids."""
    case = clip(blanks)
    ids = torch.tensor(case.spec["ids"]).repeat(len(case.x), 1)
    ids[:, blanks] = torch.tensor(ALLOWED)[case.x]
    vectors = torch.nn.functional.normalize(case.model(input_ids=ids).text_embeds, dim=1)
    authors = case.authors()
    torch.testing.assert_close(authors.energy(authors.one_hot(case.x)), 30 * vectors @ torch.tensor(case.spec["target"]), rtol=1e-5, atol=1e-5)


def test_proposals_are_the_same_law(case):
    authors, cached, x = case.authors(), case.cached(), case.x
    law = authors.proposal(x)
    y = cached.draw()
    torch.testing.assert_close(cached.log_prob(cached.weighted, y).float(), law.log_prob(y).sum(1), rtol=1e-4, atol=1e-4)
    values = authors.energy.values
    draws, counts = 4000, torch.zeros(15, values)
    for _ in range(draws):
        counts.scatter_add_(1, cached.draw().view(-1, 1), torch.ones(15, 1))
    expected = draws * law.probs.view(15, values)
    assert counts[expected == 0].sum() == 0
    common = expected > 5
    chi2 = ((counts - expected)[common] ** 2 / expected[common]).sum().item()
    degrees = common.sum().item()
    assert abs(chi2 - degrees) < 5 * (2 * degrees) ** 0.5


def test_steps_move_and_keep_the_cache_current(case):
    with torch.inference_mode():
        cached = case.cached()
        for _ in range(20):
            assert 0 <= cached.step() <= 1
        u, p = cached.evaluate(cached.x)
        torch.testing.assert_close(cached.u, u)
        for kept, new in zip(cached.weighted, cached.weigh(p, cached.x), strict=True):
            torch.testing.assert_close(kept, new)
    assert not torch.equal(cached.x, case.x)


def test_gradients_agree():
    """The benchmark of gradients runs, and stops where ours and autograd's differ."""
    command = [sys.executable, str(Path(__file__).with_name("grad.py")), "--quick", "--networks", "mlp-ebm,resnet-binary,lstm"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in out.splitlines()] == ["network", "mlp-ebm", "resnet-binary", "lstm"]


def test_prompts_agree():
    """The benchmark of prompts runs, and stops where Go and the PyTorch programs differ in U or tilt."""
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "--quick", "--only", "clip", "--chains", "1,3", "--threads", "1"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split()[:4] for line in out.splitlines() if line.startswith("small")]
    ours = ["ours", "int8:1", "int8:8"]
    assert [r[:3] for r in rows[:12]] == [["small", c, name] for c in "13" for name in (*ours, "authors", "best", "autocast")]
    assert rows[12:] == [["small", c, name, kind] for c in "13" for kind in ("float32", "bfloat16") for name in ours]


def test_effective_draws_of_recorded_chains():
    """Independent draws count in full, and chains in which a blank never changes are worth nothing for it."""
    rng, steps, chains = np.random.default_rng(3), 4000, 2
    u, codes = rng.standard_normal((steps, chains)), rng.integers(0, 50, (steps, chains, 3))
    block = {"u": u.tolist(), "codes": codes.reshape(steps, -1).tolist()}
    assert run.effective_draws(block) == pytest.approx((steps * chains, steps * chains), rel=0.1)
    codes[:, :, 1] = 7
    block["codes"] = codes.reshape(steps, -1).tolist()
    assert run.effective_draws(block)[1] == 0
