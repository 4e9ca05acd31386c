"""CLIP's two towers: OpenAI's ModifiedResNet and its causal transformer.

Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision". Vision weights
have OpenAI's names (visual.*), text weights those of transformers' CLIPTextModelWithProjection.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from .common import Shape


class Bottleneck(nn.Module):
    """Residual block that averages before a strided 1x1 convolution (antialiasing)."""

    def __init__(self, inside: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes)
        self.stride, self.downsample = stride, None
        if stride > 1 or inside != 4 * planes:
            conv = nn.Conv2d(inside, 4 * planes, 1, bias=False)
            # "-1" is OpenAI's name of the average in front, which has no weights.
            self.downsample = nn.ModuleDict({"0": conv, "1": nn.BatchNorm2d(4 * planes)})

    def forward(self, x: Tensor) -> Tensor:
        y = fn.relu(self.bn1(self.conv1(x)), inplace=True)
        y = fn.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(self.shrink(y)))
        if self.downsample is not None:
            x = self.downsample["1"](self.downsample["0"](self.shrink(x)))
        return fn.relu(y + x, inplace=True)

    def shrink(self, x: Tensor) -> Tensor:
        return fn.avg_pool2d(x, self.stride) if self.stride > 1 else x


class AttentionPool(nn.Module):
    """One attention step whose query is the mean of the last feature map."""

    def __init__(self, grid: int, width: int, heads: int, projection: int) -> None:
        super().__init__()
        self.heads = heads
        self.positional_embedding = nn.Parameter(torch.randn(grid * grid + 1, width) / width**0.5)
        self.k_proj, self.q_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.c_proj = nn.Linear(width, width), nn.Linear(width, projection)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([x.mean(1, keepdim=True), x], 1) + self.positional_embedding
        b, n, w = x.shape
        q = self.q_proj(x[:, :1]).view(b, 1, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.heads, -1).transpose(1, 2)
        y = fn.scaled_dot_product_attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).reshape(b, w))


class Visual(nn.Module):
    """ModifiedResNet: pixels [batch, 3, size, size] to [batch, projection], not normalised."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        w = s.vision_width
        self.conv1, self.bn1 = nn.Conv2d(3, w // 2, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(w // 2)
        self.conv2, self.bn2 = nn.Conv2d(w // 2, w // 2, 3, padding=1, bias=False), nn.BatchNorm2d(w // 2)
        self.conv3, self.bn3 = nn.Conv2d(w // 2, w, 3, padding=1, bias=False), nn.BatchNorm2d(w)
        inside = w
        for i, blocks in enumerate(s.vision_layers):
            planes, stride = w << i, 1 if i == 0 else 2
            stage = [Bottleneck(inside if j == 0 else 4 * planes, planes, stride if j == 0 else 1) for j in range(blocks)]
            self.add_module(f"layer{i + 1}", nn.Sequential(*stage))
            inside = 4 * planes
        grid = s.image_size // (2 << len(s.vision_layers))
        self.attnpool = AttentionPool(grid, inside, w // 2, s.projection)
        for stage in self.stages():
            for block in stage:
                nn.init.zeros_(block.bn3.weight)  # every block begins as its shortcut

    def stages(self) -> list[nn.Sequential]:
        return [m for n, m in self.named_children() if n.startswith("layer")]

    def forward(self, x: Tensor) -> Tensor:
        for conv, bn in ((self.conv1, self.bn1), (self.conv2, self.bn2), (self.conv3, self.bn3)):
            x = fn.relu(bn(conv(x)), inplace=True)
        x = fn.avg_pool2d(x, 2)
        for stage in self.stages():
            x = stage(x)
        return self.attnpool(x)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.k_proj, self.v_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, w = x.shape
        q, k, v = (p(x).view(b, n, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        y = fn.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, w))


class Layer(nn.Module):
    """Pre-norm transformer layer with QuickGELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x))
        h = self.mlp["fc1"](self.layer_norm2(x))
        return x + self.mlp["fc2"](h * torch.sigmoid(1.702 * h))


class Text(nn.Module):
    """Token ids [batch, n] to [batch, projection]: the state at the first end-of-text token, projected."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.end = s.end
        w = s.text_width
        tables = {"token_embedding": nn.Embedding(s.vocab_size, w), "position_embedding": nn.Embedding(s.context, w)}
        layers = nn.ModuleList([Layer(w, s.text_heads) for _ in range(s.text_layers)])
        self.text_model = nn.ModuleDict({"embeddings": nn.ModuleDict(tables),
                                         "encoder": nn.ModuleDict({"layers": layers}),
                                         "final_layer_norm": nn.LayerNorm(w)})  # fmt: skip
        self.text_projection = nn.Linear(w, s.projection, bias=False)
        nn.init.normal_(tables["token_embedding"].weight, std=0.02)
        nn.init.normal_(tables["position_embedding"].weight, std=0.01)
        for layer in layers:
            for m in (layer.self_attn.out_proj, layer.mlp["fc2"]):
                nn.init.normal_(m.weight, std=w**-0.5 * (2 * s.text_layers) ** -0.5)

    def embed(self, ids: Tensor) -> Tensor:
        """Rows of the token embedding."""
        return self.text_model["embeddings"]["token_embedding"](ids)

    def forward(self, ids: Tensor, rows: Tensor | None = None) -> Tensor:
        """rows, if given, stand in for the embeddings of ids (for gradients by token)."""
        x = self.embed(ids) if rows is None else rows
        x = x + self.text_model["embeddings"]["position_embedding"].weight[: ids.shape[1]]
        for layer in self.text_model["encoder"]["layers"]:
            x = layer(x)
        x = x[torch.arange(len(ids)), (ids == self.end).int().argmax(1)]
        return self.text_projection(self.text_model["final_layer_norm"](x))


class Clip(nn.Module):
    """Both towers and the scale of the cosine."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.shape, self.visual, self.text = s, Visual(s), Text(s)
        self.logit_scale = nn.Parameter(torch.tensor(3.0))

    def images(self, pixels: Tensor) -> Tensor:
        """Unit vectors [batch, projection] in float32."""
        return fn.normalize(self.visual(pixels).float(), dim=-1)

    def texts(self, ids: Tensor, rows: Tensor | None = None) -> Tensor:
        """Unit vectors [batch, projection] in float32."""
        return fn.normalize(self.text(ids, rows).float(), dim=-1)
