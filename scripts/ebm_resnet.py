"""The ResNet of Grathwohl et al. (2021) in torch, with the weights of `gradhop ebm new resnet`."""

from __future__ import annotations

import onnx
import torch
from onnx import numpy_helper
from torch import nn


class Swish(nn.Module):
    """x sigmoid(beta x) with a trainable slope a channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)


class Block(nn.Module):
    """Two convolutions beside a shortcut; a stride of 2 halves the image."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, stride, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.shortcut = nn.Conv2d(width, width, 1, stride) if stride > 1 else nn.Identity()
        self.swish1, self.swish2 = Swish(width), Swish(width)

    def forward(self, x):
        return self.swish2(self.conv2(self.swish1(self.conv1(x))) + self.shortcut(x))


class ResNet(nn.Module):
    """U of binary images, [batch, pixel] to [batch]: the network and a base distribution of independent pixels."""

    def __init__(self, side: int, width: int = 64, depth: int = 8) -> None:
        super().__init__()
        self.side = side
        self.proj = nn.Conv2d(1, width, 3, 1, 1)
        self.blocks = nn.Sequential(*(Block(width, 2 if k < 2 else 1) for k in range(depth)))
        self.energy = nn.Linear(width, 1)
        self.register_buffer("base", torch.zeros(side * side))

    def forward(self, x):
        y = self.blocks(self.proj(x.reshape(-1, 1, self.side, self.side)))
        return self.energy(y.mean((2, 3)))[:, 0] + x @ self.base

    def read(self, path) -> ResNet:
        """Takes the weights of a file that gradhop wrote."""
        weights = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
        weights = {name: w for name, w in weights.items() if name.split(".")[0] in ("proj", "blocks", "energy", "base")}
        weights["base"] = weights.pop("base.logits")[:, 0]
        weights["energy.weight"] = weights["energy.weight"].T
        self.load_state_dict(weights)
        return self
