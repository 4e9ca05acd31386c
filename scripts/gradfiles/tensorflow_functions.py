"""Functions of TensorFlow and layers of Keras with loops and branches, exported by tf2onnx."""

import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import numpy as np
import tensorflow as tf
import tf2onnx

from frameworks import Case, NotExported

tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
cases = {}


def numbers(*shape):
    return rng.uniform(0.1, 0.9, shape).astype("f")


def case(*inputs, open=False):
    """Makes a case of a function of inputs, of which the first dimension is not known in the file if open."""

    def add(function):
        cases[function.__name__] = lambda: export(function, inputs, lambda shape: [None, *shape[1:]] if open else shape)
        return function

    return add


def layers(name, *stack, shape=(7, 3), open=False):
    """Makes a case of layers over sequences, of which batch and length are not known in the file if open."""
    inputs = tf.keras.Input((None, *shape[1:]) if open else shape)
    outputs = inputs
    for layer in stack:
        outputs = layer(outputs)
    model = tf.keras.Model(inputs, outputs)
    batch = numbers(2, *shape)
    cases[name] = lambda: export(lambda x: model(x), [batch], lambda shape: [None, None, *shape[2:]] if open else shape)


def export(function, inputs, declared):
    inputs = [np.asarray(x) for x in inputs]
    constants = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(constants[0])
        value = tf.function(function)(*constants)
        total = tf.reduce_sum(value)
    signature = [tf.TensorSpec(declared(list(x.shape)) if x.ndim else [], tf.as_dtype(x.dtype), name=f"x{i}") for i, x in enumerate(inputs)]
    try:
        model, _ = tf2onnx.convert.from_function(tf.function(function, input_signature=signature), input_signature=signature, opset=17)
    except Exception as error:
        raise NotExported(f"{type(error).__name__}: {error}") from error
    return Case(inputs, value.numpy(), tape.gradient(total, constants[0]).numpy(), model)


W = rng.normal(size=(4, 4)).astype("f") * 0.4
ZERO = np.int32(0)


def repeat(x, times=5):
    return tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, tf.tanh(y @ W) + x), (ZERO, x))[1]


@case(numbers(3, 4))
def while_fixed(x):
    return repeat(x)


@case(numbers(3, 4), open=True)
def while_fixed_open(x):
    return repeat(x)


@case(numbers(3, 4), np.int32(4))
def while_count_input(x, n):
    return repeat(x, n)


@case(numbers(3, 4), open=True)
def while_count_dimension(x):
    step = lambda i, y: (i + 1, y * 1.1 + tf.sin(x[i]))
    return tf.while_loop(lambda i, y: i < tf.shape(x)[0], step, (ZERO, tf.zeros([4])))[1]


@case(numbers(3, 4))
def while_condition(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 40.0, lambda y: (y * 1.5 + tf.sin(x),), (x,))[0]


@case(numbers(3, 4))
def while_two_conditions(x):
    more = lambda i, y: tf.logical_and(i < 50, tf.reduce_max(y) < 9.0)
    return tf.while_loop(more, lambda i, y: (i + 1, y * 1.5 + tf.sin(x)), (ZERO, x))[1]


def collect(x, n):
    def step(i, h, array):
        h = tf.tanh(h @ W + tf.reshape(x[i], [1, 4]))
        return i + 1, h, array.write(i, h * h)

    array = tf.TensorArray(tf.float32, n, element_shape=[1, 4])
    return tf.while_loop(lambda i, h, array: i < n, step, (ZERO, tf.zeros([1, 4]), array))[2].stack()


@case(numbers(6, 4))
def while_array(x):
    return collect(x, 6)


@case(numbers(6, 4), open=True)
def while_array_open(x):
    return collect(x, tf.shape(x)[0])


@case(numbers(6, 4))
def scan_fixed(x):
    return tf.scan(lambda h, e: tf.tanh(h * 0.5 + e), x, tf.zeros([4]))


@case(numbers(6, 4), open=True)
def scan_open(x):
    return tf.scan(lambda h, e: tf.tanh(tf.linalg.matvec(W, h) + e), x, tf.zeros([4]))


@case(numbers(6, 4))
def map_fn(x):
    return tf.map_fn(lambda e: tf.sin(e) * tf.reduce_sum(e), x)


@case(numbers(6, 4), open=True)
def foldl(x):
    return tf.foldl(lambda a, e: tf.tanh(a) * e + e, x, tf.ones([4]))


@case(numbers(3, 4))
def cond(x):
    return tf.cond(tf.reduce_sum(x) > 5.0, lambda: tf.sin(x) * x, lambda: tf.exp(x))


@case(numbers(3, 4))
def cond_in_while(x):
    step = lambda i, y: (i + 1, tf.cond(i % 2 > 0, lambda: tf.sin(y) + x, lambda: y * x))
    return tf.while_loop(lambda i, y: i < 5, step, (ZERO, x))[1]


@case(numbers(3, 4))
def while_in_while(x):
    def step(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, tf.tanh(z @ W) + x), (ZERO, y))[1]

    return tf.while_loop(lambda i, y: i < 2, step, (ZERO, x))[1]


@case(numbers(4))
def newton_root(x):
    step = lambda y, d: ((y + x / y) / 2, tf.reduce_max(tf.abs((y + x / y) / 2 - y)))
    return tf.while_loop(lambda y, d: d > 1e-4, step, (tf.ones_like(x), tf.constant(1.0)))[0]


@case(numbers(3, 4))
def autograph(x):
    y = x
    for _ in tf.range(4):
        if tf.reduce_sum(y) > 6.0:
            y = y * 0.5
        else:
            y = y * 2.0 + x
    return y


K = tf.keras.layers
layers("lstm", K.LSTM(5))
layers("lstm_open", K.LSTM(5, return_sequences=True), open=True)
layers("lstm_bidirectional_open", K.Bidirectional(K.LSTM(5, return_sequences=True)), open=True)
layers("lstm_relu_open", K.LSTM(5, activation="relu", recurrent_activation="hard_sigmoid"), open=True)
layers("lstm_masked", K.Masking(0.0), K.LSTM(5))
layers("lstm_convolution", K.ConvLSTM1D(3, 3), shape=(5, 6, 2))
layers("gru", K.GRU(5))
layers("gru_open", K.GRU(5, return_sequences=True), open=True)
layers("gru_reset_before", K.GRU(5, reset_after=False))
layers("rnn_open", K.SimpleRNN(5, return_sequences=True), open=True)
layers("rnn_stacked_cells", K.RNN(K.StackedRNNCells([K.LSTMCell(4), K.GRUCell(3)])))
