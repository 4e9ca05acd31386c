"""Files as they are after other tools have rewritten them. See architectures.py."""

from __future__ import annotations

import logging
import pathlib
import tempfile

import onnx
import onnxruntime
import torch
from architectures_case import Case, integers, normal, weights
from architectures_images import Perceptron
from architectures_straight import Straight
from architectures_text import bert, clip_resnet, clip_text, clip_vit, gpt2, llama
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers import float16, optimizer
from torch import nn
from torch.nn import functional

from export_bert import store_half


def through_files(m: onnx.ModelProto, f) -> onnx.ModelProto:
    """f reads one file and writes another."""
    with tempfile.TemporaryDirectory() as t:
        before, after = pathlib.Path(t) / "before.onnx", pathlib.Path(t) / "after.onnx"
        onnx.save(m, before)
        f(str(before), str(after))
        return onnx.load(after)


def external():
    net = weights(Perceptron(12, 16, nn.SiLU(), nn.Tanh()))
    return Case("perceptron with its weights in another file", net, {"x": normal(3, 12)}, ["x"], 17, external=True)


class Scored(nn.Module):
    """A convolution, then a layer for each place."""

    def __init__(self):
        super().__init__()
        self.conv, self.one, self.two = nn.Conv1d(3, 8, 3, padding=1), nn.Linear(8, 12), nn.Linear(12, 1)

    def forward(self, x):
        h = torch.tanh(self.conv(x)).transpose(1, 2)
        return self.two(torch.sigmoid(self.one(h))).sum((1, 2))


def quantized_dynamic():
    def finish(m):
        return through_files(m, lambda a, b: quantize_dynamic(a, b, weight_type=QuantType.QUInt8))

    net = weights(Scored(), scale=2)
    return Case("dynamic quantisation: ConvInteger, MatMulInteger", net, {"x": normal(2, 3, 6)}, ["x"], 15, finish=finish, exact=Straight, straight=True)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.one, self.two = nn.Embedding(11, 8), nn.Linear(8, 16), nn.Linear(16, 11)

    def forward(self, ids):
        logp = torch.log_softmax(self.two(torch.tanh(self.one(self.table(ids[:, :-1])))), -1)
        return torch.gather(logp, 2, ids[:, 1:].unsqueeze(2)).sum((1, 2))


def quantized_words():
    """The table holds integers that are multiplied as such; O is what the integers are picked by."""

    def finish(m):
        return through_files(m, lambda a, b: quantize_dynamic(a, b, weight_type=QuantType.QInt8))

    about = "dynamic quantisation of a language model with its table"
    inputs = {"ids": integers(0, 11, 2, 6)}
    return Case(about, weights(Words()), inputs, ["ids"], 15, tables={"ids": 11}, finish=finish, exact=Straight, straight=True)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 8, 3, 2, 1)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        h = functional.max_pool2d(functional.relu(self.one(x)), 2, 2)
        h = functional.adaptive_avg_pool2d(functional.relu(self.two(h)), 1).flatten(1)
        return self.head(h).sum(1)


