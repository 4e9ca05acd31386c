"""Sessions of onnxruntime in which sums of 8-bit products are exact on every processor."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

INT8 = {"MatMulInteger": (1, 3), "DequantizeLinear": (0, 2)}  # inputs: numbers, and their zero point


def unsigned(m: onnx.ModelProto) -> onnx.ModelProto:
    """The model with uint8 in place of constant int8, by adding 128 to the numbers and to their zero point. On x86-64
    processors without VNNI, onnxruntime's sums of uint8 by int8 saturate. Its setting session.x64quantprecision does
    the same, but does not load all of these files."""
    constants = {t.name: t for t in m.graph.initializer}
    for n in m.graph.node:
        at, zero = INT8.get(n.op_type, (0, 0))
        weight = constants.get(n.input[at]) if zero else None
        if weight is None or weight.data_type != onnx.TensorProto.INT8:
            continue
        if len(n.input) <= zero:
            raise ValueError(f"{n.op_type} {n.name} has no zero point")
        for i in (at, zero):
            name = n.input[i] + "/uint8"
            if name not in constants:
                moved = (numpy_helper.to_array(constants[n.input[i]]).astype(int) + 128).astype(np.uint8)
                constants[name] = numpy_helper.from_array(moved, name)
                m.graph.initializer.append(constants[name])
            n.input[i] = name
    return m


def exact(model: str | pathlib.Path | bytes) -> onnxruntime.InferenceSession:
    """One that runs on one thread."""
    m = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(unsigned(m).SerializeToString(), options, providers=["CPUExecutionProvider"])
