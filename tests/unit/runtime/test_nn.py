"""Compare theano_fast.nn with NumPy: its values with formulas, its gradients with complex steps."""

import itertools
import pickle

import pytest

np = pytest.importorskip("numpy", reason="the builder's Python has no NumPy")
theano = pytest.importorskip("theano", reason="the builder's Python has no Theano")
nn = pytest.importorskip("theano_fast.nn")
T = theano.tensor

# The number of gates of each mode.
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
MODES = pytest.mark.parametrize("mode", GATES)
TIME, BATCH, INPUTS, UNITS = 4, 3, 5, 7


@pytest.fixture(autouse=True)
def isolate():
    """Replace the fixture of tests/unit/conftest.py, because these tests start a compiler."""


@pytest.fixture
def few_optimizations(monkeypatch):
    """Compile with the mode FAST_COMPILE, which takes a second; scans then run in Python."""
    quick = theano.compile.mode.predefined_modes["FAST_COMPILE"]
    monkeypatch.setattr(theano.compile.mode, "instantiated_default_mode", quick)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def compute_step(mode, from_input, from_state, h, c):
    """Compute the next state and cell of one time step.

    Args:
        from_input: for each gate, in cuDNN's order, the product of input and weights plus its bias.
        from_state: for each gate, the product of state and weights plus its bias.
        h: the state.
        c: the cell, which only an LSTM changes.
    """
    sums = [a + b for a, b in zip(from_input, from_state, strict=True)]
    if mode == "rnn_tanh":
        return np.tanh(sums[0]), c
    if mode == "rnn_relu":
        return np.where(sums[0].real > 0, sums[0], 0), c
    if mode == "lstm":
        c = sigmoid(sums[1]) * c + sigmoid(sums[0]) * np.tanh(sums[2])
        return sigmoid(sums[3]) * np.tanh(c), c
    update = sigmoid(sums[1])
    return (1 - update) * np.tanh(from_input[2] + sigmoid(sums[0]) * from_state[2]) + update * h, c


def compute_network(layer, weights, x, h0, c0):
    """Compute a layer's outputs, last states and (LSTM only) last cells in NumPy.

    Args:
        weights: the flat weights in cuDNN's order: all matrices, then all biases.
        x: the inputs, (time, batch, inputs).
        h0, c0: the initial states and cells, (layers * directions, batch, units).
    """
    gates, units = GATES[layer.mode], layer.units
    position = 0

    def read_weights(*shape):
        nonlocal position
        position += np.prod(shape)
        return weights[position - np.prod(shape) : position].reshape(shape)

    turns = (1, -1) if layer.bidirectional else (1,)
    keys = list(itertools.product(range(layer.layers), turns))
    matrices, biases = {}, {}
    for number, turn in keys:
        below = units * len(turns) if number else layer.inputs
        skipped = not number and layer.input_mode == "skip"
        w = None if skipped else read_weights(gates, units, below)
        matrices[number, turn] = w, read_weights(gates, units, units)
    for key in keys:
        biases[key] = read_weights(gates, units), read_weights(gates, units)
    assert position == len(weights)
    last = []
    for number, turn in keys:
        if turn == 1:
            read, outputs = x, []
        (w, r), (bw, br) = matrices[number, turn], biases[number, turn]
        h, c = h0[len(last)], c0[len(last)]
        states = []
        for value in read[::turn]:
            from_input = [(value if w is None else value @ w[g].T) + bw[g] for g in range(gates)]
            h, c = compute_step(
                layer.mode, from_input, [h @ r[g].T + br[g] for g in range(gates)], h, c
            )
            states.append(h)
        outputs.append(np.array(states[::turn]))
        last.append((h, c))
        x = np.concatenate(outputs, axis=2)
    outputs = [x, *map(np.array, zip(*last, strict=True))]
    return outputs if layer.mode == "lstm" else outputs[:2]


def compile_layer(layer, kind=None):
    """Compile a function of the inputs, the initial states, and a factor for each output.

    The function returns the outputs, and the gradients of the cost sum(factors * outputs) with
    respect to the weights, the inputs and the initial states.
    """
    kind = kind or T.TensorType(layer.dtype, (False,) * 3)
    variables = [kind() for _ in range(3 if layer.mode == "lstm" else 2)]
    outputs = layer(*variables)
    factors = [kind() for _ in outputs]
    cost = sum((a * b).sum() for a, b in zip(outputs, factors, strict=True))
    slopes = T.grad(cost, [layer.weights, *variables])
    return theano.function([*variables, *factors], [*outputs, *slopes])


