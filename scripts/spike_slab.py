"""Spike-and-slab regression by `gradhop sample` over a mixed space, beside its exact posterior.

    spike_slab.py [--program gradhop] [--out spike-slab]

y = Σ_j z_j·w_j·x_j + N(0, 1), where variable j is included, z_j = 1, with probability 0.3, and its slope is w_j ~ N(0, 1). The
model takes z and w; Gibbs moves z and Barker moves w in turn. With 8 variables the posterior of z can be enumerated: given z the
slopes integrate out, y ~ N(0, 1 + X_z·X_zᵀ). Two pairs of variables are alike, so that the data leave it open which counts.
"""

import argparse
import itertools
import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

D, ROWS, SHARE = 8, 40, 0.3


def data():
    """Rows x, [row, variable], and y."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, D))
    x[:, 1] = 0.9 * x[:, 0] + 0.4 * x[:, 1]
    x[:, 3] = 0.7 * x[:, 2] + 0.7 * x[:, 3]
    w = np.array([0.6, 0, 0.5, 0, -0.4, 0.2, 0, 0])
    return x, x @ w + rng.normal(size=ROWS)


def model(x, y):
    """score[chain] = log p(y | z, w) + log p(z) + log p(w), up to a constant."""
    nodes = [
        helper.make_node("Mul", ["z", "w"], ["slopes"]),
        helper.make_node("MatMul", ["slopes", "x"], ["fit"]),
        helper.make_node("Sub", ["fit", "y"], ["rest"]),
        helper.make_node("ReduceSumSquare", ["rest", "axis"], ["misfit"], keepdims=0),
        helper.make_node("ReduceSumSquare", ["w", "axis"], ["slab"], keepdims=0),
        helper.make_node("Add", ["misfit", "slab"], ["squares"]),
        helper.make_node("ReduceSum", ["z", "axis"], ["included"], keepdims=0),
        helper.make_node("Mul", ["squares", "half"], ["quadratic"]),
        helper.make_node("Mul", ["included", "odds"], ["prior"]),
        helper.make_node("Add", ["quadratic", "prior"], ["score"]),
    ]
    constants = {"x": x.T, "y": y, "half": np.array(-0.5), "odds": np.array(np.log(SHARE / (1 - SHARE)))}
    weights = [numpy_helper.from_array(np.ascontiguousarray(v, np.float32), k) for k, v in constants.items()]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["chain", D]) for name in "zw"]
    score = helper.make_tensor_value_info("score", TensorProto.FLOAT, ["chain"])
    graph = helper.make_graph(nodes, "spike-slab", inputs, [score], [*weights, numpy_helper.from_array(np.array([1]), "axis")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def exact(x, y):
    """The posterior probability that a variable is included, [variable]."""
    states = np.array(list(itertools.product([0, 1], repeat=D)))
    log = []
    for z in states:
        covariance = np.eye(ROWS) + (x * z) @ x.T
        log.append(z.sum() * np.log(SHARE / (1 - SHARE)) - np.linalg.slogdet(covariance)[1] / 2 - y @ np.linalg.solve(covariance, y) / 2)
    p = np.exp(np.array(log) - max(log))
    return p @ states / p.sum()


def main(args=None):
    """Prints the table; returns the sampled probabilities, their standard errors and the exact ones, [variable]."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="gradhop")
    p.add_argument("--out", type=Path, default=Path("spike-slab"), help="new folder for the model and the draws")
    a = p.parse_args(args)
    x, y = data()
    a.out.mkdir()
    onnx.save(model(x, y), a.out / "model.onnx")
    kernels = ["--sampler", "mixed", "--discrete", "gibbs", "--real", "barker"]
    command = [a.program, "sample", str(a.out / "model.onnx"), "--input", "z,w", "--space", f"binary:{D}+real:{D}", *kernels]
    subprocess.run([*command, "--chains", "32", "--steps", "8000", "--thin", "4", "--seed", "1", "--write", "npz", "--out", str(a.out / "run")], check=True)
    draws = np.load(a.out / "run" / "draws.npz")["x"][..., :D].mean(1)  # [chain, variable]
    found, error, want = draws.mean(0), draws.std(0, ddof=1) / len(draws) ** 0.5, exact(x, y)
    print("variable  included  standard error  exact")
    for j in range(D):
        print(f"{j:8}{found[j]:10.3f}{error[j]:16.3f}{want[j]:7.3f}")
    return found, error, want


if __name__ == "__main__":
    main()
