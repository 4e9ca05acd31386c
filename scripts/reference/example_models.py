"""Writes the small models of the examples of energies/neural, as a user would export them from PyTorch.

python scripts/reference/example_models.py energies/neural/testdata/examples
"""

import pathlib
import sys

import torch
from torch import nn


class Image(nn.Module):
    """A convolutional energy-based model of binary pictures, 4 by 4: the output is log p(x) up to a constant."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.SiLU(), nn.Conv2d(4, 4, 3, padding=1), nn.SiLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.net(x).mean(dim=(2, 3))).squeeze(1) * 8


class Tokens(nn.Module):
    """A score of sentences of 6 words out of 12; words are integers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.rnn = nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, ids):
        return self.head(self.rnn(self.words(ids).transpose(1, 2)).sum(2)).squeeze(1)


class FreeEnergy(nn.Module):
    """The free energy E(v) = -b.v - sum softplus(Wv + c) of a restricted Boltzmann machine: p(v) is exp(-E)."""

    def __init__(self):
        super().__init__()
        self.b = nn.Parameter(torch.randn(8) / 2)
        self.hidden = nn.Linear(8, 5)

    def forward(self, v):
        return -(v * self.b).sum(1) - nn.functional.softplus(self.hidden(v)).sum(1)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, make, x, output in (
        ("image", Image, torch.zeros(2, 1, 4, 4), "score"),
        ("tokens", Tokens, torch.zeros(2, 6, dtype=torch.long), "score"),
        ("rbm", FreeEnergy, torch.zeros(2, 8), "energy"),
    ):
        torch.manual_seed(1)
        path = str(folder / f"{name}.onnx")
        axes = {"x": {0: "batch"}, output: {0: "batch"}}
        torch.onnx.export(make().eval(), (x,), path, input_names=["x"], output_names=[output], dynamic_axes=axes, opset_version=18, dynamo=False)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
