"""Compare networks of Lasagne's layers with NumPy code, and train them.

The networks are a perceptron, a convolutional network, and a Neural Turing Machine that learns to
copy. The tests run in an environment with Lasagne:

    ./invoke build --stack=openblas --with=lasagne
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


# build_mlp and build_cnn return the output layer of a network. compute_mlp and compute_cnn compute
# the outputs of the network with NumPy, from images and the network's weights.


def build_mlp(incoming):
    hidden = layers.DenseLayer(layers.dropout(incoming, 0.2), 16)
    return layers.DenseLayer(hidden, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def compute_mlp(images, w, b, v, c):
    return softmax(np.maximum(images.reshape(len(images), -1) @ w + b, 0) @ v + c)


def build_cnn(incoming):
    pooled = layers.MaxPool2DLayer(layers.Conv2DLayer(incoming, 3, 3), 2)
    return layers.DenseLayer(pooled, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def compute_cnn(images, kernels, b, v, c):
    # Lasagne flips the kernels: it computes convolutions, not correlations.
    kernels = kernels[:, :, ::-1, ::-1]
    convolved = np.zeros((len(images), 3, SIZE - 2, SIZE - 2))
    for i, j in np.ndindex(convolved.shape[2:]):
        window = images[:, :, i : i + 3, j : j + 3]
        convolved[:, :, i, j] = np.tensordot(window, kernels, ((1, 2, 3), (1, 2, 3))) + b
    half = (SIZE - 2) // 2
    pooled = np.maximum(convolved, 0).reshape(len(images), 3, half, 2, half, 2).max((3, 5))
    return softmax(pooled.reshape(len(images), -1) @ v + c)


def make_data(count):
    """Return ``count`` noisy images with a bright corner, and their classes.

    The class of an image is the number of its bright corner, 0 to 3.
    """
    classes = RNG.randint(CLASSES, size=count)
    images = RNG.standard_normal((count, 1, SIZE, SIZE))
    for position, corner in enumerate(classes):
        row, column = 5 * (corner // 2), 5 * (corner % 2)
        images[position, 0, row : row + 3, column : column + 3] += 2
    return images.astype(theano.config.floatX), classes.astype("int32")


@pytest.mark.parametrize(("build", "compute"), [(build_mlp, compute_mlp), (build_cnn, compute_cnn)])
def test_results_equal_numpys_results_and_training_works(build, compute):
    """After training, the network classifies more than 95 % of 500 new images correctly."""
    images, classes = tensor.tensor4(), tensor.ivector()
    top = build(layers.InputLayer((None, 1, SIZE, SIZE), images))
    predict = theano.function([images], layers.get_output(top, deterministic=True))
    training_images, target = make_data(500)
    weights = [RNG.standard_normal(w.shape) / 3 for w in layers.get_all_param_values(top)]
    layers.set_all_param_values(top, [w.astype(theano.config.floatX) for w in weights])
    expected = compute(training_images, *weights)
    np.testing.assert_allclose(predict(training_images), expected, rtol=1e-4, atol=1e-6)

    loss = lasagne.objectives.categorical_crossentropy(layers.get_output(top), classes).mean()
    parameters = layers.get_all_params(top, trainable=True)
    updates = lasagne.updates.nesterov_momentum(loss, parameters, 0.05, 0.9)
    train = theano.function([images, classes], loss, updates=updates)
    for _ in range(20):
        for start in range(0, len(training_images), 50):
            train(training_images[start : start + 50], target[start : start + 50])
    new_images, target = make_data(500)
    assert np.mean(predict(new_images).argmax(1) == target) > 0.95


def test_a_training_step_equals_numpys_step():
    """A step of softmax regression follows the gradient's closed form."""
    x, y = tensor.matrix(), tensor.ivector()
    top = layers.DenseLayer(
        layers.InputLayer((None, 5), x), CLASSES, nonlinearity=lasagne.nonlinearities.softmax
    )
    loss = lasagne.objectives.categorical_crossentropy(layers.get_output(top), y).mean()
    step = theano.function(
        [x, y], loss, updates=lasagne.updates.sgd(loss, layers.get_all_params(top), 0.5)
    )
    inputs = RNG.standard_normal((10, 5)).astype(theano.config.floatX)
    target = RNG.randint(CLASSES, size=10).astype("int32")
    w, b = layers.get_all_param_values(top)
    probabilities = softmax(inputs @ w + b)
    np.testing.assert_allclose(
        step(inputs, target), -np.log(probabilities[range(10), target]).mean(), rtol=1e-5
    )
    error = (probabilities - np.eye(CLASSES)[target]) / 10
    new_w, new_b = layers.get_all_param_values(top)
    np.testing.assert_allclose(new_w, w - 0.5 * inputs.T @ error, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new_b, b - 0.5 * error.sum(0), rtol=1e-4, atol=1e-6)


