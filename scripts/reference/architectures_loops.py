"""Networks with branches and loops in the file: scripted ones, and cells unrolled by Scan. See architectures.py."""

from __future__ import annotations

import numpy as np
import torch
from architectures_case import Case, normal, weights
from onnx import TensorProto, helper, numpy_helper
from torch import nn


class Elman(nn.Module):
    """A recurrent cell over time first, as many steps as there are; every second one is damped."""

    def __init__(self):
        super().__init__()
        self.read, self.keep = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.zeros(x.size(1), 4, dtype=x.dtype)
        total = torch.zeros(x.size(1), dtype=x.dtype)
        for t in range(x.size(0)):
            h = torch.tanh(self.read(x[t]) + self.keep(h))
            if t % 2 == 1:
                h = 0.5 * h
            total = total + h.square().sum(1)
        return total


def scripted_cell():
    net = weights(Elman())
    about = "a recurrent cell in a scripted loop of open length, with a branch by the number of the step"
    return Case(about, net, {"x": normal(5, 2, 3)}, ["x", "keep.weight"], 17, scripted=True, free={"x": {0: "steps", 1: "batch"}})


class Solve(nn.Module):
    """A fixed point, by iterations until they hardly move."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.zeros_like(x)
        moved = torch.ones(1, dtype=x.dtype)
        while bool(moved > 0.01):
            z = torch.tanh(x + 0.5 * self.map(y))
            moved = (z - y).abs().max().reshape(1)
            y = z
        return (y * y).sum(1)


def scripted_while():
    net = weights(Solve())
    return Case("a fixed point, by a scripted loop that a condition ends", net, {"x": normal(2, 4)}, ["x", "map.weight"], 16, scripted=True)


class Choose(nn.Module):
    """One of two networks, by what is fed, and a third by the rate, as in detectors of speech."""

    def __init__(self):
        super().__init__()
        self.low, self.high, self.wide = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(3, 3)

    def forward(self, x, rate: torch.Tensor):
        if bool(x.sum() > 0):
            y = torch.sigmoid(self.low(x))
        else:
            y = self.high(x).square()
            if bool(rate == 16000):
                y = torch.tanh(self.wide(y))
        return y.sum(1)


def scripted_branches(sign):
    x = sign * normal(3, 6).abs()
    net = weights(Choose())
    about = "scripted branches on a condition that is known when it runs: the " + ("first" if sign > 0 else "second")
    used = ["low.weight"] if sign > 0 else ["high.weight", "wide.weight"]
    return Case(about, net, {"x": x, "rate": torch.tensor(16000)}, ["x", *used], 15,
                scripted=True, free={"x": {0: "batch"}})  # fmt: skip


class Collect(nn.Module):
    """Outputs of the steps in a list, which is stacked at the end."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(7, 4)

    def forward(self, x):
        h = torch.zeros(x.size(1), 4, dtype=x.dtype)
        outs: list[torch.Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(torch.cat([x[t], h], 1)))
            outs.append(h)
        return torch.stack(outs, 1).softmax(1).square().sum((1, 2))


def scripted_list():
    net = weights(Collect())
    about = "a scripted loop that collects a list"
    return Case(about, net, {"x": normal(4, 2, 3)}, ["x", "cell.weight"], 17, scripted=True, free={"x": {0: "steps", 1: "batch"}})


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.LSTM(3, 4)

    def forward(self, x):
        y, (h, _) = self.body(x)
        return y.sigmoid().sum((0, 2)) + h.square().sum((0, 2))


def by_scan(model):
    """The file with its LSTM written as a Scan over cells."""
    graph = model.graph
    at, lstm = next((i, n) for i, n in enumerate(graph.node) if n.op_type == "LSTM")
    known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    w, r, bias = (known[v][0] for v in lstm.input[1:4])
    order = [i for k in (0, 2, 3, 1) for i in range(4 * k, 4 * k + 4)]  # iofc to ifco
    added = {"cell_w": w[order].T, "cell_r": r[order].T, "cell_b": (bias[:16] + bias[16:])[order], "cell_zero": np.array([0]), "cell_one": np.array([1])}
    for name, array in added.items():
        graph.initializer.append(numpy_helper.from_array(array.copy(), name))
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    node = helper.make_node
    body = helper.make_graph([
        node("MatMul", ["xt", "cell_w"], ["zx"]), node("MatMul", ["hp", "cell_r"], ["zh"]), node("Add", ["zx", "zh"], ["zs"]), node("Add", ["zs", "cell_b"], ["z"]),
        node("Split", ["z"], ["zi", "zf", "zc", "zo"], axis=1), node("Sigmoid", ["zi"], ["gi"]), node("Sigmoid", ["zf"], ["gf"]),
        node("Tanh", ["zc"], ["gc"]), node("Sigmoid", ["zo"], ["go"]), node("Mul", ["gf", "cp"], ["kept"]), node("Mul", ["gi", "gc"], ["new"]),
        node("Add", ["kept", "new"], ["cn"]), node("Tanh", ["cn"], ["tc"]), node("Mul", ["go", "tc"], ["hn"]), node("Identity", ["hn"], ["yt"]),
    ], "cell", [value("hp"), value("cp"), value("xt")], [value("hn"), value("cn"), value("yt")])  # fmt: skip
    h0, c0 = lstm.input[5], lstm.input[6]
    nodes = [
        node("Squeeze", [h0, "cell_zero"], ["cell_h0"]), node("Squeeze", [c0, "cell_zero"], ["cell_c0"]),
        node("Scan", ["cell_h0", "cell_c0", lstm.input[0]], ["cell_h", "cell_c", "cell_y"], name="cells", body=body, num_scan_inputs=1),
        node("Unsqueeze", ["cell_y", "cell_one"], [lstm.output[0]]), node("Unsqueeze", ["cell_h", "cell_zero"], [lstm.output[1]]),
    ]  # fmt: skip
    graph.node.remove(lstm)
    for t in [t for t in graph.initializer if t.name in lstm.input]:
        graph.initializer.remove(t)
    for n in reversed(nodes):
        graph.node.insert(at, n)
    return model


def scan_lstm():
    return Case("LSTM cells by Scan", weights(Lstm()), {"x": normal(5, 2, 3)}, ["x"], 13, free={"x": {0: "steps", 1: "batch"}}, finish=by_scan)


CASES = {
    "scan-lstm": scan_lstm,
    "scripted-branch-first": lambda: scripted_branches(1),
    "scripted-branch-second": lambda: scripted_branches(-1),
    "scripted-cell": scripted_cell,
    "scripted-list": scripted_list,
    "scripted-while": scripted_while,
}
