"""Check the values and the types that the twins of ``fuzz/twins.py`` compute for statements.

The twins are NumPy definitions of Theano's operations. A result is [dtype, shape, value].
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.common.processes import Conversation, clean_environ


@pytest.fixture(scope="module")
def twins(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """Start fuzz/twins.py with the environment's Python."""
    home = tmp_path_factory.mktemp("home")
    environ = {**clean_environ(), "HOME": str(home), "PYTHONPATH": str(paths.ROOT)}
    with Conversation(
        [prefix / "bin" / "python", "-m", "fuzz.twins"], env=environ, cwd=home
    ) as conversation:
        yield conversation


def ask(twins: Conversation, *statements: str, **question: Any) -> list[list[Any]]:
    """Return the value of ``v`` after the statements, for each call.

    In the default call, x is [100, 2] in int8 and y is [1.5, -2.5]. ``question`` overrides parts of
    the question.
    """
    whole_question = {
        "inputs": ["x", "y"],
        "shared": [],
        "statements": [statement.split(" = ", 1) for statement in statements],
        "outputs": ["v"],
        "updates": [],
        "calls": [["np.array([100, 2], 'int8')", "np.array([1.5, -2.5])"]],
        "aliases": [],
        **question,
    }
    calls = json.loads(twins.ask(json.dumps(whole_question)))["runs"]["plain"]["calls"]
    return [call["outputs"][0] for call in calls]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x * x", ["int8", [2], [16, 4]]),
        ("x + 1000", ["int16", [2], [1100, 1002]]),
        ("x * 0.5", ["float32", [2], [50.0, 1.0]]),
        ("x / x", ["float64", [2], [1.0, 1.0]]),
        ("T.round(y)", ["float64", [2], [2.0, -2.0]]),
        ("T.round(y, mode='half_away_from_zero')", ["float64", [2], [2.0, -3.0]]),
        ("T.sum(x, axis=0)", ["int64", [], [102]]),
        ("T.max(y, axis=[0], keepdims=True)", ["float64", [1], [1.5]]),
        ("x[::-1][:, None]", ["int8", [2, 1], [2, 100]]),
        ("T.inc_subtensor(y[[0, 0]], 1)", ["float64", [2], [3.5, -2.5]]),
        ("T.set_subtensor(y[x.shape[0] - 1], 0)", ["float64", [2], [1.5, 0.0]]),
        ("T.dot(x, x)", ["int8", [], [20]]),
        ("T.topk(y, -1)", ["float64", [1], [-2.5]]),
        ("T.nnet.softmax(0 * y)", ["float64", [1, 2], [0.5, 0.5]]),
        ("y.dimshuffle('x', 0)", ["float64", [1, 2], [1.5, -2.5]]),
        (
            "T.nnet.conv2d(y.reshape((1, 1, 1, 2)), y.reshape((1, 1, 1, 2)), border_mode='full')",
            ["float64", [1, 1, 1, 3], [2.25, -7.5, 6.25]],
        ),
        (
            "pool_2d(y.reshape((1, 1, 1, 2)), (1, 2), ignore_border=True, mode='max')",
            ["float64", [1, 1, 1, 1], [1.5]],
        ),
    ],
)
def test_an_expression_has_theanos_type_and_value(
    twins: Conversation, text: str, expected: list[Any]
) -> None:
    assert ask(twins, f"v = {text}") == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "lambda a, p: a + p, sequences=y, outputs_info=T.constant(1.0, dtype='float64')",
            [2.5, 0.0],
        ),
        ("lambda a: a, sequences=y, go_backwards=True, n_steps=1, outputs_info=[None]", [-2.5]),
        (
            "lambda p, q: p * q, outputs_info=dict(initial=y, taps=[-2, -1]), n_steps=2",
            [-3.75, 9.375],
        ),
        ("lambda a, b: a - b, dict(input=y, taps=[-1, 0]), [None]", [4.0]),
        ("lambda a: (a, until(T.gt(a, 0))), y, [None]", [1.5]),
        ("lambda p: [p, p * 2], None, [None, y[0]], non_sequences=[y[0]], n_steps=1", None),
    ],
)
def test_a_scan_is_computed_by_a_loop(
    twins: Conversation, text: str, expected: list[float] | None
) -> None:
    """A scan with two results has no single value: ``expected`` is None."""
    result = ask(twins, f"v = theano.scan({text})[0]")
    assert result == [expected and ["float64", [len(expected)], expected]]


def test_scans_update_shared_variables(twins: Conversation) -> None:
    scan = "theano.scan(lambda a: ([a + s], [(s, s + 2)]), sequences=x, outputs_info=[None])"
    question = {"shared": [("s", "np.array(1, 'int8')")], "updates": [("", "u")]}
    calls = [["np.array([1, 1], 'int8')", "np.array([1.0])"]] * 2
    result = ask(twins, f"w = {scan}", "v = w[0]", "u = w[1]", **question, calls=calls)
    assert result == [["int8", [2], [2, 4]], ["int8", [2], [6, 8]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T.grad(T.sum(w), y)", [6.75, 18.75]),
        ("T.Rop(w, y, y)", [10.125, -46.875]),
        ("T.Lop(w, y, 2 * y)", [20.25, -93.75]),
        ("theano.gradient.jacobian(w, y)", [6.75, 0, 0, 18.75]),
        ("theano.gradient.hessian(T.sum(w), y)", [9, 0, 0, -15]),
        ("T.grad(T.sum(d ** 2), y)", [2 * 6.75 * 9, -2 * 18.75 * 15]),
        ("T.grad(T.sum(abs(y - 1.5)), y)", None),
        ("T.grad(T.sum(w), x)", None),
        ("d + 1", None),
    ],
)
def test_a_derivative_is_computed_from_differences(
    twins: Conversation, text: str, expected: list[float] | None
) -> None:
    """``expected`` is None if the twins give no value. y is [1.5, -2.5], and w is y ** 3."""
    result = ask(twins, "w = y ** 3", "d = T.grad(T.sum(w), y)", f"v = {text}")[0]
    if expected is None or result is None:
        assert result is expected
    else:
        assert result[2] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("text", ["sparse.csr_from_dense(x)", "x[7]", "x // 0"])
def test_undefined_operations_have_no_value(twins: Conversation, text: str) -> None:
    """Operations without a twin, invalid indices and failed divisions have no value."""
    assert ask(twins, f"w = {text}", "v = w + 1") == [None]


def test_shared_variables_are_updated(twins: Conversation) -> None:
    call = ["np.array([1], 'int8')", "np.array([1.0])"]
    shared = [("s", "np.array([1], 'int8')")]
    question = {"shared": shared, "updates": [("s", "v")], "calls": [call, call]}
    assert ask(twins, "v = s + x", **question) == [["int8", [1], [2]], ["int8", [1], [3]]]
