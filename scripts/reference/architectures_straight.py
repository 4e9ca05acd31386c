"""Quantised files in float64, with gradients straight through the rounding.

A rounding has derivative one (Bengio, Léonard and Courville 2013). Everything else is differentiated as
it stands: where a quantised number is at the end of its range, the clip there passes nothing, so that
an activation that a quantiser has merged into the range is still one. Scales and zero points that are
computed from the data count as constants.
"""

from __future__ import annotations

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional


def straight_round(x):
    return x + (torch.round(x) - x).detach()


def per_axis(v, x, axis):
    """v, of one number or one along an axis of x, in a shape that broadcasts."""
    return v.reshape([-1 if k == axis % x.dim() else 1 for k in range(x.dim())]) if v.dim() == 1 else v


def quantize(a, x, scale, zero):
    axis = a.get("axis", 1)
    low, high = (-128, 127) if a["types"][2] == onnx.TensorProto.INT8 else (0, 255)
    return torch.clamp(straight_round(x / per_axis(scale, x, axis)) + per_axis(zero, x, axis), low, high)


def dequantize(a, q, scale, zero=None):
    axis = a.get("axis", 1)
    return (q - (0 if zero is None else per_axis(zero, q, axis))) * per_axis(scale, q, axis)


def dynamic(a, x):
    high, low = x.detach().max().clamp(min=0), x.detach().min().clamp(max=0)
    scale = (high - low) / 255
    zero = torch.round(-low / scale).clamp(0, 255)
    return torch.clamp(straight_round(x / scale) + zero, 0, 255), scale, zero


def conv(a, x, w, b=None):
    n = w.dim() - 2
    pads = a.get("pads", [0] * (2 * n))
    assert pads[:n] == pads[n:]
    f = {1: functional.conv1d, 2: functional.conv2d}[n]
    return f(x, w, b, a.get("strides", 1), pads[:n], a.get("dilations", 1), a.get("group", 1))


def gemm(a, x, w, b):
    return x @ (w.T if a.get("transB") else w) + b


def zeroed(product):
    return lambda a, x, w, x0, w0: product(a, x - x0, w - w0)


def sliced(a, x, starts, ends, axes, steps):
    """Slice of integers, in the form that other modes of torch see."""
    index = [slice(None)] * x.dim()
    for axis, *s in zip(axes.int().tolist(), starts.tolist(), ends.tolist(), steps.tolist(), strict=True):
        index[axis] = slice(*(min(int(v), x.shape[axis]) for v in s))
    return x[tuple(index)]


FUNCTIONS = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic,
    "MatMulInteger": zeroed(lambda a, x, w: x @ w), "ConvInteger": zeroed(conv), "Cast": lambda a, x: x,
    "Conv": conv, "Gemm": gemm, "MatMul": lambda a, x, w: x @ w, "Slice": sliced,
    "Add": lambda a, x, y: x + y, "Mul": lambda a, x, y: x * y, "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: torch.tanh(x), "Sigmoid": lambda a, x: torch.sigmoid(x), "Relu": lambda a, x: torch.relu(x),
    "Reshape": lambda a, x, s: x.reshape([x.shape[k] if v == 0 else int(v) for k, v in enumerate(s.tolist())]),
    "Transpose": lambda a, x: x.permute(a["perm"]), "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "MaxPool": lambda a, x: functional.max_pool2d(x, a["kernel_shape"], a["strides"]),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True), "Gather": lambda a, x, i: functional.embedding(i, x),
    "LogSoftmax": lambda a, x: torch.log_softmax(x, a["axis"]), "Unsqueeze": lambda a, x, axes: x.unsqueeze(int(axes)),
    "GatherElements": lambda a, x, i: torch.gather(x, a["axis"], i),
    "ReduceSum": lambda a, x, axes: x.sum(axes.long().tolist(), keepdim=bool(a.get("keepdims", 1))),
    "ReduceMean": lambda a, x: x.mean(a["axes"], keepdim=bool(a.get("keepdims", 1))), "Softplus": lambda a, x: functional.softplus(x),
}  # fmt: skip


class Straight(nn.Module):
    """A file, as a module that computes with numbers that are whole, not with integers."""

    def __init__(self, m: onnx.ModelProto) -> None:
        super().__init__()
        self.m, self.kind, self.types = m, {}, {t.name: t.data_type for t in m.graph.initializer}
        for n in m.graph.node:
            if n.op_type == "Constant":
                self.keep(n.output[0], n.attribute[0].t)
        for t in m.graph.initializer:
            self.keep(t.name, t)

    def keep(self, name, t):
        self.kind[name] = f"c{len(self.kind)}"
        self.register_buffer(self.kind[name], torch.from_numpy(np.array(numpy_helper.to_array(t), "f4")))

    def forward(self, *inputs):
        values = {"": None} | {n: getattr(self, k) for n, k in self.kind.items()}
        values |= {i.name: x for i, x in zip(self.m.graph.input, inputs, strict=True)}
        for n in self.m.graph.node:
            if n.op_type == "Constant":
                continue
            a = {x.name: onnx.helper.get_attribute_value(x) for x in n.attribute} | {"types": [self.types.get(i) for i in n.input]}
            y = FUNCTIONS[n.op_type](a, *(values[i] for i in n.input))
            values |= dict(zip(n.output, y if isinstance(y, tuple) else (y,), strict=True))
        return values[self.m.graph.output[0].name]
