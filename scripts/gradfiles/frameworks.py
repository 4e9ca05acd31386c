"""Compares gradients of files that TensorFlow and JAX export with the gradients that they compute themselves.

    frameworks.py tensorflow|jax FOLDER [NAME...]

Each function of tensorflow_functions.py or jax_functions.py is exported to FOLDER/NAME.onnx and differentiated by
`gradhop grad`; a table says how far the value of the file and the gradient of the sum of its output are from those of
the framework, relative to the largest entry, and what `gradhop grad --check` says. The exit code is 1 if one differs.
GRADHOP names the program, `gradhop` if it is not set. requirements-tensorflow.txt and requirements-jax.txt beside this
file say what to install.
"""

import importlib
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime

LIMIT = 1e-4  # of relative errors: both sides compute in float32


class Case(NamedTuple):
    """A function: its inputs, its value, the gradient of the sum of its value by the first input, and its file."""

    inputs: list
    value: np.ndarray
    gradient: np.ndarray
    model: onnx.ModelProto


def gradhop(*arguments):
    """Runs the program and returns what it complains of, or nothing."""
    done = subprocess.run([os.environ.get("GRADHOP", "gradhop"), "grad", *arguments], capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "?").splitlines()[0] if done.returncode else ""


def relative(found, want):
    """The largest error relative to the largest entry, infinite for another shape."""
    if found.shape != want.shape:
        return np.inf
    return float(np.abs(found.astype("d") - want).max() / max(np.abs(want).max(), 1e-9))


def compare(case, path):
    """Writes the file of a case and its gradient, and returns a verdict, the errors of value and gradient, and that of --check."""
    onnx.save(case.model, path)
    constants = {t.name for t in case.model.graph.initializer}
    names = [i.name for i in case.model.graph.input if i.name not in constants]
    output = case.model.graph.output[0].name
    inputs = dict(zip(names, case.inputs))  # an exporter leaves out inputs that nothing reads, at the end
    asked = [str(path), "--of", output, "--wrt", names[0], "--reduce", "sum"]
    gradient = path.with_suffix(".grad.onnx")
    refused = gradhop(*asked, "--weights", "embed", "-o", str(gradient))
    if refused:
        return "refused", "", "", refused
    value = onnxruntime.InferenceSession(path).run([output], inputs)[0]
    found = onnxruntime.InferenceSession(gradient).run([f"grad/{names[0]}"], inputs)[0]
    errors = relative(value, case.value), relative(found, case.gradient)
    feed = path.with_suffix(".npz")
    np.savez(feed, **inputs)
    checked = gradhop(*asked, "--check", "--offline", "--quiet", "--feed", str(feed))
    return "agrees" if max(errors) < LIMIT and not checked else "DIFFERS", *(f"{e:.0e}" for e in errors), checked or "right"


def main(framework, folder, *names):
    onnxruntime.set_default_logger_severity(4)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    print("| function | gradient | error of the value | of the gradient | --check |\n| --- | --- | --- | --- | --- |")
    verdicts = []
    for name, make in importlib.import_module(f"{framework}_functions").cases.items():
        if names and name not in names:
            continue
        try:
            row = compare(make(), folder / f"{name}.onnx")
        except NotExported as error:
            row = "not exported", "", "", str(error).splitlines()[0]
        verdicts.append(row[0])
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    print(f"\n{verdicts.count('agrees')} of {len(verdicts)} agree")
    return int("DIFFERS" in verdicts)


class NotExported(Exception):
    """Says why an exporter does not take a function."""


if __name__ == "__main__":
    sys.modules["frameworks"] = sys.modules["__main__"]  # the modules of functions import from here
    sys.exit(main(*sys.argv[1:]))
