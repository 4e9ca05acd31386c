"""Tiny random CLIP models of both families, and how they are exported.

hugging: transformers' CLIPModel, a vision transformer and a text tower that pools at the first
end-of-text id. openai: the model of the original CLIP code, written here: a ResNet with attention
pooling, a text tower of fixed length that pools at the largest id, and that code's names. siglip:
transformers' SiglipModel, whose text tower reads the padding and pools at the last place. Weights
are drawn by numpy, alike on every machine.
"""

from __future__ import annotations

import collections
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import nn
from transformers import CLIPConfig, CLIPModel, SiglipConfig, SiglipModel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import clip_quantised
import export_bert

# Sizes of the models that are stored with the Go tests.
SMALL = {"vocab": 60, "width": 16, "heads": 4, "layers": 2, "out": 12, "positions": 14, "image": 16, "patch": 8}
SMALL_SIGLIP = {"vocab": 60, "width": 16, "heads": 4, "layers": 2, "positions": 12, "image": 16, "patch": 8}
SMALL_OPENAI = {"vocab": 60, "width": 16, "heads": 4, "layers": 1, "out": 12, "positions": 10, "image": 32, "channels": 2}


def randomise(model: nn.Module, seed: int, embedding=1.0) -> nn.Module:
    """Weights with which texts and pictures differ visibly."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in sorted(model.state_dict().items()):
            z = rng.standard_normal(tuple(p.shape), dtype=np.float32)
            if not p.dtype.is_floating_point or name == "logit_scale":
                continue
            if "embedding" in name and "patch" not in name:
                z *= embedding / (3 if "position" in name else 1)
            elif name.endswith("running_var"):
                z = np.abs(z) + 0.5
            elif p.dim() >= 2:
                z *= np.prod(p.shape[1:]) ** -0.5
            else:
                z = z * np.float32(0.1) + np.float32(name.endswith("weight"))
            p.copy_(torch.from_numpy(z))
    return model.eval()


def hugging(vocab, width, heads, layers, out, positions, image, patch, seed=1, attention="eager", last=True) -> CLIPModel:
    """last says that pooling is at the first end-of-text id, not at the largest id."""
    text = {"vocab_size": vocab, "hidden_size": width, "intermediate_size": 2 * width, "num_attention_heads": heads,
            "num_hidden_layers": layers, "max_position_embeddings": positions, "projection_dim": out,
            "bos_token_id": vocab - 2, "eos_token_id": vocab - 1 if last else 2, "pad_token_id": 1}  # fmt: skip
    vision = {"hidden_size": width, "intermediate_size": 2 * width, "num_attention_heads": heads, "num_hidden_layers": layers,
              "image_size": image, "patch_size": patch, "projection_dim": out}  # fmt: skip
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=out)
    config._attn_implementation = attention
    return randomise(CLIPModel._from_config(config, attn_implementation=attention), seed)


def siglip(vocab, width, heads, layers, positions, image, patch, seed=1, attention="eager") -> SiglipModel:
    """Texts end with the largest id and are padded with PAD."""
    shared = {"hidden_size": width, "intermediate_size": 2 * width, "num_attention_heads": heads, "num_hidden_layers": layers}
    text = {**shared, "vocab_size": vocab, "max_position_embeddings": positions, "eos_token_id": vocab - 1, "pad_token_id": PAD}
    config = SiglipConfig(text_config=text, vision_config={**shared, "image_size": image, "patch_size": patch})
    config._attn_implementation = attention
    return randomise(SiglipModel._from_config(config, attn_implementation=attention), seed)


PAD = 0


def pads(model) -> bool:
    return isinstance(model, SiglipModel)


class Bottleneck(nn.Module):
    """A residual block with average pooling before its last convolution instead of a stride."""

    def __init__(self, inside: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes)
        self.avgpool = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.downsample = None
        if stride > 1 or inside != 4 * planes:
            parts = [("-1", nn.AvgPool2d(stride)), ("0", nn.Conv2d(inside, 4 * planes, 1, bias=False)), ("1", nn.BatchNorm2d(4 * planes))]
            self.downsample = nn.Sequential(collections.OrderedDict(parts))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.avgpool(torch.relu(self.bn2(self.conv2(y))))
        return torch.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


class AttentionPool(nn.Module):
    """Attention of the mean of all places to them and itself."""

    def __init__(self, places: int, width: int, heads: int, out: int) -> None:
        super().__init__()
        self.heads = heads
        self.positional_embedding = nn.Parameter(torch.zeros(places + 1, width))
        self.k_proj, self.q_proj, self.v_proj, self.c_proj = (nn.Linear(width, n) for n in (width, width, width, out))

    def forward(self, x):
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([x.mean(1, keepdim=True), x], 1) + self.positional_embedding
        split = [f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f, y in ((self.q_proj, x[:, :1]), (self.k_proj, x), (self.v_proj, x))]
        q, k, v = split
        weights = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2)).squeeze(1)


class ResNet(nn.Module):
    def __init__(self, image: int, channels: int, out: int) -> None:
        super().__init__()
        half = max(1, channels // 2)
        self.conv1, self.bn1 = nn.Conv2d(3, half, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(half)
        self.conv2, self.bn2 = nn.Conv2d(half, half, 3, padding=1, bias=False), nn.BatchNorm2d(half)
        self.conv3, self.bn3 = nn.Conv2d(half, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.avgpool = nn.AvgPool2d(2)
        inside = channels
        for i in range(4):
            planes = channels * 2**i
            setattr(self, f"layer{i + 1}", nn.Sequential(Bottleneck(inside, planes, 1 if i == 0 else 2)))
            inside = 4 * planes
        self.attnpool = AttentionPool((image // 32) ** 2, inside, 2, out)

    def forward(self, x):
        for conv, bn in ((self.conv1, self.bn1), (self.conv2, self.bn2), (self.conv3, self.bn3)):
            x = torch.relu(bn(conv(x)))
        return self.attnpool(self.layer4(self.layer3(self.layer2(self.layer1(self.avgpool(x))))))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(collections.OrderedDict(c_fc=nn.Linear(width, 4 * width), gelu=QuickGELU(), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class QuickGELU(nn.Module):
    def __init__(self, slope=1.702) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return x * torch.sigmoid(self.slope * x)


class OpenAI(nn.Module):
    """The original CLIP with a ResNet."""

    def __init__(self, vocab, width, heads, layers, out, positions, image, channels) -> None:
        super().__init__()
        self.visual = ResNet(image, channels, out)
        self.token_embedding = nn.Embedding(vocab, width)
        self.positional_embedding = nn.Parameter(torch.zeros(positions, width))
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.zeros(width, out))
        self.logit_scale = nn.Parameter(torch.tensor(2.6))

    def encode_text(self, ids):
        x = self.token_embedding(ids) + self.positional_embedding
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf"), dtype=x.dtype).triu(1)
        for block in self.transformer.resblocks:
            x = block(x, mask)
        return self.ln_final(x)[torch.arange(x.shape[0]), ids.int().argmax(-1)] @ self.text_projection


def openai(seed=1, **sizes) -> OpenAI:
    return randomise(OpenAI(**sizes), seed)


def halved(model: nn.Module) -> nn.Module:
    """The same with weights, and the constant in its activations, that are float16 numbers."""
    with torch.no_grad():
        for p in model.state_dict().values():
            if p.dtype.is_floating_point:
                p.copy_(p.half().float())
    for m in model.modules():
        if hasattr(m, "activation_fn"):
            m.activation_fn = QuickGELU(torch.tensor(1.702).half().item())
    return model


def embedding(model) -> nn.Embedding:
    return model.token_embedding if isinstance(model, OpenAI) else model.text_model.embeddings.token_embedding


def text_vectors(model, ids: torch.Tensor) -> torch.Tensor:
    """Projected and not normalised; openai's own length of text is padded to."""
    if pads(model):
        more = model.config.text_config.max_position_embeddings - ids.shape[1]
        return model.get_text_features(input_ids=torch.nn.functional.pad(ids, (0, more), value=PAD))
    if not isinstance(model, OpenAI):
        return model.get_text_features(input_ids=ids)
    more = model.positional_embedding.shape[0] - ids.shape[1]
    return model.encode_text(torch.cat([ids, ids[:, -1:].expand(-1, more)], 1))


