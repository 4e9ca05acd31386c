"""frameworks.py on three small files, of which one comes with a wrong gradient and one is not differentiable."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

FUNCTIONS = '''
import numpy as np
from onnx import TensorProto, helper
from frameworks import Case, NotExported

x = np.array([[0.5, -2.0]], "f")


def model(operator):
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "f", declared[:1], declared[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def refuse():
    raise NotExported("no such operator\\nnor the next")


cases = {
    "sin": lambda: Case([x], np.sin(x), np.cos(x), model("Sin")),
    "wrong": lambda: Case([x], np.sin(x), np.sin(x), model("Sin")),
    "hardmax": lambda: Case([x], np.array([[1, 0]], "f"), 0 * x, model("Hardmax")),
    "absent": refuse,
}
'''


def test_table_of_verdicts(tmp_path):
    go = shutil.which("go")
    assert go, "the command is built with Go"
    program = tmp_path / "gradhop"
    subprocess.run([go, "build", "-o", program, "./cmd/gradhop"], cwd=HERE.parents[1], check=True)
    (tmp_path / "numpy_functions.py").write_text(FUNCTIONS)

    def run(*names):
        command = [sys.executable, HERE / "frameworks.py", "numpy", tmp_path / "files", *names]
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "GRADHOP": str(program)}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    every = run()
    rows = {line.split(" | ")[0].strip("| "): line for line in every.stdout.splitlines() if line.startswith("| ")}
    assert every.returncode == 1, every.stderr
    assert "| agrees |" in rows["sin"] and rows["sin"].endswith("| right |")
    assert "| DIFFERS |" in rows["wrong"]
    assert "| refused |" in rows["hardmax"] and "Hardmax" in rows["hardmax"]
    assert "| not exported |" in rows["absent"] and rows["absent"].endswith("| no such operator |")
    assert every.stdout.endswith("1 of 4 agree\n")
    assert run("sin").returncode == 0
