"""Networks for the benchmark of gradients: random weights at sizes in use.

Each takes floating-point inputs and returns one number a row; gradients are by the inputs, the
weights are constants. `build` returns the module, its example inputs and the ONNX operator set.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import transformers
from torch import nn


class Encoder(nn.Module):
    """A text or image encoder of transformers, from embeddings to the mean of its last layer."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.head = model, nn.Linear(model.config.hidden_size, 1)

    def forward(self, x):
        return self.head(self.model(inputs_embeds=x).last_hidden_state.mean(1))[:, 0]


class Vision(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.head = model, nn.Linear(model.config.hidden_size, 1)

    def forward(self, x):
        return self.head(self.model(pixel_values=x).last_hidden_state[:, 0])[:, 0]


class ClipText(nn.Module):
    """CLIP's text tower behind its embeddings, causal mask and end-of-text token last."""

    def __init__(self, config: transformers.CLIPTextConfig) -> None:
        super().__init__()
        tower = transformers.CLIPTextModelWithProjection(config)
        self.encoder, self.norm, self.project = tower.text_model.encoder, tower.text_model.final_layer_norm, tower.text_projection
        length = config.max_position_embeddings
        self.register_buffer("mask", torch.full((1, 1, length, length), torch.finfo(torch.float32).min).triu(1))

    def forward(self, x):
        hidden = self.encoder(inputs_embeds=x, attention_mask=self.mask).last_hidden_state
        features = self.project(self.norm(hidden)[:, -1])
        return (features / features.norm(dim=-1, keepdim=True)).sum(1)


class Block(nn.Module):
    def __init__(self, wide: int, out: int, stride: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(wide, out, 3, stride, 1), nn.Conv2d(out, out, 3, 1, 1)
        self.skip = nn.Conv2d(wide, out, 1, stride) if stride > 1 or wide != out else nn.Identity()
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.skip(x) + self.two(self.act(self.one(x))))


class ResNet(nn.Module):
    """The energy of discrete-MCMC papers: residual blocks with swish, no normalisation, a sum at the end."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        blocks = [Block(wide, wide, 2), Block(wide, wide, 2), *(Block(wide, wide, 1) for _ in range(6))]
        self.body = nn.Sequential(nn.Conv2d(channels, wide, 3, 1, 1), *blocks)
        self.head = nn.Linear(wide, 1)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))[:, 0]


class UNet(nn.Module):
    def __init__(self, wide: int) -> None:
        super().__init__()
        sizes = [wide, 2 * wide, 4 * wide]
        self.stem = nn.Conv2d(3, wide, 3, 1, 1)
        self.down = nn.ModuleList(Block(a, b, 2) for a, b in pairwise(sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.join = nn.ModuleList(Block(2 * a, a, 1) for a in sizes[:-1])
        self.head = nn.Conv2d(wide, 3, 1)

    def forward(self, x):
        kept = [self.stem(x)]
        for block in self.down:
            kept.append(block(kept[-1]))
        h = kept.pop()
        for up, join in zip(reversed(self.up), reversed(self.join), strict=True):
            h = join(torch.cat([up(h), kept.pop()], 1))
        return ((self.head(h) - x) ** 2).sum((1, 2, 3))


class Recurrent(nn.Module):
    def __init__(self, kind: type, wide: int) -> None:
        super().__init__()
        self.body, self.head = kind(wide, wide, num_layers=2, batch_first=True), nn.Linear(wide, 1)

    def forward(self, x):
        return self.head(self.body(x)[0].mean(1))[:, 0]


class Perceptron(nn.Module):
    def __init__(self, sites: int, wide: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sites, wide), nn.ELU(), nn.Linear(wide, wide), nn.ELU(), nn.Linear(wide, wide), nn.ELU(), nn.Linear(wide, 1))

    def forward(self, x):
        return self.body(x)[:, 0]


def build(name: str, quick: bool) -> tuple[nn.Module, torch.Tensor, int]:
    """The module called name in inference mode, an input, and the operator set to export."""
    torch.manual_seed(0)
    t = transformers
    deep, many = (2, 2) if quick else (12, 8)
    eager = {"attn_implementation": "eager"}
    match name:
        case "bert-base":
            config = t.BertConfig(num_hidden_layers=deep, vocab_size=100, **eager)
            net, x = Encoder(t.BertModel(config, add_pooling_layer=False)), torch.randn(many, 32, 768)
        case "clip-text":
            config = t.CLIPTextConfig(num_hidden_layers=deep, vocab_size=100, **eager)
            net, x = ClipText(config), torch.randn(many // 2, 77, 512)
        case "vit":
            config = t.ViTConfig(num_hidden_layers=deep, hidden_size=384, num_attention_heads=6, intermediate_size=1536, **eager)
            net, x = Vision(t.ViTModel(config, add_pooling_layer=False)), torch.randn(2, 3, 224, 224)
        case "llama":
            config = t.LlamaConfig(num_hidden_layers=deep // 2, hidden_size=512, num_attention_heads=8, num_key_value_heads=2,
                                   intermediate_size=1536, vocab_size=100, use_cache=False, **eager)  # fmt: skip
            net, x = Encoder(t.LlamaModel(config)), torch.randn(many, 64, 512)
        case "resnet-ebm":
            net, x = ResNet(3, 16 if quick else 64), torch.randn(many * 2, 3, 32, 32)
        case "resnet-binary":
            net, x = ResNet(1, 16 if quick else 64), torch.rand(many * 2, 1, 28, 28).round()
        case "u-net":
            net, x = UNet(8 if quick else 32), torch.randn(many // 2, 3, 64, 64)
        case "lstm":
            net, x = Recurrent(nn.LSTM, 64 if quick else 256), torch.randn(many * 2, 32, 64 if quick else 256)
        case "gru":
            net, x = Recurrent(nn.GRU, 64 if quick else 256), torch.randn(many * 2, 32, 64 if quick else 256)
        case "mlp-ebm":
            net, x = Perceptron(784, 512), torch.rand(100, 784).round()
        case _:
            raise SystemExit(f"no network called {name}; there are {', '.join(NAMES)}")
    return net.eval().requires_grad_(False), x, 18


NAMES = ["bert-base", "clip-text", "vit", "llama", "resnet-ebm", "resnet-binary", "u-net", "lstm", "gru", "mlp-ebm"]
