"""Densities of known form and other small graphs. See architectures.py."""

from __future__ import annotations

import math

import torch
from architectures_case import Case, bits, integers, normal, weights
from torch import nn
from torch.nn import functional


class Mixture(nn.Module):
    """A mixture of Gaussians with full covariances, by the factors of their precisions."""

    def __init__(self, parts, sites):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(parts))
        self.mean, self.factor = nn.Parameter(torch.empty(parts, sites)), nn.Parameter(torch.empty(parts, sites, sites))

    def forward(self, x):
        z = torch.einsum("nks,kst->nkt", x[:, None] - self.mean, torch.tril(self.factor, -1) + torch.eye(self.mean.shape[1]).to(x))
        return torch.logsumexp(torch.log_softmax(self.weight, 0) - 0.5 * (z * z).sum(-1), 1)


def mixture():
    net = weights(Mixture(3, 4), scale=3)
    return Case("mixture of Gaussians", net, {"x": normal(4, 4)}, ["x", "mean"], 18, dynamo=True)


class Boltzmann(nn.Module):
    """Minus the free energy of a restricted Boltzmann machine."""

    def __init__(self, visible, hidden):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(hidden, visible)), nn.Parameter(torch.empty(visible))
        self.offset = nn.Parameter(torch.empty(hidden))

    def forward(self, v):
        return v @ self.bias + functional.softplus(v @ self.weight.T + self.offset).sum(1)


def boltzmann():
    return Case("free energy of a restricted Boltzmann machine", weights(Boltzmann(16, 8)), {"v": bits(4, 16)}, ["v", "bias"], 15)


class Potts(nn.Module):
    """Couplings between all pairs of sites, of one-hot encoded colours."""

    def __init__(self, sites, colours):
        super().__init__()
        self.colours = colours
        self.coupling, self.field = nn.Parameter(torch.empty(sites, colours, sites, colours)), nn.Parameter(torch.empty(sites, colours))

    def forward(self, s):
        hot = functional.one_hot(s, self.colours).to(self.field)
        return torch.einsum("nic,icjd,njd->n", hot, self.coupling, hot) / 2 + torch.einsum("nic,ic->n", hot, self.field)


def potts():
    net = weights(Potts(5, 3))
    return Case("Potts model by Einsum", net, {"s": integers(0, 3, 4, 5)}, ["s"], 12, tables={"s": 3})


class Flow(nn.Module):
    """The log-density of a flow: affine couplings, a permutation and a last logistic map."""

    def __init__(self, sites):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(sites // 2, 8), nn.Tanh(), nn.Linear(8, sites)) for _ in range(3))
        self.sites = sites

    def forward(self, x):
        half, logdet = self.sites // 2, 0
        for net in self.nets:
            a, b = x[:, :half], x[:, half:]
            s, t = net(a).chunk(2, 1)
            s = 2 * torch.tanh(s / 2)
            x, logdet = torch.cat([a, b * torch.exp(s) + t], 1).flip(1), logdet + s.sum(1)
        z = torch.logit(torch.sigmoid(x) * 0.9 + 0.05)
        logdet = logdet + torch.log(torch.sigmoid(x) * torch.sigmoid(-x)).sum(1)
        return logdet - 0.5 * z.pow(2).sum(1) - 0.5 * self.sites * math.log(2 * math.pi)


def flow():
    return Case("normalising flow with affine couplings", weights(Flow(6)), {"x": normal(3, 6)}, ["x"], 16)


class Prototypes(nn.Module):
    """Distances to points, the nearest of them, cumulated: sorting and picking."""

    def __init__(self, points, sites):
        super().__init__()
        self.point = nn.Parameter(torch.empty(points, sites))

    def forward(self, x):
        d = torch.linalg.vector_norm(x[:, None] - self.point, dim=2)
        near, where = torch.topk(d, 3, largest=False)
        steps = torch.cumsum(near * torch.tensor([1.0, 0.5, 0.25]).to(x), 1).prod(1)
        spread = (self.point[where] - x[:, None]).abs().amax(1).sum(1)
        return torch.where(d.amin(1) > 1, steps, spread.clamp(0.1, 50.0)) + torch.atan(d).minimum(near.mean(1, keepdim=True)).sum(1)


def prototypes():
    net = weights(Prototypes(7, 4), scale=5)
    return Case("distances to prototypes: TopK, CumSum, Where, Clip", net, {"x": normal(4, 4)}, ["x", "point"], 16)


CASES = {"mixture": mixture, "boltzmann": boltzmann, "potts": potts, "flow": flow, "prototypes": prototypes}
