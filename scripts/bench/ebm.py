"""Updates of an energy-based ResNet: gradhop beside the authors' algorithm and the best PyTorch, in one run.

An update is persistent contrastive divergence: STEPS steps of DMALA for BATCH chains, the gradient of mean U(data) - mean U(samples)
by the weights, and Adam. All use the same network and the same number of threads, and float32 but for the last: with bfloat16
by autocast, values and gradients are rounded. Printed are CPU seconds (user and system), which
other programs on the machine change little. The first update is not counted: it compiles and warms up.

    python scripts/bench/ebm.py --width 64 --depth 8 --batch 16 --steps 10
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from ebm_resnet import ResNet

SIDE, ALPHA, RATE = 28, 0.2, 1e-4


def value_and_gradient(net, x):
    x = x.detach().requires_grad_()
    u = net(x)
    return u.detach(), torch.autograd.grad(u.sum(), x)[0]


def proposal(x, g):
    """Logits of flipping each site (Zhang, Liu and Liu 2022, eq. 4)."""
    return -(2 * x - 1) * g / 2 - 1 / (2 * ALPHA)


def log_probability(logits, flips):
    return -torch.nn.functional.binary_cross_entropy_with_logits(logits, flips, reduction="none").sum(1)


def authors(net, x, steps):
    """As in the published code: both gradients and both values anew in every step."""
    for _ in range(steps):
        logits = proposal(x, value_and_gradient(net, x)[1])
        flips = torch.bernoulli(torch.sigmoid(logits))
        y = (x - flips).abs()
        back = proposal(y, value_and_gradient(net, y)[1])
        with torch.no_grad():
            log_ratio = net(y) - net(x) + log_probability(back, flips) - log_probability(logits, flips)
        x = torch.where((log_ratio.exp() > torch.rand(len(x)))[:, None], y, x)
    return x


def cached(net, x, steps):
    """One value and gradient a step: those of the current state are kept."""
    u, g = value_and_gradient(net, x)
    for _ in range(steps):
        logits = proposal(x, g)
        flips = torch.bernoulli(torch.sigmoid(logits))
        y = (x - flips).abs()
        v, h = value_and_gradient(net, y)
        log_ratio = v - u + log_probability(proposal(y, h), flips) - log_probability(logits, flips)
        accept = log_ratio.exp() > torch.rand(len(x))
        x, g, u = torch.where(accept[:, None], y, x), torch.where(accept[:, None], h, g), torch.where(accept, v, u)
    return x


def torch_updates(step, layout, compiled, model, data, o, half=False):
    """CPU seconds of an update in torch."""
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        return timed_updates(step, layout, compiled, model, data, o)


def timed_updates(step, layout, compiled, model, data, o):
    net = ResNet(SIDE, o.width, o.depth).read(model).to(memory_format=layout)
    run = torch.compile(net) if compiled else net
    optimizer = torch.optim.Adam(net.parameters(), RATE, maximize=True)
    x = torch.randint(0, 2, (o.batch, SIDE**2)).float()
    for k in range(o.updates + 1):
        if k == 1:
            start = time.process_time()
        net.requires_grad_(False)
        x = step(run, x, o.steps)
        net.requires_grad_(True)
        optimizer.zero_grad()
        rows = data[torch.randint(0, len(data), (o.batch,))]
        (run(rows).mean() - run(x).mean()).backward()
        optimizer.step()
    return (time.process_time() - start) / o.updates


def ours(program, model, o, folder):
    """CPU seconds of an update of gradhop: a longer run less a run of one update."""

    def run(updates):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            subprocess.run([program, "ebm", "train", model, "--space", f"binary:{SIDE**2}", "--data", folder / "data.npy", "--out", f"{out}/run", "--buffer", str(o.batch),
                            "--batch-size", str(o.batch), "--steps", str(o.steps), "--step-size", str(ALPHA), "--learning-rate", str(RATE),
                            "--updates", str(updates), "--threads", str(o.threads), "--quiet"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return (run(1 + o.updates) - run(1)) / o.updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"width": 64, "depth": 8, "batch": 16, "steps": 10, "updates": 4, "threads": 1, "blocks": 3}.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    os.environ["OMP_NUM_THREADS"] = str(o.threads)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program, model = folder / "gradhop", folder / "resnet.onnx"
        subprocess.run(["go", "build", "-o", program, "./cmd/gradhop"], cwd=ROOT, check=True)
        subprocess.run([program, "ebm", "new", "resnet", "--space", f"binary:{SIDE**2}", "--width", str(o.width), "--depth", str(o.depth), "-o", model], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        data = np.random.default_rng(0).integers(0, 2, (200, SIDE**2), dtype=np.uint8)
        np.save(folder / "data.npy", data)
        data = torch.tensor(data, dtype=torch.float32)
        plain, last = torch.contiguous_format, torch.channels_last
        programs = {
            "gradhop": lambda: ours(program, model, o, folder),
            "authors' algorithm, torch": lambda: torch_updates(authors, plain, False, model, data, o),
            "cached, torch": lambda: torch_updates(cached, plain, False, model, data, o),
            "cached, channels last, torch": lambda: torch_updates(cached, last, False, model, data, o),
        }
        if not o.no_compile:
            programs["cached, channels last, compiled torch"] = lambda: torch_updates(cached, last, True, model, data, o)
        programs["cached, channels last, torch, bfloat16"] = lambda: torch_updates(cached, last, False, model, data, o, half=True)
        seconds = {name: [] for name in programs}
        for _ in range(o.blocks):  # in turn
            for name, measure in programs.items():
                seconds[name].append(measure())
        first = float(np.median(seconds["gradhop"]))
        print(f"ResNet {o.width} x {o.depth}, {o.batch} chains, {o.steps} steps an update, {o.threads} threads; CPU seconds an update, median of {o.blocks}")
        for name, list_ in seconds.items():
            s = float(np.median(list_))
            print(f"{name:40} {s:8.3f} s   {o.batch * o.steps / s:8.1f} sampler steps a CPU second   {s / first:5.2f} x gradhop")


if __name__ == "__main__":
    main()
