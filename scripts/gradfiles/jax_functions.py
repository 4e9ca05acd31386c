"""Functions of JAX and modules of Flax with loops, branches and indices, exported by jax2onnx."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax2onnx import to_onnx

from frameworks import Case, NotExported

rng = np.random.default_rng(0)
cases = {}


def numbers(*shape):
    return rng.uniform(0.1, 0.9, shape).astype("f")


def case(x):
    """Makes a case of a function of x."""

    def add(function):
        cases[function.__name__] = lambda: export(function, x)
        return function

    return add


def export(function, x):
    def total(x):
        return function(x).sum()

    value = np.asarray(function(x))  # before the export, which leaves traces in JAX's cache
    try:
        gradient = jax.grad(total)(x)
    except ValueError:  # JAX has no reverse mode of while_loop
        gradient = jax.jacfwd(total)(x)
    try:
        model = to_onnx(function, inputs=[jax.ShapeDtypeStruct(x.shape, x.dtype)], model_name="f")
    except Exception as error:
        raise NotExported(f"{type(error).__name__}: {error}") from error
    return Case([x], value, np.asarray(gradient), model)


W = numbers(4, 4) - 0.5


def accumulate(x, reverse=False):
    def step(h, e):
        h = jnp.tanh(h @ W + e)
        return h, h * h

    return lax.scan(step, jnp.zeros(4), x, reverse=reverse)[1]


@case(numbers(6, 4))
def scan(x):
    return accumulate(x)


@case(numbers(6, 4))
def scan_reverse(x):
    return accumulate(x, reverse=True)


@case(numbers(6, 4))
def scan_carry(x):
    return lax.scan(lambda h, e: (jnp.sin(h) * e + h, None), jnp.ones(4), x)[0]


@case(numbers(4))
def scan_length(x):
    return lax.scan(lambda h, _: (jnp.tanh(h) * x + h, h[0]), x, None, length=5)[0]


@case(numbers(3, 4))
def scan_in_scan(x):
    return lax.scan(lambda h, e: (lax.scan(lambda g, d: (jnp.tanh(g + d), None), h, e)[0], h), jnp.float32(0.0), x)[1]


@case(numbers(3, 4))
def fori(x):
    return lax.fori_loop(0, 5, lambda i, s: (jnp.tanh(s[0] @ W) + s[1] * i, s[1]), (x, x))[0]


@case(numbers(3, 4))
def fori_index(x):
    return lax.fori_loop(0, 3, lambda i, s: (s[0] * 1.1 + jnp.sin(s[1][i]), s[1]), (jnp.zeros(4), x))[0]


@case(numbers(3, 4))
def while_count(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.tanh(s[1] @ W) + x), (0, x))[1]


@case(numbers(3, 4))
def while_condition(x):
    return lax.while_loop(lambda y: y.sum() < 40.0, lambda y: y * 1.5 + jnp.sin(x), x)


@case(numbers(4))
def newton_root(x):
    step = lambda s: ((s[0] + x / s[0]) / 2, jnp.abs((s[0] + x / s[0]) / 2 - s[0]).max())
    return lax.while_loop(lambda s: s[1] > 1e-4, step, (jnp.ones_like(x), jnp.float32(1)))[0]


@case(numbers(3, 4))
def cond(x):
    return lax.cond(x.sum() > 5.0, lambda x: jnp.sin(x) * x, lambda x: jnp.exp(x), x)


@case(numbers(3, 4))
def cond_in_scan(x):
    return lax.scan(lambda h, e: (lax.cond(e[0] > 0.5, lambda h: jnp.sin(h) + e, lambda h: h * e, h), h), jnp.ones(4), x)[1]


@case(numbers(3, 4))
def switch(x):
    return lax.switch(jnp.int32(x.sum() * 3) % 3, [jnp.sin, jnp.exp, lambda x: x * x], x)


@case(numbers(5, 4))
def vmap(x):
    return jax.vmap(lambda v: jnp.tanh(v @ W).sum() * v)(x)


@case(numbers(3, 4))
def cross_entropy(x):
    return -jax.nn.log_softmax(x @ W)[jnp.arange(3), jnp.array([0, 2, 1])]


@case(numbers(3, 4))
def cumsum(x):
    return jnp.cumsum(jnp.exp(x), axis=1)


@case(numbers(3, 4))
def cumprod(x):
    return jnp.cumprod(x, axis=0)


@case(numbers(3, 4))
def sort(x):
    return jnp.sort(x, axis=1) * jnp.arange(4)


@case(numbers(3, 4))
def logsumexp(x):
    return jax.nn.logsumexp(x * 3, axis=1) + jnp.linalg.norm(x, axis=1)


KERNEL = numbers(3, 3, 2, 4)


@case(numbers(1, 8, 8, 2))
def convolution(x):
    return lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@case(numbers(1, 8, 8, 2))
def pooling(x):
    return nnx.max_pool(x, window_shape=(2, 2), strides=(2, 2)) + nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2))


PROJECTIONS = numbers(3, 8, 8) - 0.5


@case(numbers(2, 6, 8))
def attention(x):
    q, k, v = (x @ p for p in PROJECTIONS)
    return jax.nn.softmax(q @ k.swapaxes(1, 2) / 8**0.5) @ v


@case(numbers(4, 4))
def activations(x):
    return jax.nn.gelu(x, approximate=False) + jax.scipy.special.erf(x) + jax.nn.swish(x) + jax.nn.elu(x - 0.5) + jax.nn.softplus(x)


@case(numbers(4, 4))
def where_clip(x):
    return jnp.where(x > 0.5, x**3, jnp.clip(x, 0.2, 0.4))


@case(numbers(4, 4))
def pad_slice(x):
    return lax.dynamic_slice(jnp.pad(x, ((1, 2), (0, 1)), constant_values=2.0), (1, 1), (4, 3)) ** 2


@case(numbers(4, 4))
def scatter_add(x):
    return jnp.zeros((6, 4)).at[jnp.array([0, 2, 2, 5])].add(x * x)


@case(numbers(5, 4))
def gather(x):
    return jnp.take(jnp.exp(x), jnp.array([0, 3, 3]), axis=0)


@case(numbers(4, 4))
def product_maximum(x):
    return x.prod(axis=1) + x.max(axis=0) + jnp.argmax(x)


MATRIX = numbers(3, 3)


@case(numbers(2, 5, 3))
def einsum(x):
    return jnp.einsum("bij,jk,bkl->bil", x, MATRIX, jnp.swapaxes(x, 1, 2))


@case(numbers(4, 4))
def trigonometry(x):
    return jnp.arctan2(x, x.T + 0.1) + jnp.arcsinh(x) + jnp.log1p(x) + jnp.expm1(x) + lax.rsqrt(x) + jnp.arccos(x)


def module(name, function, x):
    cases[name] = lambda: export(function, x)


streams = nnx.Rngs(0)
first, norm, last = nnx.Linear(4, 8, rngs=streams), nnx.LayerNorm(8, rngs=streams), nnx.Linear(8, 2, rngs=streams)
module("flax_mlp", lambda x: last(nnx.gelu(norm(first(x)))), numbers(3, 4))
filters, batch_norm = nnx.Conv(2, 4, (3, 3), rngs=streams), nnx.BatchNorm(4, use_running_average=True, rngs=streams)
module("flax_cnn", lambda x: nnx.relu(batch_norm(filters(x))).mean(axis=(1, 2)), numbers(2, 8, 8, 2))
heads = nnx.MultiHeadAttention(2, 8, rngs=streams, decode=False)
lstm, gru = nnx.LSTMCell(4, 6, rngs=streams), nnx.GRUCell(4, 6, rngs=streams)
module("flax_attention", lambda x: heads(x), numbers(2, 5, 8))


@case(numbers(2, 5, 4))
def flax_lstm(x):
    zeros = jnp.zeros((2, 6))
    return lax.scan(lstm, (zeros, zeros), x.swapaxes(0, 1))[1]


@case(numbers(2, 5, 4))
def flax_gru(x):
    return lax.scan(gru, jnp.zeros((2, 6)), x.swapaxes(0, 1))[1]
