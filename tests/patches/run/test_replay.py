"""graph/invariant-nodes.patch lets the virtual machine replay the steps of a scan.

It records the work of one step as operations on addresses, and runs these operations in later
steps. theano/scan_module/replay.py describes the inner function, and thunks/replay.h records and
replays.
"""

import numpy as np
import pytest
import theano
from theano import tensor
from theano.configparser import change_flags
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor import thunks_ext
from theano.tensor.nnet import sigmoid, softmax

N_STEPS, N = 9, 6


def scan(step, sequences, initial=None, **arguments):
    """Return the outputs of a scan."""
    return theano.scan(step, sequences, initial, **arguments)[0]


def weight(*shape):
    """Return a shared variable of this shape with random numbers."""
    values = np.random.RandomState(1).uniform(-1, 1, shape)
    return theano.shared(values.astype(theano.config.floatX))


def recurrent(x):
    """Return the states of a recurrent layer."""
    return scan(lambda x, h: tensor.tanh(x + tensor.dot(h, weight(N, N))), x, x[0])


def gates(x):
    """Return the states of cells whose gates are slices of one product, for a batch of three."""

    def step(x, h, c):
        all_gates = tensor.dot(h, weight(N, 4 * N)) + tensor.concatenate([x, x, -x, x])
        forget, write, out = (sigmoid(all_gates[:, i * N : (i + 1) * N]) for i in range(3))
        cell = forget * c + write * tensor.tanh(all_gates[:, 3 * N :])
        return out * tensor.tanh(cell), cell

    batch = tensor.alloc(x[0], 3, N)
    return tensor.concatenate(scan(step, x, [batch, batch * 2]), axis=1)


def memory(x):
    """Return states that a step computes by softmax, sums along both axes, and an outer product."""

    def step(x, matrix):
        key = softmax(tensor.dot(matrix, x).dimshuffle("x", 0))[0]
        norm = tensor.sqrt((matrix**2).sum(axis=1)).max() + matrix.sum(axis=0).dimshuffle("x", 0)
        return matrix * (1 - key.dimshuffle(0, "x")) / (norm + 9) + tensor.outer(key, x)

    return scan(step, x, tensor.ones((4, N)) * x[0])


def wide(x):
    """Return states of so many elements that the kernels compute products of vectors."""

    def step(x, h, matrix):
        new = tensor.tanh(tensor.dot(h, weight(40, 40)) + tensor.dot(matrix, h) + x[0])
        return new, matrix / 2 + tensor.outer(new, h)

    initial = [tensor.alloc(x[0, 0], 40), x[0, 1] * tensor.eye(40, dtype=x.dtype)]
    states, matrices = scan(step, x, initial)
    return states + matrices[:, 3]


def two_taps(x):
    """Return a recursion that reads two earlier results."""
    initial = {"initial": x[:2], "taps": [-2, -1]}
    return scan(lambda x, two, one: x * two + tensor.sin(one), x, [initial])


def future(x):
    """Return states that depend on three neighbouring elements of a sequence."""
    taps = {"input": x, "taps": [-1, 0, 1]}
    return scan(lambda before, now, after, h: before * now + after * h, [taps], x[0])


def backwards(x):
    """Return a recursion over a transposed sequence, from its end."""
    weights = weight(N_STEPS)
    return scan(lambda x, h: x * h - weights, x.T, tensor.ones(N_STEPS), go_backwards=True)


def scalars(x):
    """Return a recursion of scalars, and the squares of its previous states."""
    states = scan(lambda x, h: [x * h + 1, h**2], x[:, 0], [x[0, 0], None])
    return tensor.stack(states)


def moving_index(x):
    """Return states; each step reads and writes rows of the state that depend on the step."""

    def step(i, h):
        return tensor.set_subtensor(h[i % 3], h[(i + 1) % 3] * x[i] + h[i % 3])

    return scan(step, tensor.arange(N_STEPS), x[:3])


def moving_end(x):
    """Return sums of slices whose lengths depend on the step."""
    numbers = tensor.arange(N_STEPS)
    return scan(lambda i, h: h * x[: i + 1].sum() + x[:i].prod(axis=0), numbers, x[0])