def image_vectors(model, pixels: torch.Tensor) -> torch.Tensor:
    return model.visual(pixels) if isinstance(model, OpenAI) else model.get_image_features(pixel_values=pixels)


class Part(nn.Module):
    """A model with the inputs and outputs of one file."""

    def __init__(self, model, kind: str) -> None:
        super().__init__()
        self.model = model
        self.forward = getattr(self, kind)

    def combined(self, input_ids, pixel_values, attention_mask=None):
        if not isinstance(self.model, OpenAI):
            o = self.model(input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask)
            return o.logits_per_image, o.logits_per_text, o.text_embeds, o.image_embeds
        text, image = self.text(input_ids), self.vision(pixel_values)
        logits = self.model.logit_scale.exp() * (image / image.norm(dim=1, keepdim=True)) @ (text / text.norm(dim=1, keepdim=True)).T
        return logits, logits.T, text, image

    def text(self, input_ids, attention_mask=None):
        if isinstance(self.model, OpenAI):
            return self.model.encode_text(input_ids)
        return self.model.get_text_features(input_ids=input_ids, attention_mask=attention_mask)

    def positions(self, input_ids, position_ids):
        return self.model.get_text_features(input_ids=input_ids, position_ids=position_ids)

    def vision(self, pixel_values):
        return image_vectors(self.model, pixel_values)

    def padded_text(self, input_ids):
        return self.model.text_model(input_ids=input_ids).last_hidden_state, self.model.get_text_features(input_ids=input_ids)

    def pooled_vision(self, pixel_values):
        return self.model.vision_model(pixel_values=pixel_values).last_hidden_state, image_vectors(self.model, pixel_values)


