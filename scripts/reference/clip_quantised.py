"""Towers quantised by onnxruntime's own tool, in the forms that files have.

In "gather-first" the tables of tokens and positions are uint8, whose rows are looked up, then DequantizeLinear makes
floats of them. In "dequantize-first" the whole table becomes floats, as in files in the QDQ form. In "dynamic"
products are of integers too, rounded by scales that each run finds anew: the files called quantized.
"""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np
import onnx
import torch
from onnx import helper
from onnxruntime.quantization import quantize_dynamic
from torch import nn

TABLES = ("token_embedding.weight", "position_embedding.weight")


def on_grid(model: nn.Module) -> nn.Module:
    """The same with tables of the values that uint8 has with the tool's scale and zero point: (q - zero)·scale."""
    with torch.no_grad():
        for name, p in model.state_dict().items():
            if name.endswith(TABLES) and "vision" not in name:
                x = p.numpy()
                low, high = min(x.min(), 0), max(x.max(), 0)
                scale = np.float32((high - low) / np.float32(255))
                zero = np.round(-low / scale)
                p.copy_(torch.from_numpy((np.clip(np.round(x / scale + zero), 0, 255) - zero).astype("f4") * scale))
    return model


def quantise(m: onnx.ModelProto, form: str) -> onnx.ModelProto:
    """The model with tables of integers; form is gather-first, dequantize-first or dynamic."""
    m = onnx.ModelProto.FromString(m.SerializeToString())
    del m.graph.value_info[:]  # the exporter's has other names for the same numbers, which the tool minds
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(m, path)
        kinds = None if form == "dynamic" else ["Gather"]
        quantize_dynamic(path, path, op_types_to_quantize=kinds, extra_options={"MatMulConstBOnly": True})
        m = onnx.load(path)
    if form == "dequantize-first":
        swap(m.graph)
    return m


def swap(graph: onnx.GraphProto) -> None:
    """Puts every DequantizeLinear behind a Gather before it."""
    gathers = {n.output[0]: n for n in graph.node if n.op_type == "Gather"}
    nodes = []
    for n in graph.node:
        g = gathers.get(n.input[0]) if n.op_type == "DequantizeLinear" else None
        if g:
            floats = g.input[0] + "_floats"
            nodes.append(helper.make_node("DequantizeLinear", [g.input[0], *n.input[1:]], [floats], name=n.name))
            nodes.append(helper.make_node("Gather", [floats, g.input[1]], n.output, name=g.name, axis=0))
        elif not any(n.output[0] == d.input[0] for d in graph.node if d.op_type == "DequantizeLinear"):
            nodes.append(n)
    del graph.node[:]
    graph.node.extend(nodes)


def straight_through(module: nn.Module, plain: onnx.ModelProto, quantised: onnx.ModelProto) -> nn.Module:
    """The module with the numbers of its text tower's "dynamic" file: weights of its integers, and inputs of products
    that are rounded as each run of the file rounds them. Gradients pass the rounding unchanged."""
    have = {t.name: onnx.numpy_helper.to_array(t) for t in quantised.graph.initializer}
    pairs = []
    for t in plain.graph.initializer:
        if t.name + "_quantized" in have:
            q, scale, zero = (have[f"{t.name}_{part}"].astype("f4") for part in ("quantized", "scale", "zero_point"))
            old, new = onnx.numpy_helper.to_array(t), (q - zero) * scale
            if not np.allclose(old, new, atol=scale):
                new = new.T  # as the tool does where it makes a MatMul of a Gemm
            pairs += [(old, new), (old.T, new.T)]
    for layer in module.modules():
        if not isinstance(layer, nn.Linear | nn.Embedding):
            continue
        weight = layer.weight.detach().numpy()
        for old, new in pairs:
            if np.array_equal(old, weight):
                layer.weight = nn.Parameter(torch.tensor(new))
                if isinstance(layer, nn.Linear):
                    layer.register_forward_pre_hook(lambda _layer, args: args[0] + (rounded(args[0]) - args[0]).detach())
    return module


def rounded(x: torch.Tensor) -> torch.Tensor:
    """DynamicQuantizeLinear, and back."""
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    scale = (high - low) / 255
    zero = (-low / scale).round()
    return ((x / scale).round() + zero).clamp(0, 255).sub(zero) * scale
