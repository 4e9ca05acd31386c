"""Builds ONNX graphs node by node: float16 weights under their own names, float32 arithmetic."""

from __future__ import annotations

import numpy as np

import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Graph:
    """Collects nodes and initializers; methods return the name of their output."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.nodes: list = []
        self.initializers = [numpy_helper.from_array(w.astype(np.float16), n + ".f16") for n, w in weights.items()]
        for n in weights:
            self.nodes.append(helper.make_node("Cast", [n + ".f16"], [n], name=n + "/Cast", to=TensorProto.FLOAT))
        self.constants: set[str] = set()

    def op(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name + "/" + kind, **attributes))
        return name

    def constant(self, value: float | list[int]) -> str:
        """A float32 scalar or an int64 tensor, shared between its users."""
        kind = np.float32 if isinstance(value, float) else np.int64
        key = f"const.{np.dtype(kind).name}." + str(value).strip("[]").replace(", ", "_")
        if key not in self.constants:
            self.constants.add(key)
            self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype=kind), key))
        return key

    def linear(self, x: str, module: str, name: str, *, bias: bool = True) -> str:
        """x W' + b with W in torch's [out, in] layout."""
        t = self.op("Transpose", [module + ".weight"], name + ".weight_t", perm=[1, 0])
        if not bias:
            return self.op("MatMul", [x, t], name)
        return self.op("Add", [self.op("MatMul", [x, t], name + ".matmul"), module + ".bias"], name)

    def heads(self, x: str, heads: int, size: int, name: str, perm: list[int]) -> str:
        """[batch, n, heads * size] to four axes in the order perm."""
        split = self.op("Reshape", [x, self.constant([0, 0, heads, size])], name + ".split")
        return self.op("Transpose", [split], name + ".heads", perm=perm)

    def attention(self, q: str, k: str, v: str, heads: int, size: int, mask: str | None, p: str) -> str:
        """softmax(q k' / sqrt size + mask) v of projected inputs, heads joined again."""
        q, v = self.heads(q, heads, size, p + "q", [0, 2, 1, 3]), self.heads(v, heads, size, p + "v", [0, 2, 1, 3])
        k = self.heads(k, heads, size, p + "k", [0, 2, 3, 1])
        score = self.op("Mul", [self.op("MatMul", [q, k], p + "qk"), self.constant(float(size) ** -0.5)], p + "scaled")
        if mask is not None:
            score = self.op("Add", [score, mask], p + "masked")
        w = self.op("Softmax", [score], p + "probabilities", axis=-1)
        mixed = self.op("Transpose", [self.op("MatMul", [w, v], p + "mixed")], p + "mixed_t", perm=[0, 2, 1, 3])
        return self.op("Reshape", [mixed, self.constant([0, 0, heads * size])], p + "joined")

    def model(self, name: str, ins: list, outs: list) -> onnx.ModelProto:
        """The checked model."""
        graph = helper.make_graph(self.nodes, name, ins, outs, self.initializers)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="gradhop")
        onnx.checker.check_model(model, full_check=True)
        return model
