"""Gradient models made by the command, run by Python's onnxruntime, next to torch autograd."""

import json
import shutil
import subprocess

import architectures
import numpy as np
import onnx
import pytest
import sessions

ROOT = architectures.FOLDER.parents[3]
NAMES = sorted(p.stem for p in architectures.FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def gradhop(tmp_path_factory):
    """The command, built once."""
    go = shutil.which("go")
    assert go, "the command is built with Go"
    path = tmp_path_factory.mktemp("bin") / "gradhop"
    subprocess.run([go, "build", "-o", path, "./cmd/gradhop"], cwd=ROOT, check=True)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_gradient_model_equals_autograd(gradhop, tmp_path, name):
    reference = json.loads((architectures.FOLDER / f"{name}.json").read_text())
    for file in architectures.FOLDER.glob(f"{name}.*"):  # the weights of external.onnx lie beside it
        shutil.copy(file, tmp_path)
    out = tmp_path / "with_gradient.onnx"
    command = [gradhop, "grad", tmp_path / f"{name}.onnx", "--of", reference["of"], "--wrt", ",".join(reference["wrt"]), "-o", out]
    if reference["reduce"] != "rows":
        command += ["--reduce", reference["reduce"]]
    subprocess.run(command, check=True, capture_output=True, text=True)

    onnx.checker.check_model(out, full_check=True)  # standard operators, and shapes that agree
    model = onnx.load(out, load_external_data=False)
    assert {o.domain for o in model.opset_import} == {""}

    entries = reference["inputs"] + ([reference["seed"]] if reference["seed"] else [])
    feeds = {e["name"]: architectures.unpack(e) for e in entries}
    run = sessions.exact(out)
    results = run.run(None, {i.name: feeds[i.name] for i in run.get_inputs()})
    results = dict(zip([o.name for o in run.get_outputs()], results, strict=True))
    for want in [reference["output"], *reference["grads"]]:
        have, exact = results[want["name"]], architectures.unpack(want)
        assert have.shape == exact.shape
        assert np.abs(have - exact).max() <= reference["tolerance"] * np.abs(exact).max(), want["name"]
