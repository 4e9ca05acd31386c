"""The rivals of lattice.py. Each reads lines "STEPS FILE", makes so many steps, writes U of all chains after each step to FILE
as float32, [step, chain], unless FILE is "-", and answers with a line of JSON.

    rivals.py torch dmala ENERGY STEP_SIZE CHAINS SWEEPS  PyTorch, the authors' algorithm: two values and two gradients of U in a step
    rivals.py discs dmala ENERGY STEP_SIZE CHAINS SWEEPS  JAX, DISCS' algorithm: jitted, a value and a gradient of two states in a step
    rivals.py torch gibbs ENERGY STEP_SIZE CHAINS SWEEPS  PyTorch, block Gibbs between the layers of an RBM; U is that of both layers
    rivals.py thrml gibbs ENERGY STEP_SIZE CHAINS SWEEPS  thrml, Gibbs by the two colours of a lattice
    rivals.py blackjax SAMPLER ENERGY STEP_SIZE CHAINS SWEEPS  blackjax: mala, sgld with the exact gradient, or barker

ENERGY is ising:20x20,0.3 (periodic, coupling 0.3), or rbm:784x500,FILE, where FILE has the weights [hidden, site] and the biases
of sites and of hidden units, in float32, or logistic:1000x2000,FILE: the posterior of 1,000 coefficients given 2,000 rows and their
labels, in FILE, of which the first coefficient is written in place of U. A step of thrml makes SWEEPS sweeps. Programs were written by us from the papers and the projects' descriptions.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np


class Energy:
    """An Ising lattice or an RBM. low and high are the values of a site."""

    def __init__(self, text: str) -> None:
        name, rest = text.split(":")
        shape, last = rest.split(",", 1)
        rows, columns = map(int, shape.split("x"))
        self.ising = name == "ising"
        if self.ising:
            self.low, self.rows, self.columns, self.coupling, self.sites = -1.0, rows, columns, float(last), rows * columns
            return
        self.low, self.sites = 0.0, rows
        if name == "logistic":
            data, labels = np.split(np.fromfile(last, np.float32), [rows * columns])
            self.data, self.labels = data.reshape(columns, rows), labels
            return
        w, b, c = np.split(np.fromfile(last, np.float32), [rows * columns, rows * columns + rows])
        self.weights = [w.reshape(columns, rows), b, c]

    def pairs(self) -> list[tuple[int, int]]:
        """Neighbours on the lattice: each site with the next in its row and in its column."""
        sites = [divmod(i, self.columns) for i in range(self.sites)]
        return [(r * self.columns + c, r * self.columns + (c + 1) % self.columns) for r, c in sites] + [
            (r * self.columns + c, (r + 1) % self.rows * self.columns + c) for r, c in sites
        ]

    def matrix(self) -> np.ndarray:
        """J with U = ½ sᵀJs."""
        j = np.zeros((self.sites, self.sites), np.float32)
        for i, k in self.pairs():
            j[i, k] += self.coupling
            j[k, i] += self.coupling
        return j


def torch_program(sampler, e, step_size, chains, _):
    import torch
    import torch.nn.functional as f

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    if e.ising:
        j = torch.tensor(e.matrix())

        def density(s):
            return ((s @ j) * s).sum(1) / 2
    else:
        w, b, c = map(torch.tensor, e.weights)

        def density(s):
            return s @ b + f.softplus(s @ w.T + c).sum(1)

    def flips(s):
        """Logits of changing each site (Zhang, Liu and Liu 2022, eq. 4)."""
        s = s.detach().requires_grad_()
        gradient = torch.autograd.grad(density(s).sum(), s)[0]
        return (gradient * (1 + e.low - 2 * s) / 2 - (1 - e.low) ** 2 / (2 * step_size)).detach()

    def dmala(s):
        forward = flips(s)
        change = torch.bernoulli(torch.sigmoid(forward))
        y = s + change * (1 + e.low - 2 * s)
        back = flips(y)
        log_forward = -f.binary_cross_entropy_with_logits(forward, change, reduction="none").sum(1)
        log_back = -f.binary_cross_entropy_with_logits(back, change, reduction="none").sum(1)
        accept = (density(y) - density(s) + log_back - log_forward).exp() > torch.rand(len(s))
        return torch.where(accept[:, None], y, s), None

    def gibbs(s):
        hidden = torch.bernoulli(torch.sigmoid(s @ w.T + c))
        return torch.bernoulli(torch.sigmoid(hidden @ w + b)), hidden

    def value(s, hidden):
        return density(s) if hidden is None else s @ b + hidden @ c + ((hidden @ w) * s).sum(1)

    step = {"dmala": dmala, "gibbs": gibbs}[sampler]
    x = torch.randint(0, 2, (chains, e.sites)).float() * (1 - e.low) + e.low

    def run(steps, record):
        nonlocal x
        values = []
        with torch.no_grad():
            for _ in range(steps):
                with torch.set_grad_enabled(sampler == "dmala"):
                    x, hidden = step(x)
                x = x.detach()
                if record:
                    values.append(value(x, hidden).numpy())
        return np.array(values, np.float32)

    return run


def discs_program(_, e, step_size, chains, __):
    import jax
    import jax.numpy as jnp

    shape = (e.rows, e.columns) if e.ising else (e.sites,)
    if e.ising:

        def density(s):
            return e.coupling * (s * (jnp.roll(s, 1, 1) + jnp.roll(s, 1, 2))).sum((1, 2))
    else:
        w, b, c = map(jnp.asarray, e.weights)

        def density(s):
            return s @ b + jax.nn.softplus(s @ w.T + c).sum(1)

    def flips(s):
        u, pull = jax.vjp(density, s)
        return u, pull(jnp.ones_like(u))[0] * (1 + e.low - 2 * s) / 2 - (1 - e.low) ** 2 / (2 * step_size)

    def total(x):
        return x.reshape(chains, -1).sum(1)

    def step(carry, _):
        key, s = carry
        key, first, second = jax.random.split(key, 3)
        u, forward = flips(s)
        change = jax.random.bernoulli(first, jax.nn.sigmoid(forward))
        y = jnp.where(change, 1 + e.low - s, s)
        v, back = flips(y)
        sign = jnp.where(change, 1.0, -1.0)
        log_ratio = v - u + total(jax.nn.log_sigmoid(sign * back)) - total(jax.nn.log_sigmoid(sign * forward))
        accept = jnp.log(jax.random.uniform(second, u.shape)) < log_ratio
        s = jnp.where(accept.reshape(-1, *[1] * len(shape)), y, s)
        return (key, s), jnp.where(accept, v, u)

    advance = jax.jit(lambda carry, n: jax.lax.scan(step, carry, None, length=n), static_argnums=1)
    key = jax.random.key(0)
    carry = (key, jax.random.bernoulli(key, 0.5, (chains, *shape)).astype(jnp.float32) * (1 - e.low) + e.low)

    def run(steps, _):
        nonlocal carry
        carry, values = advance(carry, steps)
        return np.asarray(jax.block_until_ready(values))

    return run


def thrml_program(_, e, __, chains, sweeps):
    import jax
    import jax.numpy as jnp
    from thrml.block_management import Block
    from thrml.block_sampling import SamplingSchedule, sample_states
    from thrml.models.ising import IsingEBM, IsingSamplingProgram, hinton_init
    from thrml.pgm import SpinNode

    nodes, pairs = [SpinNode() for _ in range(e.sites)], np.array(e.pairs())
    colour = np.array([(i // e.columns + i % e.columns) % 2 for i in range(e.sites)])
    edges = [(nodes[i], nodes[j]) for i, j in pairs]
    model = IsingEBM(nodes, edges, jnp.zeros(e.sites), jnp.full(len(edges), e.coupling), jnp.array(1.0))
    blocks = [Block([nodes[i] for i in np.flatnonzero(colour == k)]) for k in range(2)]
    program = IsingSamplingProgram(model, blocks, [])
    key = jax.random.key(0)
    state = hinton_init(key, model, blocks, (chains,))

    def make(steps, record):
        """Steps that return the last state, or all states."""
        schedule = SamplingSchedule(0, steps, sweeps) if record else SamplingSchedule(steps * sweeps - 1, 1, 1)
        return jax.jit(jax.vmap(lambda k, s: sample_states(k, program, schedule, s, [], blocks)))

    compiled = {}

    def run(steps, record):
        nonlocal key, state
        if (steps, record) not in compiled:
            compiled[steps, record] = make(steps, record)
        key, draw = jax.random.split(key)
        out = jax.block_until_ready(compiled[steps, record](jax.random.split(draw, chains), state))  # [chain, step, site] by block
        state = [b[:, -1] for b in out]
        if not record:
            return None
        spins = np.empty((chains, steps, e.sites), np.float32)
        for k, block in enumerate(out):
            spins[:, :, colour == k] = 2 * np.asarray(block, np.float32) - 1
        return e.coupling * sum(spins[:, :, i] * spins[:, :, j] for i, j in pairs).T

    return run


def blackjax_program(sampler, e, step_size, chains, _):
    import blackjax
    import jax
    import jax.numpy as jnp

    data, labels = jnp.asarray(e.data), jnp.asarray(e.labels)

    def density(x):
        logits = data @ x
        return labels @ logits - jax.nn.softplus(logits).sum() - x @ x / 2

    states = jnp.zeros((chains, e.sites))
    half = step_size**2 / 2  # a Langevin step of blackjax is half·∇U + √(2·half)·noise
    if sampler == "sgld":
        gradient = jax.grad(density)
        kernel = blackjax.sgld(lambda x, _: gradient(x))
        one = jax.vmap(lambda key, x: kernel.step(key, x, None, half))
    else:
        kernel = blackjax.mala(density, half) if sampler == "mala" else blackjax.barker_proposal(density, step_size)
        states, one = jax.vmap(kernel.init)(states), jax.vmap(kernel.step)

    def step(carry, _):
        key, states = carry
        key, draw = jax.random.split(key)
        out = one(jax.random.split(draw, chains), states)
        states = out if sampler == "sgld" else out[0]
        return (key, states), (states if sampler == "sgld" else states.position)[:, 0]

    advance = jax.jit(lambda carry, n: jax.lax.scan(step, carry, None, length=n), static_argnums=1)
    carry = (jax.random.key(0), states)

    def run(steps, _):
        nonlocal carry
        carry, values = advance(carry, steps)
        return np.asarray(jax.block_until_ready(values))

    return run


PROGRAMS = {"torch": torch_program, "discs": discs_program, "thrml": thrml_program, "blackjax": blackjax_program}


def main():
    library, sampler, energy, step_size, chains, sweeps = sys.argv[1:]
    run = PROGRAMS[library](sampler, Energy(energy), float(step_size), int(chains), int(sweeps))
    for line in sys.stdin:
        steps, path = line.split()
        start = time.perf_counter()
        values = run(int(steps), path != "-")
        seconds = time.perf_counter() - start
        if path != "-":
            np.asarray(values, np.float32).tofile(path)
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
