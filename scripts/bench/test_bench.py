"""The rivals in the benchmark compute the energy that they are timed on, and draw from its proposal."""

import subprocess
import sys
from pathlib import Path

import bench_torch
import pytest
import torch
from best import Best

from export_bert import random_model

VOCAB, ALLOWED = 300, list(range(20, 290))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return random_model(VOCAB, 32, 3, 4, 16, attention="sdpa").requires_grad_(False)


@pytest.fixture(scope="module")
def spec():
    ids = torch.randint(20, 290, (10,)).tolist()
    init = torch.randint(20, 290, (5, 3)).tolist()
    return {"ids": ids, "blanks": [1, 4, 8], "allowed": ALLOWED, "mask_id": 6, "init": init, "step_size": 0.5}


def started(program, spec):
    program.use(spec["init"])
    return program


@pytest.mark.parametrize("attention", ["flash", "plain"])
def test_best_computes_what_autograd_computes(model, spec, attention):
    x = torch.tensor(spec["init"])
    authors = started(bench_torch.Authors(model, spec), spec)
    with torch.inference_mode():
        u, p = Best(model, spec, attention)(x)
    want = torch.softmax(authors.gradient(x) / 2 + authors.allowed, -1).flatten(0, 1)
    torch.testing.assert_close(u, authors.energy(authors.one_hot(x)), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(p, want, rtol=1e-4, atol=1e-7)
    for a, b in zip(authors.check(), started(bench_torch.Cached(model, spec, False), spec).check(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_proposals_are_the_same_law(model, spec):
    authors = started(bench_torch.Authors(model, spec), spec)
    cached = started(bench_torch.Cached(model, spec, False), spec)
    x = torch.tensor(spec["init"])
    law = authors.proposal(x)
    y = cached.draw()
    torch.testing.assert_close(cached.log_prob(cached.weighted, y).float(), law.log_prob(y).sum(1), rtol=1e-4, atol=1e-4)
    draws, counts = 4000, torch.zeros(15, VOCAB)
    for _ in range(draws):
        counts.scatter_add_(1, cached.draw().view(-1, 1), torch.ones(15, 1))
    expected = draws * law.probs.view(15, VOCAB)
    assert counts[expected == 0].sum() == 0
    common = expected > 5
    chi2 = ((counts - expected)[common] ** 2 / expected[common]).sum().item()
    degrees = common.sum().item()
    assert abs(chi2 - degrees) < 5 * (2 * degrees) ** 0.5


def test_steps_move_and_keep_the_cache_current(model, spec):
    with torch.inference_mode():
        cached = started(bench_torch.Cached(model, spec, False), spec)
        for _ in range(20):
            assert 0 <= cached.step() <= 1
        u, p = cached.evaluate(cached.x)
        torch.testing.assert_close(cached.u, u)
        for kept, new in zip(cached.weighted, cached.weigh(p, cached.x), strict=True):
            torch.testing.assert_close(kept, new)
    assert not torch.equal(cached.x, torch.tensor(spec["init"]))


def test_gradients_agree():
    """The benchmark of gradients runs, and stops where ours and autograd's differ."""
    command = [sys.executable, str(Path(__file__).with_name("grad.py")), "--quick", "--networks", "mlp-ebm,resnet-binary,lstm"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in out.splitlines()] == ["network", "mlp-ebm", "resnet-binary", "lstm"]
