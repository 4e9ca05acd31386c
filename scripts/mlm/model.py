"""A lean BERT masked LM (post-norm, erf GELU, tied head) for fast pre-training, or a causal one.

The arithmetic is that of transformers.BertForMaskedLM, or BertLMHeadModel, with token types all zero; `hf_state`
gives the weights under its names. Only what speeds up training differs: query, key and value
are one matrix, and the vocabulary head runs at the masked positions alone.
"""

from __future__ import annotations

import math
import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .common import RecipeError, Shape


class Layer(nn.Module):
    """One post-norm transformer block."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        d, eps = s.hidden_size, s.layer_norm_eps
        self.heads = s.num_attention_heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm1 = nn.LayerNorm(d, eps)
        self.up = nn.Linear(d, s.intermediate_size)
        self.down = nn.Linear(s.intermediate_size, d)
        self.norm2 = nn.LayerNorm(d, eps)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        # Written out: on CPU the fused kernel's backward pass takes ten times as long.
        score = (q * (d // self.heads) ** -0.5) @ k.transpose(-1, -2) + bias.to(q.dtype)
        a = score.softmax(-1).to(v.dtype) @ v
        x = self.norm1(x + self.out(a.transpose(1, 2).reshape(b, n, d)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class MaskedLM(nn.Module):
    """Token ids to logits at chosen positions."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.shape = s
        d = s.hidden_size
        self.word = nn.Embedding(s.vocab_size, d)
        self.position = nn.Embedding(s.max_position_embeddings, d)
        self.kind = nn.Embedding(s.type_vocab_size, d)
        self.norm = nn.LayerNorm(d, s.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.num_hidden_layers))
        self.head = nn.Linear(d, d)
        self.head_norm = nn.LayerNorm(d, s.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(s.vocab_size))
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        """BERT's initial values, with residual branches scaled by depth and useful positions."""
        deep = 1 / math.sqrt(2 * len(self.layers))
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.6 / math.sqrt(m.in_features))
                nn.init.zeros_(m.bias)
        for layer in self.layers:
            layer.out.weight.mul_(deep)
            layer.down.weight.mul_(deep)
        d = self.shape.hidden_size
        nn.init.normal_(self.word.weight, std=0.04)
        nn.init.zeros_(self.kind.weight)
        self.position.weight.copy_(0.05 * sinusoids(self.shape.max_position_embeddings, d))
        self.look_aside()

    @torch.no_grad()
    def look_aside(self) -> None:
        """Lets half of the first layer's heads start by attending to neighbours at -1, +1, -2, +2.

        Sinusoids at a shifted position are a rotation of those at the position itself, so a
        query matrix that rotates and a key matrix that copies make the score peak at the shift.
        This skips most of the plateau in which a masked LM predicts word frequencies only.
        """
        first, d = self.layers[0], self.shape.hidden_size
        size = d // first.heads
        if size % 2 or first.heads < 2:
            return
        freq = frequencies(d)
        use = torch.linspace(0, len(freq) // 2, size // 2).long()  # the faster half tells neighbours apart
        gain = math.sqrt(9.0 * math.sqrt(size) / (size // 2))
        shifts = [-1, -2] if self.shape.is_decoder else [-1, 1, -2, 2]
        for h, shift in zip(range(first.heads // 2), shifts * 8, strict=False):
            q = torch.zeros(size, d)
            k = torch.zeros(size, d)
            for i, f in enumerate(use.tolist()):
                c, s = math.cos(shift * freq[f]), math.sin(shift * freq[f])
                q[2 * i, 2 * f], q[2 * i, 2 * f + 1] = c, s
                q[2 * i + 1, 2 * f], q[2 * i + 1, 2 * f + 1] = -s, c
                k[2 * i, 2 * f] = k[2 * i + 1, 2 * f + 1] = 1
            # After the embedding LayerNorm a sinusoid has amplitude near one.
            first.qkv.weight[h * size : (h + 1) * size] += gain * q
            first.qkv.weight[d + h * size : d + (h + 1) * size] += gain * k

    def encode(self, ids: Tensor, live: Tensor) -> Tensor:
        """Hidden states [batch, length, width]; live is False at padding."""
        x = self.word(ids) + self.position.weight[: ids.shape[1]] + self.kind.weight[0]
        x = self.norm(x)
        bias = torch.zeros(live.shape, dtype=x.dtype, device=x.device).masked_fill(~live, -1e4)[:, None, None]
        if self.shape.is_decoder:
            bias = bias + torch.full((ids.shape[1],) * 2, -1e4, dtype=x.dtype, device=x.device).triu(1)
        for layer in self.layers:
            x = layer(x, bias)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Vocabulary scores of hidden states [..., width]."""
        h = self.head_norm(F.gelu(self.head(hidden)))
        return F.linear(h, self.word.weight, self.bias)

    def forward(self, ids: Tensor, live: Tensor) -> Tensor:
        return self.logits(self.encode(ids, live))

    def hf_state(self) -> dict[str, Tensor]:
        """The weights under transformers' names, without the tied decoder copy."""
        e, c = "bert.embeddings.", "cls.predictions."
        out = {
            e + "word_embeddings.weight": self.word.weight,
            e + "position_embeddings.weight": self.position.weight,
            e + "token_type_embeddings.weight": self.kind.weight,
            e + "LayerNorm.weight": self.norm.weight,
            e + "LayerNorm.bias": self.norm.bias,
        }
        for i, layer in enumerate(self.layers):
            p = f"bert.encoder.layer.{i}."
            names = ["attention.self.query", "attention.self.key", "attention.self.value"]
            for name, w, b in zip(names, layer.qkv.weight.chunk(3), layer.qkv.bias.chunk(3), strict=True):
                out[p + name + ".weight"], out[p + name + ".bias"] = w, b
            parts = {
                "attention.output.dense": layer.out,
                "attention.output.LayerNorm": layer.norm1,
                "intermediate.dense": layer.up,
                "output.dense": layer.down,
                "output.LayerNorm": layer.norm2,
            }
            for name, m in parts.items():
                out[p + name + ".weight"], out[p + name + ".bias"] = m.weight, m.bias
        out[c + "bias"] = self.bias
        out[c + "transform.dense.weight"] = self.head.weight
        out[c + "transform.dense.bias"] = self.head.bias
        out[c + "transform.LayerNorm.weight"] = self.head_norm.weight
        out[c + "transform.LayerNorm.bias"] = self.head_norm.bias
        return {k: v.detach() for k, v in out.items()}

    @torch.no_grad()
    def load_hf(self, state: dict[str, Tensor]) -> None:
        """Takes weights named as in hf_state; a model with more layers repeats those of the state in order."""
        saved = sum(k.endswith("attention.self.query.weight") for k in state)
        for k, v in self.hf_state().items():
            if m := re.match(r"(bert\.encoder\.layer\.)(\d+)(.*)", k):
                k = f"{m[1]}{int(m[2]) % saved}{m[3]}"
            if k not in state or state[k].shape != v.shape:
                raise RecipeError(f"mlm: the model to start from has weights of another size ({k})")
            v.copy_(state[k])


def frequencies(width: int) -> list[float]:
    """Angular frequencies of the sinusoidal position code, fastest first."""
    return [math.pi / 2 * 200.0 ** (-2 * i / width) for i in range(width // 2)]


def sinusoids(length: int, width: int) -> Tensor:
    """Position code with sine at even columns and cosine at odd ones."""
    angle = torch.arange(length)[:, None] * torch.tensor(frequencies(width))
    return torch.stack([angle.sin(), angle.cos()], -1).view(length, width)
