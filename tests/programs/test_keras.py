"""Compare Keras on Theano with NumPy code, train models, and load saved models.

It runs in an environment with Keras: ./invoke build --stack=openblas --with=keras, or keras-2.2
"""

import h5py
import numpy as np
import pytest
from keras import layers, models

RNG = np.random.RandomState(1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(images, kernels, bias):
    """Convolve (batch, height, width, channels) with (h, w, channels, filters).

    Theano flips kernels; TensorFlow does not.
    """
    height, width, *_ = kernels.shape
    kernels = kernels[::-1, ::-1]
    rows, columns = images.shape[1] - height + 1, images.shape[2] - width + 1
    made = np.zeros((len(images), rows, columns, kernels.shape[-1]))
    for i in range(rows):
        for j in range(columns):
            made[:, i, j] = np.tensordot(images[:, i : i + height, j : j + width], kernels, 3)
    return made + bias


def lstm(sequences, kernel, recurrent, bias):
    """Run an LSTM over (batch, time, features); return its last output. Gates are i, f, c, o."""
    units = len(recurrent)
    h = c = np.zeros((len(sequences), units))
    for x in sequences.swapaxes(0, 1):
        i, f, new, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
    return h


# Keras 2.2's gates are piecewise linear by default.
SIGMOID = {"bias_initializer": "glorot_uniform", "recurrent_activation": "sigmoid"}
CASES = [
    (layers.Conv2D(4, (3, 2), input_shape=(7, 6, 3)), convolve),
    (layers.LSTM(5, input_shape=(7, 3), **SIGMOID), lstm),
]


@pytest.fixture(params=CASES, ids=["conv", "lstm"])
def case(request):
    """Return a compiled model of one layer, the same computation in NumPy, and inputs."""
    layer, by_hand = request.param
    model = models.Sequential([layer])
    model.compile("adam", "mse")
    return model, by_hand, RNG.standard_normal((8, *model.input_shape[1:]))


def test_results_equal_numpy(case):
    model, by_hand, x = case
    weights = [RNG.standard_normal(w.shape) / 2 for w in model.get_weights()]
    model.set_weights(weights)
    np.testing.assert_allclose(model.predict(x), by_hand(x, *weights), rtol=1e-4, atol=1e-5)


def test_training_and_saved_model(case, tmp_path):
    model, _, x = case
    target = model.predict(x) + 0.3 * RNG.standard_normal(model.predict(x).shape)
    losses = model.fit(x, target, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(str(tmp_path / "model.h5"))
    again = models.load_model(str(tmp_path / "model.h5"))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    # The file contains the optimizer's state, so that training continues unchanged.
    assert again.train_on_batch(x, target) == pytest.approx(model.train_on_batch(x, target))
    np.testing.assert_allclose(again.get_weights()[0], model.get_weights()[0], rtol=1e-5)


def test_two_inputs_share_layers(tmp_path):
    """Compute the mean output for a sequence and its reverse complement, like DeepVirFinder."""
    shared = [
        layers.Conv1D(6, 4, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dropout(0.1),
        layers.Dense(5, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
    strands = ends = [layers.Input((None, 4)) for _ in range(2)]
    for layer in shared:
        ends = [layer(end) for end in ends]
    model = models.Model(strands, layers.average(ends))
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    bases = np.eye(4)[RNG.randint(4, size=(64, 30))]
    both = [bases, bases[:, ::-1, ::-1]]

    labels = (bases[..., 0].sum(1) > 7).astype(float)
    losses = model.fit(both, labels, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(str(tmp_path / "model.h5"))
    again = models.load_model(str(tmp_path / "model.h5"))
    kernel, bias, v, b, w, c = model.get_weights()
    expected = 0
    for strand in both:
        maxima = convolve(strand[:, :, None], kernel[:, None], bias).max((1, 2))
        expected += sigmoid(np.maximum(np.maximum(maxima, 0) @ v + b, 0) @ w + c) / 2
    for network in model, again:
        np.testing.assert_allclose(network.predict(both), expected, rtol=1e-4, atol=1e-5)


def test_weights_of_tensorflow_are_read(tmp_path):
    """Load weights of TensorFlow, whose convolutions do not flip their kernels."""
    model = models.Sequential([layers.Conv2D(4, (3, 2), input_shape=(7, 6, 3))])
    model.save(str(tmp_path / "model.h5"))
    with h5py.File(str(tmp_path / "model.h5"), "a") as file:
        file["model_weights"].attrs["backend"] = b"tensorflow"
    [kernel, _], [flipped, _] = (
        network.get_weights() for network in (model, models.load_model(str(tmp_path / "model.h5")))
    )
    np.testing.assert_array_equal(flipped, kernel[::-1, ::-1])