# The bits of an item to copy, the memory cells, the numbers in a cell, and the controller's units.
BITS, CELLS, WIDTH, UNITS = 4, 10, 6, 32


def compute_weighting(weighting, memory, head):
    """Return the new weighting of the memory cells by a head: (batch, CELLS).

    The head addresses cells by their content, then by their location.

    Args:
        weighting: the previous weighting.
        memory: (batch, CELLS, WIDTH).
        head: the outputs of the head's layers: key, shift, strength, gate and sharpness.
    """
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
    """Build a Neural Turing Machine with a read head and a write head.

    Return the machine's outputs, of shape (time, batch, BITS), and its parameters. ``inputs`` have
    the shape (time, batch, BITS + 1).
    """
    nonlinear = lasagne.nonlinearities
    controller_input = layers.InputLayer((None, BITS + 1 + WIDTH))
    controller = layers.DenseLayer(controller_input, UNITS, nonlinearity=nonlinear.tanh)
    head = [
        (WIDTH, nonlinear.tanh),
        (3, nonlinear.softmax),
        (1, tensor.nnet.softplus),
        (1, nonlinear.sigmoid),
        (1, tensor.nnet.softplus),
    ]
    # The sizes and nonlinearities of the layers: five layers of the read head, five layers of the
    # write head, and the layers that compute the vectors to erase and to add.
    sizes = [*head, *head, (WIDTH, nonlinear.sigmoid), (WIDTH, nonlinear.tanh)]
    heads = [layers.DenseLayer(controller, size, nonlinearity=f) for size, f in sizes]
    memory_layer = layers.InputLayer((None, UNITS + WIDTH))
    answer = layers.DenseLayer(memory_layer, BITS, nonlinearity=nonlinear.sigmoid)

    def step(x, memory, read_at, write_at, read):
        hidden, *parts = layers.get_output(
            [controller, *heads], {controller_input: tensor.concatenate([x, read], axis=1)}
        )
        write_at = compute_weighting(write_at, memory, parts[5:10])
        erase, add = (vector[:, None] for vector in parts[10:])
        at = write_at[:, :, None]
        memory = memory * (1 - at * erase) + at * add
        read_at = compute_weighting(read_at, memory, parts[:5])
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


def test_a_turing_machine_learns_to_copy():
    """The machine reads one to three items and a delimiter. Then it must write the items.

    Within 1,500 steps, the last 31 losses are below 0.05, and the rounded outputs are the items.
    """
    lasagne.random.set_rng(np.random.RandomState(1))
    inputs, targets = tensor.tensor3(), tensor.tensor3()
    outputs, parameters = build_turing_machine(inputs)
    outputs = outputs[-targets.shape[0] :]
    loss = lasagne.objectives.binary_crossentropy(outputs.clip(1e-6, 1 - 1e-6), targets).mean()
    slopes = lasagne.updates.total_norm_constraint(theano.grad(loss, parameters), 5)
    updates = lasagne.updates.adam(slopes, parameters, 0.01)
    train = theano.function([inputs, targets], [loss, outputs], updates=updates)
    rng = np.random.RandomState(2)
    last_losses = []
    for _ in range(1500):
        length = rng.randint(1, 4)
        items = rng.randint(2, size=(length, 16, BITS))
        sequence = np.zeros((2 * length + 1, 16, BITS + 1))
        sequence[:length, :, :BITS] = items
        sequence[length, :, BITS] = 1
        value, answers = train(*(x.astype(theano.config.floatX) for x in (sequence, items)))
        last_losses = [*last_losses[-30:], value]
        if len(last_losses) > 30 and max(last_losses) < 0.05:
            break
    assert max(last_losses) < 0.05
    np.testing.assert_array_equal(answers > 0.5, items)