def compare(layer, time, batch, kind=None):
    """Compare outputs with NumPy, and gradients with the slope in a random direction."""
    draw = np.random.RandomState(7).uniform
    count = layer.layers * (2 if layer.bidirectional else 1)
    state = (count, batch, layer.units)
    arguments = [draw(-1, 1, shape) for shape in ((time, batch, layer.inputs), state, state)]
    function_arguments = arguments if layer.mode == "lstm" else arguments[:2]
    weights = draw(-1, 1, layer.size)
    layer.weights.set_value(weights)
    expected = compute_network(layer, weights, *arguments)
    factors = [draw(-1, 1, value.shape) for value in expected]
    results = compile_layer(layer, kind)(*function_arguments, *factors)
    for value, expected_value in zip(results, expected, strict=False):
        np.testing.assert_allclose(value, expected_value, rtol=0, atol=1e-13)

    # Complex-step derivative: the imaginary part of f(v + i h d) is h times the slope of f in the
    # direction d. No values are subtracted, so a tiny h loses no digits.
    directions = [draw(-1, 1, value.shape) for value in (weights, *arguments)]
    tiny = 1e-100
    complex_arguments = [
        v + 1j * tiny * d for v, d in zip((weights, *arguments), directions, strict=True)
    ]
    outputs = compute_network(layer, *complex_arguments)
    slope = sum((a * b).sum().imag for a, b in zip(outputs, factors, strict=True)) / tiny
    slopes = zip(results[len(expected) :], directions, strict=False)
    assert sum((a * b).sum() for a, b in slopes) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("input_mode", ["linear", "skip"])
@pytest.mark.parametrize("bidirectional", [False, True])
@MODES
@pytest.mark.usefixtures("few_optimizations")
def test_values_and_gradients_agree_with_numpy(mode, bidirectional, input_mode):
    inputs = UNITS if input_mode == "skip" else INPUTS
    layer = nn.RNN(mode, inputs, UNITS, 2, bidirectional, input_mode, "float64")
    compare(layer, TIME, BATCH)


@MODES
def test_values_and_gradients_agree_with_numpy_in_the_default_mode(mode):
    compare(nn.RNN(mode, INPUTS, UNITS, bidirectional=True, dtype="float64"), TIME, BATCH)


@MODES
@pytest.mark.usefixtures("few_optimizations")
def test_values_and_gradients_of_arrays_with_one_element_agree_with_numpy(mode):
    layer = nn.RNN(mode, 1, 1, dtype="float64")
    compare(layer, 1, 1)
    compare(layer, 1, 1, T.TensorType("float64", (True,) * 3))


def test_initial_states_are_zero_by_default():
    layer = nn.RNN("lstm", INPUTS, UNITS, bidirectional=True, dtype="float32")
    x = np.random.RandomState(3).uniform(-1, 1, (TIME, BATCH, INPUTS)).astype("float32")
    results = theano.function([], list(layer(x, backend="scan")))()
    states = np.zeros((2, BATCH, UNITS))
    for value, expected in zip(
        results, compute_network(layer, layer.weights.get_value(), x, states, states), strict=True
    ):
        assert value.dtype == "float32"
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6)


def test_an_lstm_step_has_one_matrix_product():
    layer = nn.RNN("lstm", INPUTS, UNITS, dtype="float64")
    x = T.TensorType("float64", (False,) * 3)()
    nodes = theano.function([x], layer(x)[0]).maker.fgraph.toposort()
    (scan,) = [node.op for node in nodes if hasattr(node.op, "fn")]
    inner_ops = [type(node.op).__name__ for node in scan.fn.maker.fgraph.toposort()]
    assert inner_ops.count("Gemm") == 1
    assert inner_ops.count("Elemwise") == 2
    assert not {"Dot22", "Dot", "Join", "InplaceDimShuffle"} & set(inner_ops)
    assert [type(node.op).__name__ for node in nodes].count("Dot22") == 1


@pytest.mark.parametrize("input_mode", ["linear", "skip"])
@pytest.mark.parametrize("bidirectional", [False, True])
@MODES
def test_join_restores_the_weights_that_split_returned(mode, bidirectional, input_mode):
    layer = nn.RNN(mode, UNITS, UNITS, 2, bidirectional, input_mode, "float32")
    numbers = np.arange(layer.size, dtype="float32")
    layer.weights.set_value(numbers)
    parts = layer.split()
    assert sorted(np.concatenate([part.ravel() for part in parts.values()])) == list(numbers)
    other = nn.RNN(mode, UNITS, UNITS, 2, bidirectional, input_mode, "float64")
    other.join(parts)
    assert other.weights.get_value().dtype == "float64"
    assert list(other.weights.get_value()) == list(numbers)


def test_split_names_each_part_by_layer_direction_and_gate():
    parts = nn.RNN("gru", INPUTS, UNITS, 2).split()
    assert sorted(parts) == sorted(
        f"{number}.forward.{kind}_{gate}"
        for number, kind, gate in itertools.product("01", ("W", "R", "bW", "bR"), "rzh")
    )
    assert parts["0.forward.W_z"].shape == (INPUTS, UNITS)
    assert parts["1.forward.W_z"].shape == parts["1.forward.R_h"].shape == (UNITS, UNITS)
    assert parts["0.forward.bR_r"].shape == (UNITS,)
    assert "0.backward.bW_o" in nn.RNN("lstm", 2, 3, bidirectional=True).split()
    assert "0.forward.W_h" not in nn.RNN("rnn_tanh", 3, 3, input_mode="skip").split()


