"""Writes the trained weights as a Hugging Face folder whose ONNX file stores matrices as int8.

The graph is built by hand rather than traced: every initializer keeps its transformers name and
layout. A matrix is stored once, as int8 with a float32 scale a row, and followed by Cast and Mul;
vectors are stored as float16 and followed by a Cast. onnxruntime folds these nodes when it loads the file, so
that all arithmetic is float32 in any runtime. The decoder transposes the word embeddings it shares.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch

import onnx
from onnx import TensorProto, helper, numpy_helper

from .common import FILES, Shape, need, write_json

OPSET = 17


class Graph:
    """Collects nodes and initializers; methods return the name of their output."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        """Weights as `stored` returns them."""
        self.nodes: list = []
        self.initializers = [numpy_helper.from_array(w, n) for n, w in weights.items()]
        for n in weights:
            name, _, kind = n.rpartition(".")
            if kind == "f16":
                self.op("Cast", [n], name, to=TensorProto.FLOAT)
            elif kind == "i8":
                self.op("Mul", [self.op("Cast", [n], name + ".whole", to=TensorProto.FLOAT), name + ".scale"], name)
        self.constants: dict[str, str] = {}

    def op(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name + "/" + kind, **attributes))
        return name

    def constant(self, value: float | list[int]) -> str:
        """A float32 scalar or an int64 tensor, shared between its users."""
        kind = np.float32 if isinstance(value, float) else np.int64
        key = f"const.{np.dtype(kind).name}." + str(value).strip("[]").replace(", ", "_")
        if key not in self.constants:
            self.constants[key] = key
            self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype=kind), key))
        return key

    def linear(self, x: str, module: str, name: str) -> str:
        """x W' + b with W in torch's [out, in] layout."""
        t = self.op("Transpose", [module + ".weight"], name + ".weight_t", perm=[1, 0])
        return self.op("Add", [self.op("MatMul", [x, t], name + ".matmul"), module + ".bias"], name)

    def norm(self, x: str, module: str, eps: float, name: str) -> str:
        weights = [module + ".weight", module + ".bias"]
        return self.op("LayerNormalization", [x, *weights], name, axis=-1, epsilon=eps)

    def gelu(self, x: str, name: str) -> str:
        """x (1 + erf(x / sqrt 2)) / 2"""
        e = self.op("Erf", [self.op("Div", [x, self.constant(2.0**0.5)], name + ".div")], name + ".erf")
        p = self.op("Mul", [x, self.op("Add", [e, self.constant(1.0)], name + ".add")], name + ".mul")
        return self.op("Mul", [p, self.constant(0.5)], name)


def attention(g: Graph, x: str, bias: str, s: Shape, p: str) -> str:
    """Multi-head self-attention before its output layer."""
    size = s.hidden_size // s.num_attention_heads
    split = g.constant([0, 0, s.num_attention_heads, size])
    q, k, v = (g.op("Reshape", [g.linear(x, f"{p}self.{n}", f"{p}{n}"), split], f"{p}{n}.split")
               for n in ("query", "key", "value"))  # fmt: skip
    q = g.op("Transpose", [q], p + "q", perm=[0, 2, 1, 3])
    k = g.op("Transpose", [k], p + "k", perm=[0, 2, 3, 1])
    v = g.op("Transpose", [v], p + "v", perm=[0, 2, 1, 3])
    score = g.op("Div", [g.op("MatMul", [q, k], p + "qk"), g.constant(float(size) ** 0.5)], p + "scaled")
    w = g.op("Softmax", [g.op("Add", [score, bias], p + "masked")], p + "probabilities", axis=-1)
    mixed = g.op("Transpose", [g.op("MatMul", [w, v], p + "mixed")], p + "mixed_t", perm=[0, 2, 1, 3])
    return g.op("Reshape", [mixed, g.constant([0, 0, s.hidden_size])], p + "joined")


def build(weights: dict[str, np.ndarray], s: Shape) -> onnx.ModelProto:
    """The whole network from input_ids to logits."""
    g, e, c = Graph(weights), "bert.embeddings.", "cls.predictions."
    word = g.op("Gather", [e + "word_embeddings.weight", "input_ids"], "words")
    kind = g.op("Gather", [e + "token_type_embeddings.weight", "token_type_ids"], "types")
    length = g.op("Gather", [g.op("Shape", ["input_ids"], "shape"), g.constant([1])], "length")
    place = [e + "position_embeddings.weight", g.constant([0]), length, g.constant([0])]
    x = g.op("Add", [g.op("Add", [word, kind], "words_types"), g.op("Slice", place, "positions")], "embedded")
    x = g.norm(x, e + "LayerNorm", s.layer_norm_eps, "embeddings")
    live = g.op("Cast", ["attention_mask"], "live", to=TensorProto.FLOAT)
    live = g.op("Unsqueeze", [live, g.constant([1, 2])], "live4")
    bias = g.op("Mul", [g.op("Sub", [g.constant(1.0), live], "dead"), g.constant(-10000.0)], "attention_bias")
    if s.is_decoder:
        end = g.op("Cast", [g.op("Squeeze", ["length"], "end")], "end.float", to=TensorProto.FLOAT)
        at = g.op("Range", [g.constant(0.0), end, g.constant(1.0)], "at")
        later = g.op("Less", [g.op("Unsqueeze", [at, g.constant([1])], "rows"), at], "later")
        unseen = g.op("Mul", [g.op("Cast", [later], "later.float", to=TensorProto.FLOAT), g.constant(-10000.0)], "unseen")
        bias = g.op("Add", [bias, unseen], "causal_bias")
    for i in range(s.num_hidden_layers):
        p = f"bert.encoder.layer.{i}."
        a = g.linear(attention(g, x, bias, s, p + "attention."), p + "attention.output.dense", p + "attended")
        residual = g.op("Add", [a, x], p + "residual1")
        x = g.norm(residual, p + "attention.output.LayerNorm", s.layer_norm_eps, p + "norm1")
        h = g.gelu(g.linear(x, p + "intermediate.dense", p + "up"), p + "gelu")
        h = g.linear(h, p + "output.dense", p + "down")
        residual = g.op("Add", [h, x], p + "residual2")
        x = g.norm(residual, p + "output.LayerNorm", s.layer_norm_eps, p + "norm2")
    h = g.gelu(g.linear(x, c + "transform.dense", "head"), "head.gelu")
    h = g.norm(h, c + "transform.LayerNorm", s.layer_norm_eps, "head.norm")
    t = g.op("Transpose", [e + "word_embeddings.weight"], "decoder", perm=[1, 0])
    g.op("Add", [g.op("MatMul", [h, t], "scores"), c + "bias"], "logits")
    axes = ["batch", "sequence"]
    ins = [helper.make_tensor_value_info(n, TensorProto.INT64, axes)
           for n in ("input_ids", "attention_mask", "token_type_ids")]  # fmt: skip
    outs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*axes, s.vocab_size])]
    graph = helper.make_graph(g.nodes, s.hf_config()["architectures"][0], ins, outs, g.initializers)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="gradhop")
    onnx.checker.check_model(model, full_check=True)
    return model


def stored(state: dict[str, torch.Tensor], whole: bool = True) -> dict[str, np.ndarray]:
    """The weights as the file has them: NAME.i8 and NAME.scale [rows, 1] for matrices, NAME.f16 for vectors.

    A row's largest absolute value is 127 times its scale. With whole=False, matrices are float16 too.
    """
    out = {}
    for name, v in state.items():
        w = np.ascontiguousarray(v.detach().float().cpu().numpy())
        if whole and w.ndim == 2:
            scale = np.maximum(np.abs(w).max(1, keepdims=True), 1e-12) / np.float32(127)
            out[name + ".i8"], out[name + ".scale"] = np.rint(w / scale).astype(np.int8), scale
        else:
            out[name + ".f16"] = w.astype(np.float16)
    return out


def restored(weights: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The float32 weights that `stored` stands for, under transformers' names."""
    out = {}
    for n, w in weights.items():
        name, _, kind = n.rpartition(".")
        if kind == "f16":
            out[name] = torch.from_numpy(w.astype(np.float32))
        elif kind == "i8":
            out[name] = torch.from_numpy(w.astype(np.float32) * weights[name + ".scale"])
    return out


