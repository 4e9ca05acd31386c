"""Writes the trained towers as a Hugging Face folder whose ONNX files store float16.

The graphs are built by hand: every initializer keeps its name (OpenAI's in the vision tower, transformers' in the
text tower) and is followed by a Cast. Batch norms are folded into the convolution before them, whose bias then has
the norm's name; they need no statistics at float16.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import onnx
from onnx import TensorProto, helper

from . import tokens, words
from .common import Shape, preprocessor_config, write_json
from .graph import Graph
from .model import Clip

FILES = ["config.json", "preprocessor_config.json", "text_model.onnx", "tokenizer.json", "tokenizer_config.json", "vision_model.onnx", "words.txt"]


def half(state: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """The weights as stored: rounded to float16, as contiguous arrays."""
    return {k: np.ascontiguousarray(v.detach().float().cpu().numpy()).astype(np.float16) for k, v in state.items()}


def fold(state: dict[str, Tensor], eps: float = 1e-5) -> dict[str, Tensor]:
    """Vision weights with every batch norm folded: conv.weight scaled, norm.bias its bias."""
    out = dict(state)
    for mean in [k for k in state if k.endswith(".running_mean")]:
        norm = mean.removesuffix(".running_mean")
        # layer1.0.bn2 belongs to layer1.0.conv2, downsample.1 to downsample.0.
        conv = norm.removesuffix(".1") + ".0" if norm.endswith("downsample.1") else norm.replace(".bn", ".conv")
        scale = state[norm + ".weight"] / (state[norm + ".running_var"] + eps).sqrt()
        out[conv + ".weight"] = state[conv + ".weight"] * scale.view(-1, 1, 1, 1)
        out[norm + ".bias"] = state[norm + ".bias"] - state[mean] * scale
        for part in ("weight", "running_mean", "running_var", "num_batches_tracked"):
            del out[f"{norm}.{part}"]
    return out


def vision(weights: dict[str, np.ndarray], s: Shape) -> onnx.ModelProto:
    """pixel_values [batch, 3, size, size] to image_embeds [batch, projection]."""
    g = Graph(weights)

    def conv(x: str, p: str, n: str, *, relu: bool = True, pad: int = 0, stride: int = 1) -> str:
        inputs = [x, f"{p}conv{n}.weight", f"{p}bn{n}.bias"] if n else [x, p + "0.weight", p + "1.bias"]
        y = g.op("Conv", inputs, f"{p}conv{n}.out", pads=[pad] * 4, strides=[stride] * 2)
        return g.op("Relu", [y], f"{p}relu{n}") if relu else y

    def shrink(x: str, stride: int, name: str) -> str:
        return x if stride == 1 else g.op("AveragePool", [x], name, kernel_shape=[stride] * 2, strides=[stride] * 2)

    x = conv("pixel_values", "visual.", "1", pad=1, stride=2)
    x = conv(conv(x, "visual.", "2", pad=1), "visual.", "3", pad=1)
    x = shrink(x, 2, "visual.avgpool")
    for i, blocks in enumerate(s.vision_layers):
        for j in range(blocks):
            p, stride = f"visual.layer{i + 1}.{j}.", 2 if i and not j else 1
            y = conv(conv(x, p, "1"), p, "2", pad=1)
            y = conv(shrink(y, stride, p + "avgpool"), p, "3", relu=False)
            if p + "downsample.0.weight" in weights:
                x = conv(shrink(x, stride, p + "downsample.pool"), p + "downsample.", "", relu=False)
            x = g.op("Relu", [g.op("Add", [y, x], p + "sum")], p + "out")
    width = s.vision_width << (len(s.vision_layers) + 1)
    p, heads = "visual.attnpool.", s.vision_width // 2
    flat = g.op("Reshape", [x, g.constant([0, width, -1])], p + "flat")
    cells = g.op("Transpose", [flat], p + "cells", perm=[0, 2, 1])
    mean = g.op("ReduceMean", [cells], p + "mean", axes=[1], keepdims=1)
    every = g.op("Add", [g.op("Concat", [mean, cells], p + "all", axis=1), p + "positional_embedding"], p + "in")
    first = g.op("Slice", [every, g.constant([0]), g.constant([1]), g.constant([1])], p + "query")
    q, k, v = g.linear(first, p + "q_proj", p + "query_q"), g.linear(every, p + "k_proj", p + "key"), g.linear(every, p + "v_proj", p + "value")
    y = g.attention(q, k, v, heads, width // heads, None, p)
    y = g.op("Squeeze", [y, g.constant([1])], p + "pooled")
    g.linear(y, p + "c_proj", "image_embeds")
    ins = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, s.image_size, s.image_size])]
    return g.model("CLIPVisionTower", ins, [helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["batch", s.projection])])


def text(weights: dict[str, np.ndarray], s: Shape) -> onnx.ModelProto:
    """input_ids [batch, sequence] to text_embeds [batch, projection], taken at the first end-of-text token."""
    g, e = Graph(weights), "text_model.embeddings."
    size = s.text_width // s.text_heads
    # Position i may not look at j > i: -10000 above the diagonal of [n, n].
    length = g.op("Gather", [g.op("Shape", ["input_ids"], "shape"), g.constant([1])], "length")
    square = g.op("Concat", [length, length], "square_shape", axis=0)
    ones = g.op("Expand", [g.constant(-10000.0), square], "square")
    mask = g.op("Trilu", [ones, g.constant(1)], "causal", upper=1)
    word = g.op("Gather", [e + "token_embedding.weight", "input_ids"], "words")
    place = [e + "position_embedding.weight", g.constant([0]), length, g.constant([0])]
    x = g.op("Add", [word, g.op("Slice", place, "positions")], "embedded")

    def norm(x: str, module: str, name: str) -> str:
        return g.op("LayerNormalization", [x, module + ".weight", module + ".bias"], name, axis=-1, epsilon=1e-5)

    for i in range(s.text_layers):
        p = f"text_model.encoder.layers.{i}."
        h = norm(x, p + "layer_norm1", p + "norm1")
        q, k, v = (g.linear(h, f"{p}self_attn.{n}_proj", f"{p}self_attn.{n}") for n in "qkv")
        a = g.attention(q, k, v, s.text_heads, size, mask, p + "self_attn.attention.")
        x = g.op("Add", [x, g.linear(a, p + "self_attn.out_proj", p + "attended")], p + "residual1")
        h = g.linear(norm(x, p + "layer_norm2", p + "norm2"), p + "mlp.fc1", p + "up")
        gate = g.op("Sigmoid", [g.op("Mul", [h, g.constant(1.702)], p + "steep")], p + "gate")
        h = g.linear(g.op("Mul", [h, gate], p + "quick_gelu"), p + "mlp.fc2", p + "down")
        x = g.op("Add", [x, h], p + "residual2")
    x = norm(x, "text_model.final_layer_norm", "normed")
    # ArgMax takes the first of equals: the first end-of-text token.
    ends = g.op("Cast", [g.op("Equal", ["input_ids", g.constant(s.end)], "is_end")], "is_end_number", to=TensorProto.INT32)
    at = g.op("ArgMax", [ends], "end", axis=1, keepdims=1)
    one_hot = g.op("Equal", [g.op("Range", [g.constant(0), g.op("Squeeze", [length], "length0"), g.constant(1)], "sites"), at], "at_end")
    pick = g.op("Unsqueeze", [g.op("Cast", [one_hot], "pick", to=TensorProto.FLOAT), g.constant([1])], "pick_row")
    pooled = g.op("Squeeze", [g.op("MatMul", [pick, x], "picked"), g.constant([1])], "pooled")
    g.linear(pooled, "text_projection", "text_embeds", bias=False)
    ins = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])]
    return g.model("CLIPTextModelWithProjection", ins, [helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["batch", s.projection])])


def export(model: Clip, work: Path, out: Path) -> Path:
    """Writes the model folder; work has the tokenizer and the data that it was trained on."""
    s = model.shape
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "config.json", s.hf_config(float(model.logit_scale.detach())))
    write_json(out / "preprocessor_config.json", preprocessor_config(s.image_size))
    tokens.write_config(s, work, out)
    words.write(work, out)
    towers = {
        "vision_model.onnx": vision(half(fold({"visual." + k: v for k, v in model.visual.state_dict().items()})), s),
        "text_model.onnx": text(half(model.text.state_dict()), s),
    }
    for name, tower in towers.items():
        # Written aside and renamed: a reader never meets half a file.
        aside = out / (name + ".tmp")
        aside.write_bytes(tower.SerializeToString(deterministic=True))
        aside.replace(out / name)
    return out


def difference(folder: Path, model: Clip, seed: int = 0) -> tuple[float, float]:
    """Largest absolute difference of (vision, text) outputs between the files under onnxruntime and torch.

    The torch side has the weights as stored, rounded to float16, and its batch norms unfolded.
    """
    import copy

    import onnxruntime

    s, rng = model.shape, np.random.default_rng(seed)
    pixels = rng.normal(size=(3, 3, s.image_size, s.image_size)).astype(np.float32)
    ids = rng.integers(0, s.start, (5, min(11, s.context)))
    ids[:, 0], ids[:, -1], ids[1:3, 6:], ids[3, 1] = s.start, s.end, s.end, s.end
    rounded = copy.deepcopy(model).float().eval()
    with torch.no_grad():
        for p in rounded.text.parameters():
            p.copy_(p.half().float())
        want = rounded.visual(torch.from_numpy(pixels)).numpy(), rounded.text(torch.from_numpy(ids)).numpy()

    def run(name: str, feed: dict) -> np.ndarray:
        return onnxruntime.InferenceSession(str(folder / name), providers=["CPUExecutionProvider"]).run(None, feed)[0]

    got = run("vision_model.onnx", {"pixel_values": pixels}), run("text_model.onnx", {"input_ids": ids})
    unit = [(a / np.linalg.norm(a, axis=1, keepdims=True), b / np.linalg.norm(b, axis=1, keepdims=True))
            for a, b in zip(got, want, strict=True)]  # fmt: skip
    return tuple(float(np.abs(a - b).max()) for a, b in unit)


def hf_text(folder: Path) -> torch.nn.Module:
    """transformers' CLIPTextModelWithProjection with the weights of a folder's text_model.onnx."""
    import json

    from onnx import numpy_helper
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    config = json.loads((folder / "config.json").read_text("utf-8"))["text_config"]
    model = CLIPTextModelWithProjection(CLIPTextConfig(**config)).eval()
    stored = onnx.load(folder / "text_model.onnx").graph.initializer
    state = {i.name.removesuffix(".f16"): torch.from_numpy(numpy_helper.to_array(i).astype(np.float32).copy())
             for i in stored if i.name.endswith(".f16")}  # fmt: skip
    missing, unexpected = model.load_state_dict(state, strict=False)
    wrong = [n for n in [*missing, *unexpected] if not n.endswith("position_ids")]
    if wrong:
        raise ValueError(f"clip: weights do not fit CLIPTextModelWithProjection: {wrong}")
    return model
