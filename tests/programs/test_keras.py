"""Compare Keras on Theano with NumPy code, train models, and load saved models.

The tests run in an environment with Keras, which one of these commands builds:

    ./invoke build --stack=openblas --with=keras
    ./invoke build --stack=openblas --with=keras-2.2
"""

import h5py
import numpy as np
import pytest
from keras import layers, models

RNG = np.random.RandomState(1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(images, kernels, bias):
    """Convolve images with kernels, without padding; add a bias for each filter.

    Shapes: images (batch, height, width, channels), kernels (height, width, channels, filters).
    The kernels are flipped, as Theano does; TensorFlow does not flip kernels.
    """
    height, width, *_ = kernels.shape
    kernels = kernels[::-1, ::-1]
    rows, columns = images.shape[1] - height + 1, images.shape[2] - width + 1
    convolved = np.zeros((len(images), rows, columns, kernels.shape[-1]))
    for i in range(rows):
        for j in range(columns):
            window = images[:, i : i + height, j : j + width]
            convolved[:, i, j] = np.tensordot(window, kernels, 3)
    return convolved + bias


def run_lstm(sequences, kernel, recurrent, bias):
    """Run an LSTM over sequences of shape (batch, time, features); return its last output.

    The columns of the matrices belong to the input gate, the forget gate, the cell and the output
    gate, in this order.
    """
    units = len(recurrent)
    h = c = np.zeros((len(sequences), units))
    for x in sequences.swapaxes(0, 1):
        i, f, new, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
    return h


# Request sigmoid gates, because Keras 2.2's default gates are piecewise linear.
SIGMOID = {"bias_initializer": "glorot_uniform", "recurrent_activation": "sigmoid"}
CASES = [
    (layers.Conv2D(4, (3, 2), input_shape=(7, 6, 3)), convolve),
    (layers.LSTM(5, input_shape=(7, 3), **SIGMOID), run_lstm),
]


@pytest.fixture(params=CASES, ids=["conv", "lstm"])
def case(request):
    """Return a compiled model of one layer, a NumPy function with equal results, and inputs."""
    layer, compute = request.param
    model = models.Sequential([layer])
    model.compile("adam", "mse")
    return model, compute, RNG.standard_normal((8, *model.input_shape[1:]))


def test_results_equal_numpys_results(case):
    model, compute, x = case
    weights = [RNG.standard_normal(w.shape) / 2 for w in model.get_weights()]
    model.set_weights(weights)
    np.testing.assert_allclose(model.predict(x), compute(x, *weights), rtol=1e-4, atol=1e-5)


def test_a_trained_model_is_saved_and_loaded(case, tmp_path):
    """Training reduces the loss; the loaded model predicts and trains like the saved model."""
    model, _, x = case
    target = model.predict(x) + 0.3 * RNG.standard_normal(model.predict(x).shape)
    losses = model.fit(x, target, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(str(tmp_path / "model.h5"))
    loaded = models.load_model(str(tmp_path / "model.h5"))
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    # The file contains the optimizer's state, so the next training step is the same.
    assert loaded.train_on_batch(x, target) == pytest.approx(model.train_on_batch(x, target))
    np.testing.assert_allclose(loaded.get_weights()[0], model.get_weights()[0], rtol=1e-5)


def test_two_inputs_share_layers(tmp_path):
    """A model averages its outputs for a DNA sequence and the reverse complement.

    The program DeepVirFinder has such a model. The test trains, saves and loads the model, and
    compares its outputs with NumPy's results.
    """
    shared = [
        layers.Conv1D(6, 4, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dropout(0.1),
        layers.Dense(5, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
    strands = outputs = [layers.Input((None, 4)) for _ in range(2)]
    for layer in shared:
        outputs = [layer(output) for output in outputs]
    model = models.Model(strands, layers.average(outputs))
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    bases = np.eye(4)[RNG.randint(4, size=(64, 30))]
    inputs = [bases, bases[:, ::-1, ::-1]]

    labels = (bases[..., 0].sum(1) > 7).astype(float)
    losses = model.fit(inputs, labels, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(str(tmp_path / "model.h5"))
    loaded = models.load_model(str(tmp_path / "model.h5"))
    kernel, bias, v, b, w, c = model.get_weights()
    expected = 0
    for strand in inputs:
        maxima = convolve(strand[:, :, None], kernel[:, None], bias).max((1, 2))
        expected += sigmoid(np.maximum(np.maximum(maxima, 0) @ v + b, 0) @ w + c) / 2
    for network in model, loaded:
        np.testing.assert_allclose(network.predict(inputs), expected, rtol=1e-4, atol=1e-5)


def test_kernels_of_a_tensorflow_file_are_flipped(tmp_path):
    """Keras flips the kernels of a file from TensorFlow, whose convolutions do not flip them."""
    model = models.Sequential([layers.Conv2D(4, (3, 2), input_shape=(7, 6, 3))])
    model.save(str(tmp_path / "model.h5"))
    with h5py.File(str(tmp_path / "model.h5"), "a") as file:
        file["model_weights"].attrs["backend"] = b"tensorflow"
    [kernel, _], [flipped, _] = (
        network.get_weights() for network in (model, models.load_model(str(tmp_path / "model.h5")))
    )
    np.testing.assert_array_equal(flipped, kernel[::-1, ::-1])
