"""Samplers on an Ising lattice, an RBM and the posterior of a logistic regression: gradhop beside PyTorch, JAX, thrml and blackjax, in one run.

    lattice.py [--jax PYTHON] [--threads 2] [--blocks 5] [--seconds 1] [--only TEXT] [--quick]

The programs of a job stay alive and take turns in blocks of about the same time. Printed are

    steps/s  steps of all 100 chains in a second, the median of the blocks
    cpu ms   processor time of a step over all threads, which other work on the machine disturbs less
    ESS/s    effective draws of U in a second: the bulk ESS of one recorded iteration times the speed
    ratios   gradhop's steps/s, ESS/s and steps per cpu second over those of the rival, and the target for steps/s, or for ESS/s
             where gradhop tunes itself in warm-up

The mean of U in the recorded iterations must agree with gradhop's. Of a logistic regression the first coefficient stands for U, and
gradhop is also compared with its own gradient alone, of all chains; with ",10", the scales of features range from 1 to 10, and gradhop
tunes step size and scales in warm-up, which blackjax's samplers do not. This interpreter needs torch; the one given by --jax needs the
packages of requirements-jax.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
CHAINS = 100
LANGEVIN = [("mala", 0.35), ("barker", 0.25), ("sgld", 0.1)]


@dataclass
class Job:
    """A sampler on an energy, as gradhop names them, and its rivals: library -> target for the ratio of steps/s."""

    sampler: str
    energy: str
    step_size: float  # 0: the sampler has none
    rivals: dict[str, float]
    sweeps: int = 1  # of a step of gibbs
    least: float = 1  # deviation of the narrowest coefficient: gradhop tunes itself in warm-up, the step size of others is multiplied by it

    def __str__(self) -> str:
        return f"{self.sampler}{f' x {self.sweeps}' if self.sweeps > 1 else ''}, {self.energy}"


def jobs(lattice: str, machine: str, regression: str) -> list[Job]:
    return [
        Job("dmala", f"ising:{lattice},0.3", 0.8, {"torch": 10, "discs": 3}),
        Job("gibbs", f"ising:{lattice},0.3", 0, {"thrml": 5}),
        Job("gibbs", f"ising:{lattice},0.3", 0, {"thrml": 5}, sweeps=10),
        Job("dmala", f"rbm:{machine},1", 0.2, {"torch": 3, "discs": 3}),
        Job("gibbs", f"rbm-joint:{machine},1", 0, {"torch": 3}),
        *(Job(name, f"logistic:{regression}", step, {"blackjax": 1, "gradient": 1 / 1.2}) for name, step in LANGEVIN),
        *(Job(name, f"logistic:{regression},10", step, {"blackjax": 1}, least=0.21) for name, step in LANGEVIN),
    ]


class Program:
    """A process that answers a line "STEPS FILE" with a line of JSON."""

    def __init__(self, command: list[str], threads: int) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": str(threads), "GOMAXPROCS": str(threads)}
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.run(1)  # starts one after the other: gradhop, the first, writes the weights that the rivals read

    def run(self, steps: int, path: str = "-") -> tuple[float, float]:
        """Seconds and processor seconds of so many steps. U of all chains after each step goes to path, unless it is "-"."""
        before = self.cpu()
        self.process.stdin.write(f"{steps} {path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"lattice.py: {' '.join(self.command)} ended with code {self.process.wait()}; its message is above")
        return json.loads(answer)["seconds"], self.cpu() - before

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def effective(u: np.ndarray) -> float:
    """Effective draws in one iteration of chains u, [iteration, chain], by Geyer's initial positive sequence."""
    n = len(u)
    spectrum = np.fft.rfft(u - u.mean(), 2 * n, axis=0)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), axis=0)[:n].mean(1) / n
    rho, total = covariance / covariance[0], -1.0
    for k in range(0, n - 1, 2):
        if rho[k] + rho[k + 1] < 0:
            break
        total += 2 * (rho[k] + rho[k + 1])
    return u.shape[1] / max(total, 1e-9)