def export(state: dict[str, torch.Tensor], s: Shape, tokenizer: Path, out: Path, whole: bool = True) -> Path:
    """Writes the model folder; state has transformers' names, and whole is that of `stored`. Returns the ONNX file."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "config.json", s.hf_config())
    for name in FILES:
        if tokenizer.resolve() != out.resolve():
            shutil.copyfile(need(tokenizer / name, name), out / name)
    # Written aside and renamed: a reader never meets half a file.
    aside = out / "model.onnx.tmp"
    aside.write_bytes(build(stored(state, whole), s).SerializeToString(deterministic=True))
    aside.replace(out / "model.onnx")
    return out / "model.onnx"


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of an exported folder under transformers' names."""
    model = onnx.load(need(folder / "model.onnx", "model"))
    return restored({i.name: numpy_helper.to_array(i) for i in model.graph.initializer})


def hf_model(weights: dict[str, torch.Tensor], s: Shape) -> torch.nn.Module:
    """transformers' BertForMaskedLM with these weights, or BertLMHeadModel."""
    from transformers import BertConfig, BertForMaskedLM, BertLMHeadModel

    config = {k: v for k, v in s.hf_config().items() if k not in ("architectures", "model_type")}
    model = (BertLMHeadModel if s.is_decoder else BertForMaskedLM)(BertConfig(**config)).eval()
    weights = dict(weights)
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]
    weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"]
    missing, unexpected = model.load_state_dict(weights, strict=False)
    wrong = [n for n in [*missing, *unexpected] if not n.endswith("position_ids")]
    if wrong:
        raise ValueError(f"mlm: weights do not fit {type(model).__name__}: {wrong}")
    return model


def difference(folder: Path, s: Shape, seed: int = 0) -> float:
    """Largest absolute difference between the file under onnxruntime and transformers with the same weights."""
    import onnxruntime

    rng = np.random.default_rng(seed)
    n = min(24, s.max_position_embeddings)
    ids = rng.integers(5, s.vocab_size, (5, n))
    live = np.ones_like(ids)
    live[3, n // 2 :] = 0
    kinds = np.zeros_like(ids)
    kinds[1, n // 2 :] = 1
    feed = {"input_ids": ids, "attention_mask": live, "token_type_ids": kinds}
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    got = session.run(["logits"], feed)[0]
    with torch.no_grad():
        want = hf_model(read_weights(folder), s)(**{k: torch.from_numpy(v) for k, v in feed.items()}).logits.numpy()
    used = live.astype(bool)
    return float(np.abs(got - want)[used].max())
