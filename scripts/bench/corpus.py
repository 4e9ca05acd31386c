"""Sentences a second when the blanks of a file are filled: gradhop beside fill-mask pipelines of transformers on the same ONNX file.

    corpus.py FILE... [--lines 2000] [--blanks 3] [--model FOLDER] [--threads 2] [--before PROGRAM] [--before-lines 100]

The corpus: lines of the files with 7 to 30 words, shuffled, the first --lines of them; 1 to --blanks words by turns become [MASK].
The pipelines, of batches of 8 and 32 in the order of the file and by length, fill those of one blank. Loading counts for gradhop
and not for the pipelines. --before is another build of gradhop, which fills the first --before-lines lines by infill --file.
CPU is user and system time: on a machine that has other work, compare that.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import onnxruntime
import torch
import transformers
from transformers.modeling_outputs import MaskedLMOutput

ROOT = Path(__file__).resolve().parents[2]


def corpus(files: list[Path], lines: int, most: int) -> list[str]:
    rng, pool = random.Random(1), []
    for path in files:
        pool += [words for words in map(str.split, path.read_text(encoding="utf-8").splitlines()) if 7 <= len(words) <= 30]
    rng.shuffle(pool)
    texts = []
    for words in pool:
        places = [k for k, word in enumerate(words) if re.fullmatch("[A-Za-z]+", word)]
        blanks = 1 + len(texts) % most
        if len(places) >= blanks and len(texts) < lines:
            for k in rng.sample(places, blanks):
                words[k] = "[MASK]"
            texts.append(" ".join(words))
    return texts


class OnnxModel(transformers.PreTrainedModel):
    """An ONNX file in place of a network of torch."""

    config_class = transformers.BertConfig

    def __init__(self, folder: Path, threads: int) -> None:
        super().__init__(transformers.AutoConfig.from_pretrained(folder))
        self.here = torch.nn.Parameter(torch.zeros(1))  # says on which device the model is
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        self.names = [i.name for i in self.session.get_inputs()]

    def forward(self, **tokens: torch.Tensor) -> MaskedLMOutput:
        (logits,) = self.session.run(["logits"], {name: tokens[name].numpy() for name in self.names})
        return MaskedLMOutput(logits=torch.from_numpy(logits))


class Timer:
    """Seconds by the clock and of the processor, of this process or of its children."""

    def __init__(self, who: int = resource.RUSAGE_SELF) -> None:
        self.who = who

    def used(self) -> float:
        usage = resource.getrusage(self.who)
        return usage.ru_utime + usage.ru_stime

    def __enter__(self) -> Self:
        self.clock, self.cpu = time.perf_counter(), self.used()
        return self

    def __exit__(self, *_: object) -> None:
        self.clock, self.cpu = time.perf_counter() - self.clock, self.used() - self.cpu


def report(name: str, lines: int, timer: Timer) -> None:
    print(f"{name:34} {lines:6} lines {timer.clock:8.1f} s {timer.cpu:8.1f} s of CPU {lines / timer.clock:8.1f} a second {lines / timer.cpu:8.1f} a second of CPU", flush=True)


def gradhop(program: str, texts: list[str], a: argparse.Namespace, folder: bool) -> tuple[Timer, list[dict]]:
    """Fill texts by a build of gradhop, into a folder or onto standard output: the best result of each."""
    with tempfile.TemporaryDirectory() as temporary:
        path, out = Path(temporary, "corpus.txt"), Path(temporary, "out")
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        command = [program, "infill", "--file", path, "--top=1", "--rank=logp", f"--threads={a.threads}", "--model", a.model, "--quiet"]
        command += [f"--out={out}/"] if folder else ["--format=jsonl", "--time-limit=0"]
        with Timer(resource.RUSAGE_CHILDREN) as timer:
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        if folder:
            shards = "".join(shard.read_text(encoding="utf-8") for shard in sorted(out.glob("shard-*.jsonl")))
            return timer, [json.loads(line)["infill"]["results"][0] for line in shards.splitlines()]
        return timer, [json.loads(line)["results"][0] for line in printed.splitlines()]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", type=Path)
    p.add_argument("--lines", type=int, default=2000)
    p.add_argument("--blanks", type=int, default=3)
    p.add_argument("--model", type=Path, default=ROOT / "models/data/bert-books")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--before", help="another build of the program")
    p.add_argument("--before-lines", type=int, default=100)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    texts = corpus(a.files, a.lines, a.blanks)
    with tempfile.TemporaryDirectory() as temporary:
        program = str(Path(temporary, "gradhop"))
        subprocess.run(["go", "build", "-trimpath", "-o", program, "./cmd/gradhop"], cwd=ROOT, check=True)
        timer, ours = gradhop(program, texts, a, folder=True)
        report(f"gradhop, up to {a.blanks} blanks", len(texts), timer)
        if a.before:
            before, theirs = gradhop(a.before, texts[: a.before_lines], a, folder=False)
            report("the build before", len(theirs), before)
            pairs = list(zip(ours, theirs))
            same = sum(x["fills"] == y["fills"] for x, y in pairs)
            differ = [x["logp_blanks"] - y.get("logp_blanks", y["logp"]) for x, y in pairs if x["fills"] != y["fills"]]
            print(f"{before.cpu / len(theirs) / timer.cpu * len(texts):.1f} times as many lines a second of CPU; {same} of {len(pairs)} answers are equal; U of the others higher by",
                  " ".join(f"{d:+.3f}" for d in differ) or "-")  # fmt: skip
        single = [text for text in texts if text.count("[MASK]") == 1]
        if single != texts:
            timer, ours = gradhop(program, single, a, folder=True)
            report("gradhop, one blank", len(single), timer)
    pipe = transformers.pipeline("fill-mask", model=OnnxModel(a.model, a.threads), tokenizer=transformers.AutoTokenizer.from_pretrained(a.model), framework="pt", top_k=1)
    pipe(single[:64], batch_size=32)  # warms up
    for order in ("of the file", "by length"):
        rows = sorted(single, key=len) if order == "by length" else single
        for batch in (8, 32):
            with Timer() as theirs:
                found = dict(zip(rows, pipe(rows, batch_size=batch)))
            report(f"pipeline, batches of {batch}, order {order}", len(rows), theirs)
            print(f"gradhop: {theirs.cpu / timer.cpu:.2f} times as many a second of CPU, {theirs.clock / timer.clock:.2f} by the clock")
    same = sum(x["fills"] == [found[text][0]["token_str"]] for x, text in zip(ours, single))
    print(f"{same} of {len(single)} words are equal")


if __name__ == "__main__":
    main()
