"""Muon for matrices and convolutions, AdamW for everything else.

Muon (Jordan 2024; update scaling of Liu et al. 2025, arXiv:2502.16982) replaces the momentum of a weight matrix
by its nearest orthogonal matrix; scripts/mlm/optim.py is the same for a transformer alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .model import Clip

STEPS = ((4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
         (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012))  # fmt: skip


def orthogonal(g: Tensor) -> Tensor:
    """Nearest orthogonal matrices [k, m, n] by five Newton-Schulz steps in bfloat16, m <= n."""
    x = (g / (g.norm(dim=(1, 2), keepdim=True) * 1.01 + 1e-7)).bfloat16()
    for a, b, c in STEPS:
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.float()


def matrices(model: Clip) -> list[Tensor]:
    """The weights that Muon moves: linear layers and convolutions, not tables, the first filter or the pool."""
    out = []
    for name, p in model.named_parameters():
        table = "embedding" in name or name.startswith(("visual.conv1.", "visual.attnpool."))
        if p.ndim > 1 and not table:
            out.append(p)
    return out


class Muon:
    """Momentum, orthogonalisation and decay; a convolution is a matrix of its filters."""

    def __init__(self, model: Clip, *, decay: float = 0.05, momentum: float = 0.95) -> None:
        self.params = matrices(model)
        self.buffers = [torch.zeros_like(p) for p in self.params]
        self.decay, self.momentum = decay, momentum

    @torch.no_grad()
    def step(self, lr: float) -> None:
        families: dict[tuple, list[tuple[Tensor, Tensor, bool]]] = {}
        for p, m in zip(self.params, self.buffers, strict=True):
            m.lerp_(p.grad, 1 - self.momentum)
            flat = p.grad.lerp(m, self.momentum).flatten(1)
            tall = flat.shape[0] > flat.shape[1]
            flat = flat.mT if tall else flat
            families.setdefault(tuple(flat.shape), []).append((p, flat, tall))
        for shape, members in families.items():
            scale = 0.2 * max(shape) ** 0.5 * lr
            for (p, _, tall), u in zip(members, orthogonal(torch.stack([m[1] for m in members])), strict=True):
                p.mul_(1 - lr * self.decay).sub_((u.mT if tall else u).reshape(p.shape), alpha=scale)


def adamw(model: Clip, decay: float = 0.01) -> torch.optim.AdamW:
    """AdamW for what Muon leaves."""
    mine = {id(p) for p in matrices(model)}
    rest = [p for p in model.parameters() if id(p) not in mine]
    groups = [{"params": [p for p in rest if p.ndim > 1], "weight_decay": decay},
              {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0}]  # fmt: skip
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), eps=1e-8)
