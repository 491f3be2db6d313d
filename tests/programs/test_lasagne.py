"""Lasagne computes and learns what NumPy does by hand: a perceptron and a convolutional network.

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


def mlp(incoming):
    hidden = layers.DenseLayer(layers.dropout(incoming, 0.2), 16)
    return layers.DenseLayer(hidden, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def mlp_by_hand(images, w, b, v, c):
    return softmax(np.maximum(images.reshape(len(images), -1) @ w + b, 0) @ v + c)


def cnn(incoming):
    pooled = layers.MaxPool2DLayer(layers.Conv2DLayer(incoming, 3, 3), 2)
    return layers.DenseLayer(pooled, CLASSES, nonlinearity=lasagne.nonlinearities.softmax)


def cnn_by_hand(images, kernels, b, v, c):
    """A true convolution: kernels are flipped."""
    kernels = kernels[:, :, ::-1, ::-1]
    made = np.zeros((len(images), 3, SIZE - 2, SIZE - 2))
    for i, j in np.ndindex(made.shape[2:]):
        window = images[:, :, i : i + 3, j : j + 3]
        made[:, :, i, j] = np.tensordot(window, kernels, ((1, 2, 3), (1, 2, 3))) + b
    half = (SIZE - 2) // 2
    pooled = np.maximum(made, 0).reshape(len(images), 3, half, 2, half, 2).max((3, 5))
    return softmax(pooled.reshape(len(images), -1) @ v + c)


def data(count):
    """Noisy images, with one bright corner that is the class."""
    classes = RNG.randint(CLASSES, size=count)
    images = RNG.standard_normal((count, 1, SIZE, SIZE))
    for image, which in zip(images[:, 0], classes, strict=True):
        row, column = 5 * (which // 2), 5 * (which % 2)
        image[row : row + 3, column : column + 3] += 2
    return images.astype(theano.config.floatX), classes.astype("int32")


@pytest.mark.parametrize(("network", "by_hand"), [(mlp, mlp_by_hand), (cnn, cnn_by_hand)])
def test_by_hand_and_it_learns(network, by_hand):
    images, classes = tensor.tensor4(), tensor.ivector()
    top = network(layers.InputLayer((None, 1, SIZE, SIZE), images))
    predict = theano.function([images], layers.get_output(top, deterministic=True))
    seen, target = data(500)
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
    unseen, target = data(500)
    assert np.mean(predict(unseen).argmax(1) == target) > 0.95


def test_a_step_by_hand():
    """Of softmax regression, whose gradient is known."""
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
    found = softmax(seen @ w + b)
    np.testing.assert_allclose(
        step(seen, target), -np.log(found[range(10), target]).mean(), rtol=1e-5
    )
    error = (found - np.eye(CLASSES)[target]) / 10
    new_w, new_b = layers.get_all_param_values(top)
    np.testing.assert_allclose(new_w, w - 0.5 * seen.T @ error, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new_b, b - 0.5 * error.sum(0), rtol=1e-4, atol=1e-6)
