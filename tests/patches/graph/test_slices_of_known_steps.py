"""graph/known-order.patch merges a slice of a slice into one slice with few operations.

Without the patch, the bounds are computed by formulas that hold for any step. For each merge, the
formulas need as many as 52 operations.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor.opt import merge_two_slices
from theano.tensor.subtensor import get_canonical_form_slice

STEPS = (None, 1, -1, 2, -3)
PYTHON = theano.Mode("py", None)


def choose_ends(is_set, start, stop):
    """Return [start, stop] with None for each end that is not set, and the list of set ends."""
    chosen = [end if use else None for use, end in zip(is_set, (start, stop), strict=True)]
    return chosen, [end for end in chosen if end is not None]


def compile_in_python(inputs, outputs):
    outputs = [tt.as_tensor_variable(output) for output in outputs]
    return theano.function(inputs, outputs, mode=PYTHON, on_unused_input="ignore")


def count_operations(outputs):
    variables = [output for output in outputs if isinstance(output, theano.Variable)]
    return len(theano.gof.graph.io_toposort([], variables))


@pytest.mark.parametrize("is_set", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("step", STEPS)
def test_canonical_slices_select_numpys_elements(step, is_set):
    """A canonical slice has 0 <= start <= stop <= length, and selects NumPy's elements."""
    length = tt.lscalar()
    chosen, variables = choose_ends(is_set, *tt.lscalars("start", "stop"))
    canonical, reverse = get_canonical_form_slice(slice(*chosen, step), length)
    assert reverse == (-1 if step is not None and step < 0 else 1)
    function = compile_in_python([length, *variables], [canonical.start, canonical.stop])
    for size in range(5):
        for values in itertools.product(range(-7, 8), repeat=len(variables)):
            start, stop = function(size, *values)
            assert 0 <= start <= stop <= size
            remaining = iter(values)
            original = slice(*(next(remaining) if use else None for use in is_set), step)
            part = np.arange(size)[start : stop : abs(step or 1)][::reverse]
            assert np.array_equal(part, np.arange(size)[original])


@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("second", STEPS)
def test_merged_slices_select_numpys_elements(first, second):
    random = np.random.RandomState(0)
    before, after = tt.lscalars("before", "after")
    for is_set in itertools.product([False, True], repeat=4):
        (one, of_one), (two, of_two) = (
            choose_ends(is_set[:2], *tt.lscalars("a", "b")),
            choose_ends(is_set[2:], *tt.lscalars("c", "d")),
        )
        merged = merge_two_slices(slice(*one, first), before, slice(*two, second), after)
        variables = [before, after, *of_one, *of_two]
        function = compile_in_python(variables, [merged.start, merged.stop, merged.step])
        for _ in range(40):
            values = [random.randint(-6, 7) if use else None for use in is_set]
            array = np.arange(random.randint(5))
            once = array[slice(*values[:2], first)]
            result = function(len(array), len(once), *[v for v in values if v is not None])
            expected = once[slice(*values[2:], second)]
            assert np.array_equal(array[slice(*map(int, result))], expected)


@pytest.mark.parametrize(
    ("first", "second", "most"),
    [
        (slice(None, None, -1), slice(None, None, -1), 4),
        (slice(None, None, -1), slice("a", "b", 1), 32),
        (slice(None, "a", None), slice("b", None, None), 16),
        (slice("a", "b", 1), slice("c", "d", -1), 56),
    ],
)
def test_a_merge_adds_few_operations(first, second, most):
    before, after = tt.lscalars("before", "after")

    def symbolic(number):
        return slice(
            *(
                tt.lscalar(end) if isinstance(end, str) else end
                for end in (number.start, number.stop)
            ),
            number.step,
        )

    merged = merge_two_slices(symbolic(first), before, symbolic(second), after)
    assert count_operations([merged.start, merged.stop, merged.step]) <= most


def test_slices_are_merged_in_a_graph():
    """For a constant and an unknown length, merged slices select NumPy's elements."""
    x = tt.dvector()
    fixed = tt.alloc(x[0], 6)
    i, j = tt.lscalars("i", "j")
    for array in (x, fixed):
        outputs = [array[::-1][i:j], array[i:][::-1][:j], array[:j][::-1][i:][::-1]]
        function = theano.function([x, i, j], outputs)
        for a, b in itertools.product((-9, -2, 0, 1, 3, 9), repeat=2):
            value = np.arange(6.0) if array is x else np.zeros(6)
            expected = [value[::-1][a:b], value[a:][::-1][:b], value[:b][::-1][a:][::-1]]
            for result, wanted in zip(function(np.arange(6.0), a, b), expected, strict=True):
                assert np.array_equal(result, wanted)


@pytest.mark.parametrize("step", [None, 1, -1, -2, "unknown"])
def test_a_stop_of_sys_maxsize_is_not_a_missing_stop(step):
    """With a negative step, a stop of sys.maxsize selects nothing."""
    ends = (None, 0, -1, 2**63 - 1, -(2**63))
    x, by = tt.lvector(), tt.lscalar()

    def parts(array, i):
        return [array[i], array[::-1][i], array[i][1:]]

    pairs = list(itertools.product(ends, ends))
    own = [slice(*pair, by if step == "unknown" else step) for pair in pairs]
    outputs = [output for i in own for part in parts(x, i) for output in (2 * part, part.shape[0])]
    mode = theano.Mode("py", "fast_run").excluding("fusion")
    function = theano.function([x, by], outputs, mode=mode, on_unused_input="ignore")
    for sign, length in itertools.product((1, -1, 3) if step == "unknown" else (step,), (0, 1, 5)):
        value = np.arange(length)
        expected = [part for pair in pairs for part in parts(value, slice(*pair, sign))]
        results = function(value, sign or 1)
        for doubled, size, part in zip(results[::2], results[1::2], expected, strict=True):
            assert np.array_equal(doubled, 2 * part)
            assert size == len(part)
