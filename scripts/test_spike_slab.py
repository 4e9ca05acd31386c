"""The example of a mixed space: the program's inclusion probabilities are those of the enumerated posterior."""

import subprocess
from pathlib import Path

import numpy as np
from scripts import spike_slab


def test_inclusion(tmp_path):
    program = tmp_path / "gradhop"
    subprocess.run(["go", "build", "-o", program, "./cmd/gradhop"], cwd=Path(__file__).parents[1], check=True)
    found, error, want = spike_slab.main(["--program", str(program), "--out", str(tmp_path / "run")])
    assert want.min() < 0.1 and want.max() > 0.8  # neither the prior nor certainty
    assert np.all(error < 0.03) and np.all(np.abs(found - want) < 5 * error)
