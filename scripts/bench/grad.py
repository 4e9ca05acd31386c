"""Compares gradients of ONNX files with PyTorch's autograd, in one run.

    grad.py [--quick] [--networks bert-base,lstm] [--minutes 6]

Each network is exported once. Ours runs the file and the gradient model made of it; torch runs the
module, with its weights as constants. Both stay alive and take turns in short blocks; a time is the
median over blocks. First it is checked that both agree on outputs and gradients.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

NAMES = ["bert-base", "clip-text", "vit", "llama", "resnet-ebm", "resnet-binary", "u-net", "lstm", "gru", "mlp-ebm"]
BLOCK = 0.7  # seconds


def launch(folder: Path, name: str, threads: int, quick: bool) -> dict[str, run.Program]:
    env = {**run.os.environ, "OMP_NUM_THREADS": str(threads), "GOMAXPROCS": str(threads)}
    command = [sys.executable, str(run.HERE / "bench_grad_torch.py"), "--network", name, "--threads", str(threads), "--export", str(folder)]
    torch = run.Program(command + ["--quick"] * quick, env)
    torch.ready = torch.read()
    shape = ",".join(map(str, torch.ready["shape"]))
    ours = run.Program([str(folder / "ours"), "--model", str(folder / f"{name}.onnx"), "--x", str(folder / f"{name}.f32"),
                        "--shape", shape, "--threads", str(threads)], env)  # fmt: skip
    ours.ready = ours.read()
    return {"ours": ours, "torch": torch}


def agree(programs: dict[str, run.Program]) -> float:
    """The worst difference of the gradients, relative to the largest entry."""
    want, have = (programs[n].ask("check") for n in ("torch", "ours"))
    worst = 0.0
    for key in ("u", "g"):
        a, b = np.array(want[key]), np.array(have[key])
        worst = max(worst, np.abs(a - b).max() / np.abs(a).max())
    if not worst < 1e-4:
        raise SystemExit(f"bench: the gradients disagree: relative difference {worst:.1e}")
    return worst


def measure(programs: dict[str, run.Program], seconds: float) -> dict[tuple[str, str], float]:
    cells = [(n, what) for what in ("forward", "both") for n in programs]
    times = {c: [] for c in cells}
    count = {}
    for n, what in cells:
        programs[n].ask(f"{what} 1")
        count[n, what] = max(1, round(BLOCK / programs[n].ask(f"{what} 2")["seconds"]))
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[cells[0]]) < 3:
        for n, what in cells:
            time.sleep(0.15)  # idle threads of the previous program stop spinning
            times[n, what].append(programs[n].ask(f"{what} {count[n, what]}")["seconds"])
    return {c: statistics.median(t) for c, t in times.items()}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--networks", default=",".join(NAMES))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--minutes", type=float, default=6, help="of measuring, shared by all networks")
    p.add_argument("--quick", action="store_true", help="small networks, little measuring")
    a = p.parse_args()
    chosen = a.networks.split(",")
    print(f"{'network':14} {'forward ms':>10} {'torch':>8} {'both ms':>9} {'torch':>8} {'backward/forward':>17} {'torch':>6} {'ours is':>8} {'rewrite ms':>11} {'difference':>11}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["go", "build", "-o", str(folder / "ours"), "./scripts/bench/grad"], cwd=run.ROOT, check=True)
        for name in chosen:
            programs = launch(folder, name, a.threads, a.quick)
            try:
                off = agree(programs)
                t = measure(programs, 1 if a.quick else a.minutes * 60 / len(chosen))
            finally:
                for q in programs.values():
                    q.close()
            back = {n: t[n, "both"] / t[n, "forward"] - 1 for n in programs}
            print(f"{name:14} {1e3 * t['ours', 'forward']:10.2f} {1e3 * t['torch', 'forward']:8.2f} {1e3 * t['ours', 'both']:9.2f} {1e3 * t['torch', 'both']:8.2f} "
                  f"{back['ours']:17.2f} {back['torch']:6.2f} {t['torch', 'both'] / t['ours', 'both']:7.2f}x {1e3 * programs['ours'].ready['rewrite']:11.0f} {off:11.1e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