INPUTS = {
    "combined": ["input_ids", "pixel_values", "attention_mask"], "text": ["input_ids", "attention_mask"],
    "positions": ["input_ids", "position_ids"], "vision": ["pixel_values"],
    "padded_text": ["input_ids"], "pooled_vision": ["pixel_values"],
}  # fmt: skip
OUTPUTS = {
    "combined": ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"], "text": ["text_embeds"], "positions": ["text_embeds"],
    "vision": ["image_embeds"], "padded_text": ["last_hidden_state", "pooler_output"], "pooled_vision": ["last_hidden_state", "pooler_output"],
}  # fmt: skip


def axes_of(model, name: str) -> dict[int, str]:
    if name in ("pixel_values", "pooler_output"):
        return {0: "images"}
    if name in ("text_embeds", "logits_per_text"):
        return {0: "texts"} | ({1: "images"} if "logits" in name else {})
    if name in ("image_embeds", "logits_per_image"):
        return {0: "images"} | ({1: "texts"} if "logits" in name else {})
    return {0: "texts"} if isinstance(model, OpenAI) else {0: "texts", 1: "sequence"}


def export(model, kind: str, path: pathlib.Path, opset=14, exporter="legacy", dtype="float32", batch=None, mask=True, tables="") -> None:
    """Writes one file. batch fixes that axis; dtype float16 computes in it, float16-weights only stores in it; tables is a form of clip_quantised."""
    path.parent.mkdir(parents=True, exist_ok=True)
    original = isinstance(model, OpenAI)
    length = model.positional_embedding.shape[0] if original else model.config.text_config.max_position_embeddings if pads(model) else 7
    vision = model.visual.attnpool.positional_embedding.shape[0] - 1 if original else 0
    side = round(vision**0.5) * 32 if original else model.config.vision_config.image_size
    n = batch or 2
    ids = torch.randint(0, embedding(model).num_embeddings, (n, length), generator=torch.Generator().manual_seed(0))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": torch.arange(length).expand(n, -1),
             "pixel_values": torch.zeros(n, 3, side, side)}  # fmt: skip
    if dtype == "float16":
        model = model.half()
        given["pixel_values"] = given["pixel_values"].half()
    names = [i for i in INPUTS[kind] if i != "attention_mask" or mask and not original]
    part = Part(model, kind).eval()
    common = {"input_names": names, "output_names": OUTPUTS[kind], "opset_version": opset}
    args = tuple(given[i] for i in names)
    axes = {} if batch else {i: axes_of(model, i) for i in [*names, *OUTPUTS[kind]]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the legacy exporter's are about itself
        if exporter == "dynamo":
            last = None if original else model.config.text_config.max_position_embeddings
            # From 2 on, because tracing takes a dimension of 1 for one that broadcasts; the file runs with 1.
            dims = {s: torch.export.Dim(s, min=2, max=last if s == "sequence" else None) for s in ("texts", "images", "sequence")}
            shapes = tuple({a: dims[s] for a, s in axes[i].items()} for i in names) if axes else None
            torch.onnx.export(part, args, str(path), dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **common)
        else:
            torch.onnx.export(part, args, str(path), dynamo=False, dynamic_axes=axes, **common)
    m = onnx.load(path)
    export_bert.strip(m)
    if dtype == "float16-weights":
        export_bert.store_half(m)
    if tables:
        m = clip_quantised.quantise(m, tables)
    path.write_bytes(m.SerializeToString(deterministic=True))


def table_model(rows=12, width=4, op="Gather") -> bytes:
    """A text tower that is one sum of rows, or looks its ids up in a way that is not a table."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((rows, width)).astype("f4")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["embedded"], name="words")]
    if op == "OneHot":
        nodes = [helper.make_node("OneHot", ["input_ids", "depth", "ends"], ["hot"], name="hot"), helper.make_node("MatMul", ["hot", "table"], ["embedded"], name="words")]
    nodes.append(helper.make_node("ReduceSum", ["embedded", "axis"], ["text_embeds"], name="sum", keepdims=0))
    constants = {"table": table, "depth": np.array(rows), "ends": np.array([0, 1], "f4"), "axis": np.array([1])}
    used = {i for n in nodes for i in n.input}
    graph = helper.make_graph(
        nodes, "table",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["batch", width])],
        [onnx.numpy_helper.from_array(v, n) for n, v in constants.items() if n in used],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()