class Once(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = [feeds]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def quantized_static():
    """The quantiser merges each ReLU into the range of the numbers behind it."""
    inputs = {"x": normal(2, 2, 8, 8)}

    def finish(m):
        reader = Once({"x": 1.5 * normal(64, 2, 8, 8, seed=2).numpy()})  # wider than x, so that little is clipped
        how = {"quant_format": QuantFormat.QDQ, "per_channel": True, "activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        return through_files(m, lambda a, b: quantize_static(a, b, reader, **how))

    net = weights(Small())
    return Case("static quantisation, QDQ", net, inputs, ["x"], 15, finish=finish, exact=Straight, straight=True, twice=False)


def is_half(x):
    return (x == x.astype("f2").astype(x.dtype)).all()


def half_weights():
    """Weights that are float16 numbers, stored as such, each behind a Cast."""
    case = clip_vit(layers=1)
    case.about += ", weights stored in float16"
    with torch.no_grad():
        for p in case.net.parameters():
            p.copy_(p.half())

    def finish(m):
        """What the exporter computed from weights stays as it is."""
        computed = [t for t in m.graph.initializer if t.data_type == TensorProto.FLOAT and not is_half(numpy_helper.to_array(t))]
        for t in computed:
            m.graph.initializer.remove(t)
        store_half(m)
        m.graph.initializer.extend(computed)
        return m

    case.finish = finish
    return case


def in_order(m: onnx.ModelProto) -> onnx.ModelProto:
    """The converter to float16 leaves its casts behind the nodes that read them, which no valid file does."""
    waiting, known = list(m.graph.node), {""} | {v.name for v in [*m.graph.input, *m.graph.initializer]}
    del m.graph.node[:]
    while waiting:
        ready = next(n for n in waiting if known.issuperset(n.input))
        waiting.remove(ready)
        known.update(ready.output)
        m.graph.node.append(ready)
    return m


def half():
    """Computed in float16 throughout but for input and output."""
    net = weights(Perceptron(12, 16, nn.SiLU(), nn.Tanh(), nn.GELU()))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.half())
    return Case("perceptron in float16", net, {"x": normal(3, 12).half().float()}, ["x"], 16,
                finish=lambda m: in_order(float16.convert_float_to_float16(m, keep_io_types=True)), kind=torch.float16, tolerance=6e-3)  # fmt: skip


def branches():
    """Two If whose conditions are constants: one stored, one computed from a shape."""

    def branch(op, x, y):
        graph = helper.make_graph([helper.make_node(op, [x], [y])], op, [], [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)])
        return graph

    def finish(m):
        nodes = []
        for n in m.graph.node:
            if n.op_type not in ("Tanh", "Sigmoid"):
                nodes.append(n)
                continue
            x, y = n.input[0], n.output[0]
            if n.op_type == "Tanh":
                condition = "always"
                m.graph.initializer.append(numpy_helper.from_array(torch.tensor(True).numpy(), condition))
                then, other = "Tanh", "Relu"
            else:
                condition = "wide"
                m.graph.initializer.append(numpy_helper.from_array(torch.tensor(2).numpy(), "two"))
                nodes += [helper.make_node("Shape", [x], ["shape"]), helper.make_node("Size", ["shape"], ["rank"]),
                          helper.make_node("Less", ["two", "rank"], [condition])]  # fmt: skip
                then, other = "Relu", "Sigmoid"
            nodes.append(helper.make_node("If", [condition], [y], then_branch=branch(then, x, f"{then}.{y}"), else_branch=branch(other, x, f"{other}.{y}")))
        del m.graph.node[:]
        m.graph.node.extend(nodes)
        return m

    net = weights(Perceptron(12, 16, nn.Tanh(), nn.Sigmoid()))
    return Case("branches with constant conditions", net, {"x": normal(3, 12)}, ["x"], 17, finish=finish)


class Trained(nn.Module):
    """Text and picture together, of which everything is learnt."""

    def __init__(self):
        super().__init__()
        self.table, self.conv, self.norm = nn.Embedding(11, 6), nn.Conv2d(2, 6, 3, 2, 1), nn.LayerNorm(6)
        self.head = nn.Linear(6, 6)

    def forward(self, ids, x):
        h = self.norm(self.table(ids).mean(1)) * self.conv(x).amax((2, 3))
        return self.head(functional.silu(h)).square().sum(1)


def trained():
    names = ["table.weight", "conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias"]
    inputs = {"ids": integers(0, 11, 2, 4), "x": normal(2, 2, 6, 6)}
    return Case("gradients by weights", weights(Trained()), inputs, [*names, "x"], 17)


def optimized(case):
    """As the runtime's own optimiser leaves the file."""

    def save(before, after):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = after
        options.intra_op_num_threads = 1
        onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])

    case.about += ", optimised by a session"
    case.finish = lambda m: through_files(m, save)
    return case


def fused(case, kind):
    """As onnxruntime's optimiser of transformers leaves the file."""

    def save(before, after):
        logging.disable(logging.WARNING)
        try:
            optimizer.optimize_model(before, kind, num_heads=2, hidden_size=16, opt_level=0).save_model_to_file(after)
        finally:
            logging.disable(logging.NOTSET)

    case.about += ", optimised for transformers"
    case.finish = lambda m: through_files(m, save)
    return case


CASES = {
    "external": external, "quantized-dynamic": quantized_dynamic, "quantized-words": quantized_words,
    "quantized-static": quantized_static, "half-weights": half_weights, "half": half, "branches": branches, "trained": trained,
    "bert-fused": lambda: fused(bert(), "bert"), "gpt2-fused": lambda: fused(gpt2(), "gpt2"), "clip-text-fused": lambda: fused(clip_text(), "clip"),
    "bert-optimized": lambda: optimized(bert()), "llama-optimized": lambda: optimized(llama()),
    "clip-resnet-optimized": lambda: optimized(clip_resnet()),
}  # fmt: skip
