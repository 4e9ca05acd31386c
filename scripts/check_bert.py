"""Compares the Go gradients of a BERT of real size with torch's autograd.

    check_bert.py [--layers 12 --hidden 768 --heads 12 --vocab 30522] [--keep DIR]

Exports one random BERT with torch's legacy exporter (opset 14) and its current one (opset 18),
computes U and the one-hot gradient in float64, has the Go package compute them from both files,
and prints the relative errors: the largest difference over the largest value. Exits 1 where one is
above 1e-4. With --batches it also tells whether results depend on threads and on MaxBatch.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "reference")]
import bert_reference

export_bert = bert_reference.export_bert

EXPORTS = {"legacy-14": ("legacy", 14), "dynamo-18": ("dynamo", 18)}
ERRORS = re.compile(r"relative errors: U (\S+), gradient (\S+); tilt against the gradient (\S+)")


def prepare(folder: pathlib.Path, a: argparse.Namespace) -> None:
    """Writes the models and reference.json."""
    model = export_bert.random_model(a.vocab, a.hidden, a.layers, a.heads, seed=a.seed)
    vocabulary = export_bert.made_up_vocabulary(a.vocab)
    cls, sep, mask = (vocabulary.index(t) for t in ("[CLS]", "[SEP]", "[MASK]"))
    shape = [(9, [4], 1), (24, [3, 9, 10, 20], 2)]
    texts = bert_reference.texts(a.vocab, cls, sep, mask + 1, shape)
    start = time.time()
    energies = a.energies.split(",")
    values = bert_reference.reference(model, list(EXPORTS), texts, mask, energies)
    (folder / "reference.json").write_text(json.dumps(values))
    print(f"autograd in float64: {time.time() - start:.0f} s", flush=True)
    for name, (exporter, opset) in EXPORTS.items():
        (folder / name).mkdir(exist_ok=True)
        start = time.time()
        export_bert.export(model, str(folder / name / "model.onnx"), opset=opset, exporter=exporter)
        print(f"{exporter} exporter, opset {opset}: {time.time() - start:.0f} s", flush=True)


def compare(folder: pathlib.Path, tests: str) -> int:
    """Runs the Go tests and prints their errors as a table."""
    command = ["go", "test", "./energies/neural/mlm", "-run", tests, "-count=1", "-v", "-timeout", "30m"]
    env = {**os.environ, "GRADHOP_BERT_REFERENCE": str(folder)}
    run = subprocess.run(command, cwd=HERE.parent, env=env, capture_output=True, text=True, check=False)
    errors, name, found = None, "", 0
    print(f"{'model':12} {'energy':14} {'U':>9} {'gradient':>9} {'tilt':>9}")
    for line in run.stdout.splitlines():
        if m := re.match(r"=== (?:RUN|NAME) +\S+?/([\w.-]+)/([\w-]+/\w+)/1$", line):
            name = f"{m[1]:12} {m[2]:14}"
        elif (errors := ERRORS.search(line)) and name:
            print(name, *(f"{e:>9}" for e in errors.groups()), flush=True)
            found += 1
        elif "largest difference" in line:
            print(line.split(": ", 1)[1])
    if run.returncode or not found:
        print(run.stdout[-3000:], run.stderr[-3000:], sep="\n")
        print("check_bert: FAILED")
        return 1
    print("check_bert: U and gradients are within 1e-4 of autograd's")
    return 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vocab", type=int, default=30522)
    p.add_argument("--hidden", type=int, default=768)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--energies", default="pll/mask,pll-raw/mask,mrf/mask", help="form/mask embedding, separated by commas")
    p.add_argument("--batches", action="store_true", help="test the influence of threads and MaxBatch too")
    p.add_argument("--keep", type=pathlib.Path, help="folder to write to and keep, about 1 GB at the default size")
    a = p.parse_args()
    tests = "^TestExternal" if a.batches else "^TestExternalReference$"
    with tempfile.TemporaryDirectory() as temporary:
        folder = (a.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, a)
        return compare(folder, tests)


if __name__ == "__main__":
    sys.exit(main())
