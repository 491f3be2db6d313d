"""Compare Lasagne's perceptron and convolutional network with NumPy code, and train them.

Also train a Neural Turing Machine of Lasagne's layers to copy.

It runs in an environment with Lasagne: ./invoke build --stack=openblas --with=lasagne
"""

import lasagne
import numpy as np
import pytest
import theano
from lasagne import layers
from theano import tensor

RNG = np.random.RandomState(1)
CLASSES = 4
SIZE = 8


def softmax(x):
    exponentials = np.exp(x - x.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


def build_mlp(incoming):
    hidden = layers.DenseLayer(layers.dropout(incoming, 0.2), 16)
    return layers.DenseLayer(hidden, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def compute_mlp(images, w, b, v, c):
    return softmax(np.maximum(images.reshape(len(images), -1) @ w + b, 0) @ v + c)


def build_cnn(incoming):
    pooled = layers.MaxPool2DLayer(layers.Conv2DLayer(incoming, 3, 3), 2)
    return layers.DenseLayer(pooled, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def compute_cnn(images, kernels, b, v, c):
    """Compute true convolutions, which flip the kernels."""
    kernels = kernels[:, :, ::-1, ::-1]
    made = np.zeros((len(images), 3, SIZE - 2, SIZE - 2))
    for i, j in np.ndindex(made.shape[2:]):
        window = images[:, :, i : i + 3, j : j + 3]
        made[:, :, i, j] = np.tensordot(window, kernels, ((1, 2, 3), (1, 2, 3))) + b
    half = (SIZE - 2) // 2
    pooled = np.maximum(made, 0).reshape(len(images), 3, half, 2, half, 2).max((3, 5))
    return softmax(pooled.reshape(len(images), -1) @ v + c)


def make_data(count):
    """Make noisy images; the position of a bright corner is the class."""
    classes = RNG.randint(CLASSES, size=count)
    images = RNG.standard_normal((count, 1, SIZE, SIZE))
    for at, which in enumerate(classes):
        row, column = 5 * (which // 2), 5 * (which % 2)
        images[at, 0, row : row + 3, column : column + 3] += 2
    return images.astype(theano.config.floatX), classes.astype("int32")


@pytest.mark.parametrize(
    ("network", "by_hand"), [(build_mlp, compute_mlp), (build_cnn, compute_cnn)]
)
def test_results_equal_numpy_and_training_works(network, by_hand):
    images, classes = tensor.tensor4(), tensor.ivector()
    top = network(layers.InputLayer((None, 1, SIZE, SIZE), images))
    predict = theano.function([images], layers.get_output(top, deterministic=True))
    seen, target = make_data(500)
    weights = [RNG.standard_normal(w.shape) / 3 for w in layers.get_all_param_values(top)]
    layers.set_all_param_values(top, [w.astype(theano.config.floatX) for w in weights])
    np.testing.assert_allclose(predict(seen), by_hand(seen, *weights), rtol=1e-4, atol=1e-6)

    loss = lasagne.objectives.categorical_crossentropy(layers.get_output(top), classes).mean()
    parameters = layers.get_all_params(top, trainable=True)
    updates = lasagne.updates.nesterov_momentum(loss, parameters, 0.05, 0.9)
    train = theano.function([images, classes], loss, updates=updates)
    for _ in range(20):
        for at in range(0, len(seen), 50):
            train(seen[at : at + 50], target[at : at + 50])
    unseen, target = make_data(500)
    assert np.mean(predict(unseen).argmax(1) == target) > 0.95


def test_a_training_step_equals_numpy():
    """Compare a step of softmax regression with the closed form of its gradient."""
    x, y = tensor.matrix(), tensor.ivector()
    top = layers.DenseLayer(
        layers.InputLayer((None, 5), x), CLASSES, nonlinearity=lasagne.nonlinearities.softmax
    )
    loss = lasagne.objectives.categorical_crossentropy(layers.get_output(top), y).mean()
    step = theano.function(
        [x, y], loss, updates=lasagne.updates.sgd(loss, layers.get_all_params(top), 0.5)
    )
    seen = RNG.standard_normal((10, 5)).astype(theano.config.floatX)
    target = RNG.randint(CLASSES, size=10).astype("int32")
    w, b = layers.get_all_param_values(top)
    probabilities = softmax(seen @ w + b)
    np.testing.assert_allclose(
        step(seen, target), -np.log(probabilities[range(10), target]).mean(), rtol=1e-5
    )
    error = (probabilities - np.eye(CLASSES)[target]) / 10
    new_w, new_b = layers.get_all_param_values(top)
    np.testing.assert_allclose(new_w, w - 0.5 * seen.T @ error, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new_b, b - 0.5 * error.sum(0), rtol=1e-4, atol=1e-6)


BITS, CELLS, WIDTH, UNITS = 4, 10, 6, 32


def compute_address(weighting, memory, head):
    """Compute a head's addresses in a Neural Turing Machine: by content, then by location."""
    key, shift, *columns = head
    strength, gate, sharpness = (tensor.addbroadcast(column, 1) for column in columns)
    products = (memory * key[:, None]).sum(2)
    lengths = tensor.sqrt(((memory**2).sum(2) + 1e-6) * ((key**2).sum(1, keepdims=True) + 1e-6))
    content = tensor.nnet.softmax(strength * products / lengths)
    mixed = gate * content + (1 - gate) * weighting
    turned = sum(shift[:, i, None] * tensor.roll(mixed, i - 1, axis=1) for i in range(3))
    sharp = turned ** (1 + sharpness)
    return sharp / sharp.sum(1, keepdims=True)


def build_turing_machine(inputs):
    """Return the outputs and parameters of a machine with a read head and a write head.

    Inputs are (time, batch, BITS + 1).
    """
    nonlinear = lasagne.nonlinearities
    seen = layers.InputLayer((None, BITS + 1 + WIDTH))
    controller = layers.DenseLayer(seen, UNITS, nonlinearity=nonlinear.tanh)
    head = [
        (WIDTH, nonlinear.tanh),
        (3, nonlinear.softmax),
        (1, tensor.nnet.softplus),
        (1, nonlinear.sigmoid),
        (1, tensor.nnet.softplus),
    ]
    wanted = [*head, *head, (WIDTH, nonlinear.sigmoid), (WIDTH, nonlinear.tanh)]
    heads = [layers.DenseLayer(controller, size, nonlinearity=f) for size, f in wanted]
    memory_layer = layers.InputLayer((None, UNITS + WIDTH))
    answer = layers.DenseLayer(memory_layer, BITS, nonlinearity=nonlinear.sigmoid)

    def step(x, memory, read_at, write_at, read):
        hidden, *parts = layers.get_output(
            [controller, *heads], {seen: tensor.concatenate([x, read], axis=1)}
        )
        write_at = compute_address(write_at, memory, parts[5:10])
        erase, add = (vector[:, None] for vector in parts[10:])
        at = write_at[:, :, None]
        memory = memory * (1 - at * erase) + at * add
        read_at = compute_address(read_at, memory, parts[:5])
        read = (read_at[:, :, None] * memory).sum(1)
        output = layers.get_output(
            answer, {memory_layer: tensor.concatenate([hidden, read], axis=1)}
        )
        return memory, read_at, write_at, read, output

    batch = inputs.shape[1]
    first = tensor.zeros((batch, CELLS))
    first = tensor.set_subtensor(first[:, 0], 1)
    memory = tensor.zeros((batch, CELLS, WIDTH)) + 1e-3
    begin = [memory, first, first, tensor.zeros((batch, WIDTH)), None]
    (*_, outputs), _ = theano.scan(step, sequences=inputs, outputs_info=begin)
    return outputs, layers.get_all_params([*heads, answer], trainable=True)


def test_a_turing_machine_copies():
    lasagne.random.set_rng(np.random.RandomState(1))
    inputs, targets = tensor.tensor3(), tensor.tensor3()
    outputs, parameters = build_turing_machine(inputs)
    outputs = outputs[-targets.shape[0] :]
    loss = lasagne.objectives.binary_crossentropy(outputs.clip(1e-6, 1 - 1e-6), targets).mean()
    slopes = lasagne.updates.total_norm_constraint(theano.grad(loss, parameters), 5)
    updates = lasagne.updates.adam(slopes, parameters, 0.01)
    train = theano.function([inputs, targets], [loss, outputs], updates=updates)
    rng = np.random.RandomState(2)
    last = []
    for _ in range(1500):
        length = rng.randint(1, 4)
        items = rng.randint(2, size=(length, 16, BITS))
        sequence = np.zeros((2 * length + 1, 16, BITS + 1))
        sequence[:length, :, :BITS] = items
        sequence[length, :, BITS] = 1
        value, answers = train(*(x.astype(theano.config.floatX) for x in (sequence, items)))
        last = [*last[-30:], value]
        if len(last) > 30 and max(last) < 0.05:
            break
    assert max(last) < 0.05
    np.testing.assert_array_equal(answers > 0.5, items)
