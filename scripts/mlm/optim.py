"""Muon for the matrices, AdamW for everything else.

Muon (Jordan 2024; update scaling of Liu et al. 2025, arXiv:2502.16982) replaces the momentum of a
weight matrix by its nearest orthogonal matrix, which makes about twice the progress a step of
AdamW at this size. Matrices of one shape are orthogonalised together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .model import MaskedLM

STEPS = ((4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
         (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012))  # fmt: skip


def orthogonal(g: Tensor) -> Tensor:
    """Nearest orthogonal matrices [k, m, n] by five Newton-Schulz steps in bfloat16, m <= n."""
    x = g / (g.norm(dim=(1, 2), keepdim=True) * 1.01 + 1e-7)
    x = x.bfloat16()
    for a, b, c in STEPS:
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.float()


class Muon:
    """Momentum, orthogonalisation and decay for the transformer's matrices."""

    def __init__(self, model: MaskedLM, buffers: list[Tensor], *, decay: float = 0.05, momentum: float = 0.95) -> None:
        self.params, self.buffers = matrices(model), buffers
        self.decay, self.momentum = decay, momentum

    @torch.no_grad()
    def step(self, lr: float, head: float) -> None:
        """One step with learning rate lr, and `head` for the last matrix, which is that of the vocabulary head."""
        families: dict[tuple, list[tuple[Tensor, Tensor, float]]] = {}
        for p, m in zip(self.params, self.buffers, strict=True):
            m.lerp_(p.grad, 1 - self.momentum)
            ahead = p.grad.lerp(m, self.momentum)
            rate = head if p is self.params[-1] else lr
            for w, g in zip(pieces(p.data), pieces(ahead), strict=True):
                families.setdefault(tuple(w.shape), []).append((w, g, rate))
        for shape, members in families.items():
            scale = 0.2 * max(shape) ** 0.5
            for (w, _, rate), u in zip(members, orthogonal(torch.stack([g for _, g, _ in members])), strict=True):
                w.mul_(1 - rate * self.decay).sub_(u, alpha=scale * rate)


def matrices(model: MaskedLM) -> list[Tensor]:
    """The weights that Muon moves; embeddings, biases and norms are AdamW's."""
    out = [w for la in model.layers for w in (la.qkv.weight, la.out.weight, la.up.weight, la.down.weight)]
    return [*out, model.head.weight]


def pieces(w: Tensor) -> list[Tensor]:
    """Query, key and value apart, tall matrices on their side."""
    parts = w.chunk(3) if w.shape[0] == 3 * w.shape[1] else [w]
    return [p if p.shape[0] <= p.shape[1] else p.mT for p in parts]


def adamw(model: MaskedLM, decay: float = 0.01) -> torch.optim.AdamW:
    """AdamW for what Muon leaves."""
    mine = {id(p) for p in matrices(model)}
    rest = [p for p in model.parameters() if id(p) not in mine]
    groups = [
        {"params": [p for p in rest if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in rest if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), eps=1e-8, fused=True)