def measure(commands: dict[str, list[str]], record: int, a: argparse.Namespace, folder: str) -> dict[str, list[float]]:
    """Seconds and processor seconds of a step, and effective draws in a step, of each program."""
    programs = {name: Program(command, a.threads) for name, command in commands.items()}
    steps, ess, mean, blocks = {}, {}, {}, {name: [] for name in programs}
    for name, program in programs.items():
        program.run(record)  # burn-in
        program.run(record, f"{folder}/u")
        u = np.fromfile(f"{folder}/u", np.float32).reshape(record, CHAINS).astype(float)
        ess[name] = effective(u) if name != "gradient" else 0
        mean[name] = u.mean(), u.var() / (max(ess[name], 1e-9) * record)
        step = program.run(record)[0] / record  # compiled by now
        steps[name] = max(10, round(a.seconds / step))
        program.run(steps[name])  # JAX compiles for the number of steps
    for _ in range(a.blocks):
        for name, program in programs.items():
            blocks[name].append([t / steps[name] for t in program.run(steps[name])])
    for program in programs.values():
        program.close()
    for name in programs:
        score = (mean[name][0] - mean["gradhop"][0]) / (mean[name][1] + mean["gradhop"][1]) ** 0.5
        if abs(score) > 5 and name != "gradient":
            sys.exit(f"lattice.py: mean U of {name} is {mean[name][0]:.3f}, of gradhop {mean['gradhop'][0]:.3f}: z-score {score:.1f}")
    return {name: [statistics.median(column) for column in zip(*done, strict=True)] + [ess[name]] for name, done in blocks.items()}


def report(job: Job, found: dict[str, list[float]]) -> None:
    own_seconds, own_cpu, own_ess = found["gradhop"]
    for name, (seconds, cpu, ess) in found.items():
        line = f"{job!s:28}{name:9}{1 / seconds:10.1f}{cpu * 1e3:9.3f}{ess / seconds:10.0f}"
        if name != "gradhop":
            ratio, cpu_ratio, target = seconds / own_seconds, cpu / max(own_cpu, 1e-9), job.rivals[name]
            ess_ratio = own_ess / own_seconds / (ess / seconds) if ess else 0
            shown = f"{ess_ratio:8.1f}x" if ess else 9 * " "
            met = (ratio if job.least == 1 else ess_ratio) >= target
            line += f"{ratio:8.2f}x{shown}{cpu_ratio:8.2f}x{target:7.2g}x {'met' if met else 'missed'}"
        print(line, flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jax", default=sys.executable, help="interpreter that has jax and thrml; '' leaves them out")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--blocks", type=int, default=5, help="blocks of each program")
    p.add_argument("--seconds", type=float, default=1, help="length of a block, about")
    p.add_argument("--record", type=int, default=300, help="iterations from which ESS is estimated")
    p.add_argument("--only", default="", help="only jobs whose name contains this text")
    p.add_argument("--quick", action="store_true", help="tiny energies, to see that it works; targets mean nothing then")
    a = p.parse_args()
    if a.quick:
        a.blocks, a.seconds, a.record = 2, 0.05, 40
    if hasattr(os, "sched_setaffinity"):  # all programs inherit the same processors
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-a.threads :])
    print(f"{a.threads} threads, {CHAINS} chains, medians of {a.blocks} blocks, load {os.getloadavg()[0]:.1f}")
    print(f"{'':28}{'program':9}{'steps/s':>10}{'cpu ms':>9}{'ESS/s':>10}{'steps/s':>9}{'ESS/s':>9}{'cpu':>9}{'target':>8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ours = f"{folder}/lattice"
        subprocess.run(["go", "build", "-o", ours, "./scripts/bench/lattice"], cwd=HERE.parents[1], check=True)
        for job in jobs("4x4", "12x5", "5x20") if a.quick else jobs("20x20", "784x500", "1000x2000"):
            if a.only not in str(job):
                continue
            weights, energy = f"{folder}/weights", job.energy
            commands = {"gradhop": [ours, "-sampler", job.sampler, "-energy", energy, "-chains", str(CHAINS), "-sweeps", str(job.sweeps), "-weights", weights]}
            if not energy.startswith("ising"):  # the rivals take its weights
                energy = energy.split(":")[0].split("-")[0] + ":" + energy.split(":")[1].split(",")[0] + "," + weights
            if job.least != 1:
                commands["gradhop"] += ["-warmup", str(10 * a.record)]
            if job.step_size and (job.least == 1 or job.sampler == "sgld"):
                commands["gradhop"] += ["-step-size", str(job.step_size)]
            for library in job.rivals:
                if library == "gradient":
                    commands[library] = [ours, "-sampler", library, "-energy", job.energy, "-chains", str(CHAINS)]
                    continue
                python = sys.executable if library == "torch" else a.jax
                if python:
                    commands[library] = [python, str(HERE / "rivals.py"), library, job.sampler, energy, str(job.step_size * job.least), str(CHAINS), str(job.sweeps)]
            report(job, measure(commands, a.record if job.least == 1 else 10 * a.record, a, folder))


if __name__ == "__main__":
    main()