def test_parts_can_be_saved_to_a_file_and_joined(tmp_path):
    layer, other = (nn.RNN("lstm", 2, 3, seed=seed) for seed in (1, 2))
    np.savez(tmp_path / "parts.npz", **layer.split())
    with np.load(tmp_path / "parts.npz") as parts:
        other.join(parts)
    assert list(layer.weights.get_value()) == list(other.weights.get_value())


def test_initial_weights_depend_on_the_seed_and_are_within_one_over_the_root_of_units():
    first, same, next_one, other = (
        nn.RNN("gru", 20, 16, seed=seed).weights.get_value()
        for seed in (5, np.random.RandomState(5), np.random.RandomState(5), 6)
    )
    assert first.dtype == theano.config.floatX
    assert (first == same).all()
    assert (first == next_one).all()
    assert (first != other).any()
    assert 0.24 < first.max() < 0.25
    assert -0.25 < first.min() < -0.24


def test_a_layer_can_be_pickled():
    layer = nn.RNN("lstm", 2, 3, dtype="float64", seed=4)
    other = pickle.loads(pickle.dumps(layer))
    assert list(other.weights.get_value()) == list(layer.weights.get_value())
    assert other.split().keys() == layer.split().keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "LSTM"}, "unknown mode 'LSTM'; choose one of rnn_relu, rnn_tanh, lstm, gru"),
        ({"input_mode": "none"}, "unknown input_mode 'none'; choose one of linear, skip"),
        ({"dtype": "float16"}, "unknown dtype 'float16'; choose one of float32, float64"),
        ({"units": 0}, "units is 0, not a positive integer"),
        ({"layers": 1.5}, "layers is 1.5, not a positive integer"),
        ({"input_mode": "skip"}, "input_mode 'skip' needs inputs = units, not 5 and 7"),
    ],
)
def test_the_error_of_a_wrong_argument_names_its_value(arguments, message):
    with pytest.raises(ValueError) as error:
        nn.RNN(**{"mode": "lstm", "inputs": INPUTS, "units": UNITS, **arguments})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"0.forward.R_h": None}, "parts of this layer are missing: 0.forward.R_h"),
        ({"1.forward.R_h": np.zeros(2)}, "parts do not belong to this layer: 1.forward.R_h"),
        (
            {"0.forward.W_h": np.zeros((3, 2))},
            "the part 0.forward.W_h has the shape (3, 2), not (2, 3)",
        ),
        ({"0.forward.bW_h": 1}, "the part 0.forward.bW_h has the shape (), not (3,)"),
    ],
)
def test_join_refuses_wrong_parts_and_keeps_the_weights(change, message):
    layer = nn.RNN("rnn_tanh", 2, 3)
    before = layer.weights.get_value()
    parts = {name: part for name, part in {**layer.split(), **change}.items() if part is not None}
    with pytest.raises(ValueError) as error:
        layer.join(parts)
    assert str(error.value) == message
    assert (layer.weights.get_value() == before).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((T.dmatrix(),), "x has 2 dimensions of float64, not 3 of float32"),
        ((T.dtensor3(),), "x has 3 dimensions of float64, not 3 of float32"),
        ((T.ftensor3(), T.fvector()), "h0 has 1 dimensions of float32, not 3 of float32"),
        (
            (T.ftensor3(), None, T.ftensor3()),
            "c0 is given, but only mode 'lstm' has cells, not mode 'gru'",
        ),
        (
            (T.ftensor3(), None, None, "cudnn"),
            "the backend 'cudnn' cannot be used: no device is in use",
        ),
        ((T.ftensor3(), None, None, "gpu"), "unknown backend 'gpu'; choose one of scan, cudnn"),
    ],
)
def test_the_error_of_a_wrong_variable_names_its_type(arguments, message):
    with pytest.raises(ValueError) as error:
        nn.RNN("gru", INPUTS, UNITS, dtype="float32")(*arguments)
    assert str(error.value) == message


def test_arrays_of_wrong_shapes_are_refused_at_run_time():
    layer = nn.RNN("rnn_tanh", 2, 3, dtype="float64")
    x, h0 = T.dtensor3s(2)
    function = theano.function([x, h0], layer(x, h0)[0])
    assert function(np.zeros((4, 5, 2)), np.zeros((1, 5, 3))).shape == (4, 5, 3)
    with pytest.raises(AssertionError, match="x must have 2 features"):
        function(np.zeros((4, 5, 4)), np.zeros((1, 5, 3)))
    for shape in ((2, 5, 3), (1, 4, 3), (1, 5, 2)):
        with pytest.raises(AssertionError, match=r"h0 must be \(1, batch of x, 3\)"):
            function(np.zeros((4, 5, 2)), np.zeros(shape))
