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