def selected(x):
    """Return results that depend on the number of elements that a step selects."""

    def step(x, h):
        part = x[(x > h).nonzero()]
        ones = tensor.ones((part.shape[0] * 2, N), x.dtype)
        return h / tensor.cast(1 + part.shape[0], x.dtype) + ones.sum(axis=0) + part.sum()

    return scan(step, x, x[0])


def rotated(x):
    """Return results that select elements and rows by constant indices."""

    def step(x, h):
        first, second = tensor.as_tensor_variable([1, 0, 1, -1]), tensor.arange(N) - 1
        return x[second] * h[second] + tensor.outer(x, h)[first].sum(axis=0) - h[first].sum()

    return scan(step, x, x[0])


def joined(x):
    """Return joined, split, reshaped and transposed arrays."""

    def step(x, h):
        first, second = tensor.split(tensor.concatenate([x, h]), [N - 2, N + 2], 2)
        return tensor.concatenate([first, second[:2]]).reshape((2, N // 2)).T.flatten()

    return scan(step, x, x[0])


def large(x):
    """Return changed parts of arrays of more than 512 elements."""

    def step(x, h):
        h = tensor.inc_subtensor(h[::2, 5:], x.sum())
        return tensor.set_subtensor(h[1], x.max()) * tensor.eye(60)[0]

    return scan(step, x, tensor.alloc(x[0, 0], 60, 60))[:, :3, :9]


def views(x):
    """Return the outputs of a step that returns an input, a view, and one result twice."""

    def step(x, h):
        new = h * x
        return [new, x, h[::-1], new, new[1:].dimshuffle("x", 0)]

    states = scan(step, x, [x[0], None, None, None, None])
    return sum(state.sum() for state in states) + states[2]


def until(x):
    """Return the results of a scan that a condition ends."""

    def step(x, h):
        new = h + x**2
        return new, theano.scan_module.until(new.sum() > N * N_STEPS / 4)

    return scan(step, x, x[0])


def nested(x):
    """Return results of a scan in a scan."""

    def step(x, h):
        return scan(lambda x, h: x * h + 1, tensor.stack([x, h, x * h]), h)[-1]

    return scan(step, x, x[0])


def noise(x):
    """Return sums with random numbers. The state of the generator is a shared variable."""
    stream = MRG_RandomStreams(7)
    values, updates = theano.scan(lambda x, h: h / 2 + x * stream.uniform((N,)), x, x[0])
    ((state, new_state),) = updates.items()
    state.default_update = new_state
    return values


def integers(x):
    """Return results of integer arithmetic."""
    whole = tensor.cast(x * 100, "int32")
    return scan(lambda x, h: (h * 7 + x) // 3 % 1000, whole, whole[0])


def counted(x):
    """Return results that depend on comparisons and on the position of a maximum."""

    def step(x, h):
        larger = tensor.switch(x > h, x, h)
        return larger + tensor.cast(tensor.argmax(larger) * (x < h).any(), x.dtype)

    return scan(step, x, x[0])


CASES = [
    recurrent,
    gates,
    memory,
    wide,
    two_taps,
    future,
    backwards,
    scalars,
    moving_index,
    moving_end,
    selected,
    rotated,
    joined,
    large,
    views,
    until,
    nested,
    noise,
    integers,
    counted,
]


def compile_case(case, *, replay):
    """Return a function of a case's output, and of its gradient if it has one."""
    x = tensor.matrix()
    with change_flags(**{"scan.replay": replay}):
        output = case(x)
        outputs = [output]
        if output.dtype.startswith("float"):
            outputs.append(tensor.grad((output**2).mean(), x))
        return theano.function([x], outputs)


@pytest.fixture
def counts(monkeypatch):
    """Return a list. Each run of a scan appends its numbers of replayed steps and called thunks."""
    numbers = []

    def forget(replay):
        numbers.append(original(replay))
        return numbers[-1]

    original = thunks_ext.forget
    monkeypatch.setattr(thunks_ext, "forget", forget)
    return numbers


def make_sequence(seed, n_steps=N_STEPS):
    """Return a random array of n_steps rows, as an argument of a compiled case."""
    values = np.random.RandomState(seed).uniform(0.1, 1, (n_steps, N))
    return values.astype(theano.config.floatX)


@pytest.mark.parametrize("floats", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results_with_replay_equal_results_without(case, floats, counts):
    with change_flags(floatX=floats):
        with_replay = compile_case(case, replay=True)
        without_replay = compile_case(case, replay=False)
        for seed in range(3):
            results = with_replay(make_sequence(seed))
            replayed = [steps for steps, _ in counts]
            expected = without_replay(make_sequence(seed))
            for result, value in zip(results, expected, strict=True):
                assert result.dtype == value.dtype
                np.testing.assert_array_equal(result, value)
    assert sum(replayed) > 0, "no step was replayed"


def choose_operations(random, vectors, matrices):
    """Return functions that make a random vector and a random matrix from earlier variables."""

    def choose(variables):
        return variables[random.randint(len(variables))]

    def scalar():
        value = choose(vectors)
        return choose([value.sum(), value.max(), value[random.randint(N)], value.mean()])

    first, second, matrix = choose(vectors), choose(vectors), choose(matrices)
    cut, row = random.randint(1, N), random.randint(3)
    vector = choose(
        [
            lambda: tensor.tanh(first + second),
            lambda: first * scalar(),
            lambda: tensor.switch(first > second, first, -second),
            lambda: tensor.concatenate([first[cut:], second[:cut]]),
            lambda: tensor.set_subtensor(first[:cut], second[:cut] * 2),
            lambda: tensor.inc_subtensor(first[cut:], second[:-cut]),
            lambda: tensor.dot(matrix, second)[[0, 1, 2, 0, 1, 2]],
            lambda: softmax(matrix)[row] + matrix.sum(axis=0),
            lambda: matrix.max(axis=0) - matrix[row],
            first[::-1].reshape((2, N // 2)).T.flatten,
            lambda: tensor.cast(tensor.cast(first * 4, "int16") // 3, first.dtype),
            lambda: tensor.alloc(scalar(), N) + first,
            lambda: first[(tensor.arange(N) + cut) % N],
        ]
    )
    new_matrix = choose(
        [
            lambda: tensor.outer(first[:3], second),
            lambda: matrix * first + scalar(),
            lambda: matrix + first[:3].dimshuffle(0, "x"),
            lambda: tensor.set_subtensor(matrix[row], second),
            lambda: tensor.inc_subtensor(matrix[:, cut:], first[cut:]),
            lambda: tensor.stack([first, second, first * second]),
            lambda: sigmoid(tensor.dot(matrix, tensor.outer(first, second))),
            lambda: tensor.concatenate([matrix[1:], matrix[:1] * 2]),
        ]
    )
    return vector, new_matrix


def random_scan(x, random):
    """Return the states of a scan whose step has random operations on a vector and a matrix."""

    def step(x, vector, matrix):
        vectors, matrices = [x, vector], [matrix]
        for _ in range(random.randint(4, 12)):
            make_vector, make_matrix = choose_operations(random, vectors, matrices)
            if random.randint(3):
                vectors.append(make_vector())
            else:
                matrices.append(make_matrix())
        return tensor.tanh(vectors[-1] + vectors[0]), tensor.tanh(matrices[-1])

    states = scan(step, x, [x[0], tensor.stack([x[1], x[2], x[0]])])
    return states[0] + states[1][:, random.randint(3)]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(60))
def test_random_steps_have_the_results_without_replay(seed, counts):
    def case(x):
        return random_scan(x, np.random.RandomState(seed))

    with_replay = compile_case(case, replay=True)
    without_replay = compile_case(case, replay=False)
    for argument in (make_sequence(seed), make_sequence(seed + 1, N_STEPS + 4)):
        for result, value in zip(with_replay(argument), without_replay(argument), strict=True):
            np.testing.assert_array_equal(result, value)
    assert sum(steps for steps, _ in counts) > 0, "no step was replayed"


@pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 20, 5])
def test_all_steps_after_the_second_are_replayed(n_steps, counts):
    """Each call replays all steps after the second, for any number of steps."""
    x = tensor.matrix()
    function = theano.function([x], recurrent(x))
    function(make_sequence(1))
    function(make_sequence(2, n_steps))
    assert [steps for steps, _ in counts] == [N_STEPS - 2, max(n_steps - 2, 0)]


def test_operations_replace_thunks(counts):
    """A replayed step calls only the thunk of the product."""
    x = tensor.matrix()
    theano.function([x], gates(x))(make_sequence(1))
    assert counts == [(N_STEPS - 2, N_STEPS - 2)]


class Copies(theano.Op):
    """An op that copies its input into a new array in each call."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


def test_updates_of_an_accumulated_gradient_replace_thunks(counts):
    """The gradient of a state overwrites an input, so the virtual machine clears only a view."""
    x = tensor.matrix()
    states = scan(lambda x, h: tensor.tanh(x * h) + h, x, x[0])
    theano.function([x], tensor.grad(states.sum(), x))(make_sequence(1))
    assert counts == [(N_STEPS - 2, 0)] * 2


@pytest.mark.parametrize(
    "indices",
    [
        np.concatenate([np.roll(np.arange(64), shift) for shift in (-1, 0, 1)]),
        np.arange(64)[::-1].copy(),
        np.repeat(np.arange(4), 16),
        np.zeros(64, int),
        np.arange(0),
    ],
    ids=["runs", "reversed", "repeated", "first row", "none"],
)
@pytest.mark.parametrize("width", [0, 1, 3])
def test_rows_that_fixed_indices_select(indices, width, counts):
    """Rows that are adjacent in memory are copied together."""
    matrices = tensor.TensorType(theano.config.floatX, (False,) * 3)()
    selected_rows = scan(lambda matrix: tensor.tanh(matrix)[indices], matrices)
    values = np.random.RandomState(3).uniform(size=(N_STEPS, 64, width)).astype(matrices.dtype)
    result = theano.function([matrices], selected_rows)(values)
    expected = theano.function([matrices], tensor.tanh(matrices))(values)[:, indices]
    np.testing.assert_array_equal(result, expected)
    assert [steps for steps, _ in counts] == [N_STEPS - 2]


def test_a_thunk_that_returns_new_arrays_is_recorded_twice(counts):
    """The first call records a step again, because the thunk returned another array.

    The second call replays all steps after the second.
    """
    x = tensor.matrix()
    function = theano.function([x], scan(lambda x, h: tensor.exp(Copies()(x) - 2) * h, x, x[0]))
    results = [function(make_sequence(1)).tolist() for _ in range(2)]
    assert counts == [(N_STEPS - 4, 2 * (N_STEPS - 4) + 1), (N_STEPS - 2, 2 * (N_STEPS - 2))]
    assert results[0] == results[1]


def test_returned_results_stay_unchanged():
    """A call does not change the results of an earlier call."""
    x = tensor.matrix()
    for case in CASES:
        function = theano.function([x], case(x))
        result = function(make_sequence(1))
        copy = result.copy()
        function(make_sequence(2))
        np.testing.assert_array_equal(result, copy)


def test_an_error_of_a_thunk_in_a_replayed_step_names_the_node():
    """The next call computes the correct results."""
    x, indices = tensor.matrix(), tensor.lvector()
    function = theano.function(
        [x, indices], scan(lambda i, h: tensor.tanh(h * x[i]), indices, x[0])
    )
    good = np.arange(N_STEPS)
    expected = function(make_sequence(1), good)
    with pytest.raises(IndexError, match="Subtensor"):
        function(make_sequence(1), good + 2)
    np.testing.assert_array_equal(function(make_sequence(1), good), expected)


def test_an_error_of_a_replayed_operation_names_the_node():
    x = tensor.lvector()
    function = theano.function([x], scan(lambda x, h: h // x, x, tensor.constant(2**62)))
    with pytest.raises(ZeroDivisionError, match="int_div"):
        function(np.array([1, 2, 3, 0, 2]))
    assert function(np.array([1, 2, 3, 4])).tolist()[-1] == 2**62 // 24
