"""The programs of lattice.py target the law that they are timed on, and its ESS is right."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lattice import effective
from rivals import Energy

HERE = Path(__file__).resolve().parent


def test_ess_of_autoregressive_chains():
    """n draws of an AR(1) process with coefficient 0.8 are worth n·(1 - 0.8)/(1 + 0.8)."""
    noise, u = np.random.default_rng(1).standard_normal((20_000, 20)), np.zeros((20_000, 20))
    for t in range(1, len(u)):
        u[t] = 0.8 * u[t - 1] + noise[t]
    assert effective(u) / u.shape[1] == pytest.approx(0.2 / 1.8, rel=0.05)


def mean_of_u(e: Energy, joint: bool) -> tuple[float, float]:
    """Mean and standard deviation of U by enumeration."""
    x = np.array(list(itertools.product([e.low, 1.0], repeat=e.sites)))
    if e.ising:
        u = sum(e.coupling * x[:, i] * x[:, k] for i, k in e.pairs())
    else:
        w, b, c = e.weights
        z = np.array(list(itertools.product([0.0, 1.0], repeat=len(c))))
        u = ((x @ b)[:, None] + z @ c + x @ w.T @ z.T).ravel() if joint else x @ b + np.log1p(np.exp(x @ w.T + c)).sum(1)
    p = np.exp(u - u.max())
    mean = (p * u).sum() / p.sum()
    return mean, ((p * (u - mean) ** 2).sum() / p.sum()) ** 0.5


@pytest.mark.parametrize(("sampler", "energy", "step_size"), [("dmala", "ising:3x4,0.3", 0.8), ("dmala", "rbm:8x4,", 0.5), ("gibbs", "rbm:8x4,", 0)])
def test_torch_targets_the_law(sampler, energy, step_size, tmp_path):
    chains, steps = 500, 60
    if energy.startswith("rbm"):
        energy += f"{tmp_path}/weights"
        np.random.default_rng(2).normal(0, 0.5, 8 * 4 + 8 + 4).astype(np.float32).tofile(tmp_path / "weights")
    command = [sys.executable, str(HERE / "rivals.py"), "torch", sampler, energy, str(step_size), str(chains), "1"]
    out = subprocess.run(command, input=f"{steps} -\n{steps} {tmp_path}/u\n", capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert all(json.loads(line)["seconds"] > 0 for line in out.stdout.splitlines())
    u = np.fromfile(tmp_path / "u", np.float32).reshape(steps, chains)
    mean, deviation = mean_of_u(Energy(energy), joint=sampler == "gibbs")
    assert abs(u[-1].mean() - mean) < 4 * deviation / chains**0.5
