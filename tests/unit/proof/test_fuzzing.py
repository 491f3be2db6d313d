"""The differential fuzzer: its programs, how they are made smaller, and when two results differ."""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError, EnvironmentFailed, UsageError
from builder.environment import envs
from builder.proof import fuzzing
from fuzz import comparing, generating, judging, known, program, shrinking
from fuzz.comparing import Difference
from fuzz.grammar import types
from fuzz.judging import Workers
from fuzz.program import Input, Program, Value

NAN, INF = math.nan, math.inf


def a_program(**changes: Any) -> Program:
    """Two inputs, three statements, of which the second one is of interest."""
    vector = Value("float64", (2,), (1.0, -2.5))
    return replace(
        Program(
            "elementwise",
            (Input("x0", "float64", (False,)), Input("x1", "float64", (False,))),
            (),
            (("v0", "x0 + x1"), ("v1", "T.exp(v0 * 2)"), ("v2", "T.maximum(v1, x1 - 3)")),
            ("v2", "v0"),
            (),
            (),
            ((vector, vector), (vector, replace(vector, layout="unaligned"))),
            situations=("again", "copy"),
        ),
        **changes,
    )


@pytest.mark.parametrize("category", generating.CATEGORIES)
def test_a_program_depends_on_seed_category_and_number_alone(category: str) -> None:
    programs = [generating.generate(5, category, number) for number in range(40)]
    # As text, for nan is not equal to itself.
    assert str(generating.generate(5, category, 39)) == str(programs[39])
    assert str(generating.generate(6, category, 39)) != str(programs[39])
    assert len(set(map(str, programs))) > 30


@pytest.mark.parametrize("category", generating.CATEGORIES)
def test_a_program_reads_only_what_is_defined(category: str) -> None:
    for number in range(60):
        made = generating.generate(2, category, number)
        ast.parse(made.graph())
        ast.parse(made.function(made.mode))
        known_names = {*program.IMPORTS, *dir(builtins)}
        known_names |= {each.name for each in made.inputs} | {name for name, _ in made.shared}
        for target, text in made.statements:
            bound = {
                argument.arg
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Lambda)
                for argument in node.args.args
            }
            bound |= {
                node.id
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            assert program.read(text) <= known_names | bound
            known_names |= set(program.targets(target))
        assert made.outputs
        assert set(made.outputs) <= known_names
        assert all(len(values) == len(made.inputs) for values in made.calls)


def test_a_shared_variable_is_given_for_an_input() -> None:
    programs = [generating.generate(2, "elementwise", number) for number in range(100)]
    made = next(each for each in programs if each.givens)
    ((given, shared),) = made.givens
    assert f"givens=[({given}, {shared})]" in made.function("fast_run")
    assert given not in [each.name for each in made.inputs]
    assert f"{shared} = theano.shared(" in made.graph()


def test_values_are_of_their_type() -> None:
    for category in ("elementwise", "subtensors"):
        for number in range(100):
            for values in generating.generate(1, category, number).calls:
                for value in values:
                    assert len(value.data) == math.prod(value.shape)
                    if value.dtype in types.INTEGERS:
                        bits = types.bits(value.dtype)
                        low = -(2 ** (bits - 1)) if value.dtype in types.SIGNED else 0
                        assert all(low <= each < low + 2**bits for each in value.data)


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        (("int8", "uint8"), "int16"),
        (("int64", "uint64"), "float64"),
        (("float16", "int8"), "float16"),
        (("float32", "int32"), "float64"),
        (("bool", "uint32"), "uint32"),
        (("complex64", "float64"), "complex128"),
        (("uint16", "uint8"), "uint16"),
    ],
)
def test_types_are_converted_as_by_numpy(pair: tuple[str, str], found: str) -> None:
    assert types.upcast(*pair) == found
    assert types.upcast(*pair[::-1]) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value("int8", (), (100,)), "np.array(100, 'int8')"),
        (Value("int8", (2,), (1, 2)), "np.array([1, 2], 'int8')"),
        (Value("float64", (1, 1), (NAN,)), "np.array([np.nan], 'float64').reshape((1, 1))"),
        (Value("float32", (1,), (-INF,), "stepped"), "stepped(np.array([-np.inf], 'float32'))"),
        (Value("int8", (0, 2), ()), "np.array([], 'int8').reshape((0, 2))"),
        (Value("complex64", (1,), ((1.0, -0.5),)), "np.array([complex(1.0, -0.5)], 'complex64')"),
    ],
)
def test_a_value_is_written(value: Value, text: str) -> None:
    assert value.source() == text


def test_a_program_is_written() -> None:
    made = a_program(updates=(("s0", "v0"),), shared=(("s0", Value("float64", (), (1.0,))),))
    assert made.graph().splitlines() == [
        "import numpy as np",
        "import theano",
        "import theano.tensor as T",
        "x0 = T.TensorType('float64', (False,))('x0')",
        "x1 = T.TensorType('float64', (False,))('x1')",
        "s0 = theano.shared(np.array(1.0, 'float64'), 's0')",
        "v0 = x0 + x1",
        "v1 = T.exp(v0 * 2)",
        "v2 = T.maximum(v1, x1 - 3)",
    ]
    assert made.function("fast_run") == (
        "theano.function([x0, x1], [v2, v0], updates=[(s0, v0)], on_unused_input='ignore')"
    )


def test_a_script_stands_alone() -> None:
    text = program.script(a_program(), "value", ["assert found[0][0] == 1"], "A comment.")
    tree = ast.parse(text)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names == ["unaligned", "compiled", "test_same"]
    assert "assert found[0][0] == 1" in text
    assert "fuzz" not in text
    assert "Any" not in text


def test_a_script_of_what_should_raise_fails_if_it_returns() -> None:
    text = program.script(a_program(), "returned", [], "A comment.")
    names: dict[str, Any] = {}
    imports = "import"
    lines = [line for line in text.splitlines() if not line.startswith(imports)]
    exec("\n".join(lines), names)

    class Array:
        @staticmethod
        def array(*_: Any) -> int:
            return 0

    names["np"] = Array
    names["unaligned"] = int
    names["compiled"] = type("F", (), {"__call__": lambda *_: 1, "copy": lambda s: s})
    with pytest.raises(AssertionError, match="no exception"):
        names["test_same"]()

    def refuse(*_: Any) -> None:
        raise IndexError

    answers = iter([1])
    names["compiled"] = type("F", (), {"__call__": lambda *_: next(answers), "copy": lambda s: s})
    names["test_same"]()


def test_what_nothing_reads_is_left_out() -> None:
    made = program.live(a_program(outputs=("v0",)))
    assert made.statements == (("v0", "x0 + x1"),)
    alone = program.live(a_program(outputs=("v0",), statements=(("v0", "x1 * 2"),)))
    assert [each.name for each in alone.inputs] == ["x1"]
    assert [len(values) for values in alone.calls] == [1, 1]


# -- shrinking -------------------------------------------------------------------------------


def test_a_program_is_shrunk_to_what_matters() -> None:
    def differs(candidate: Program) -> bool:
        return any("T.exp(" in text for _, text in candidate.statements)

    found = shrinking.shrink(a_program(), differs, 1000)
    assert [text for _, text in found.statements] == ["T.exp(x0)"]
    assert [each.name for each in found.inputs] == ["x0"]
    assert found.situations == ()
    assert [value.shape for values in found.calls for value in values] == [(0,)]


def test_values_and_shapes_are_shrunk_as_far_as_the_difference_stays() -> None:
    def differs(candidate: Program) -> bool:
        return any(-2.5 in value.data for values in candidate.calls for value in values[:1])

    found = shrinking.shrink(a_program(), differs, 1000)
    assert len(found.calls) == 1
    assert -2.5 in found.calls[0][0].data
    assert sum(each != 0 for value in found.calls[0] for each in value.data) == 1


def test_the_situation_that_matters_stays() -> None:
    found = shrinking.shrink(a_program(), lambda each: "copy" in each.situations, 1000)
    assert found.situations == ("copy",)


def test_shrinking_ends_with_what_it_has() -> None:
    asked = []

    def differs(candidate: Program) -> bool:
        asked.append(candidate)
        return len(candidate.calls) == 1

    found = shrinking.shrink(a_program(), differs, 3)
    assert len(asked) == 3
    assert len(found.calls) == 1


def test_a_body_of_a_scan_is_shrunk() -> None:
    text = "theano.scan(lambda a, p: [a * p + 1, a - p], sequences=x0, outputs_info=[x1, None])[0]"
    start = a_program(statements=(("v0", text),), outputs=("v0",))
    found = shrinking.shrink(
        start, lambda each: any("scan" in t and "p + 1" in t for _, t in each.statements), 1000
    )
    (statement,) = found.statements
    assert "a - p" not in statement[1]


def test_cutting_keeps_the_elements_that_stay() -> None:
    value = Value("int64", (2, 3), (0, 1, 2, 3, 4, 5))
    assert shrinking.cut(value, 3, 2) == Value("int64", (2, 2), (0, 1, 3, 4))
    assert shrinking.cut(value, 2, 1, 0) == Value("int64", (1, 3), (0, 1, 2))


# -- comparing -------------------------------------------------------------------------------


def ran(*outputs: list[Any], **more: Any) -> dict[str, Any]:
    """A worker's answer of one call."""
    call = {"outputs": list(outputs), **more}
    return {"runs": {"plain": {"calls": [call], "shared": []}}, "logged": []}


def difference(old: list[Any], new: list[Any], tolerance: float = 1e-8) -> str | None:
    """The kind of a difference of two values."""
    found = comparing.compare(ran(old), ran(new), tolerance)
    return found.kind if found else None


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (["float64", [], [1.0]], ["float64", [], [1.0 + 1e-12]], None),
        (["float64", [], [1.0]], ["float64", [], [1.0 + 1e-6]], "value"),
        (["float64", [], [NAN]], ["float64", [], [NAN]], None),
        (["float64", [], [NAN]], ["float64", [], [0.0]], "value"),
        (["float64", [], [INF]], ["float64", [], [-INF]], "value"),
        (["float64", [], [INF]], ["float64", [], [1e300]], "value"),
        (["float64", [], [0.0]], ["float64", [], [-0.0]], None),
        (["float64", [2], [1e9, 0.0]], ["float64", [2], [1e9, 1e-3]], None),
        (["int64", [], [2**53]], ["int64", [], [2**53 + 1]], "value"),
        (["bool", [], [True]], ["bool", [], [False]], "value"),
        (["int64", [], [1]], ["int32", [], [1]], "type"),
        (["float64", [0], []], ["float64", [0, 1], []], "shape"),
        (["complex64", [], [[1.0, NAN]]], ["complex64", [], [[1.0, 2.0]]], "value"),
    ],
)
def test_when_values_differ(old: list[Any], new: list[Any], kind: str | None) -> None:
    assert difference(old, new) == kind


def test_without_a_tolerance_floats_are_equal() -> None:
    pair = ["float64", [], [1.0]], ["float64", [], [1.0 + 1e-15]]
    assert difference(*pair, tolerance=0.0) == "value"
    assert difference(*pair, tolerance=1e-8) is None


def kind(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    found = comparing.compare(old, new, 1e-8)
    return f"{found.kind} {found.situation}" if found else None


def test_when_runs_differ() -> None:
    one = ran(["int64", [], [1]])
    failed = {"runs": {"plain": {"calls": [{"error": "ValueError: no"}], "shared": []}}}
    failed["logged"] = []
    assert kind(one, {"died": "SIGSEGV"}) == "died plain"
    assert kind(one, {"died": "hangs"}) == "hangs plain"
    assert kind({"died": "SIGSEGV"}, one) is None
    assert kind(one, failed) == "raised plain"
    assert kind(failed, one) == "returned plain"
    assert kind(failed, failed) is None
    refused = {"refused": "TypeError: no", "logged": []}
    assert kind(one, refused) == "refused plain"
    assert kind(refused, one) == "compiled plain"
    assert kind(refused, refused) is None
    assert kind(one, {**one, "logged": ["Optimization failure"]}) == "logged plain"
    assert kind(one, ran(["int64", [], [1]], changed=[0])) == "changed plain"
    assert kind(one, ran(["int64", [], [1]], overwritten=[])) == "overwritten plain"


def test_every_situation_is_held_against_the_plain_run() -> None:
    one, two = ran(["int64", [], [1]]), ran(["int64", [], [2]])
    both = {"runs": {**one["runs"], "copy": two["runs"]["plain"]}, "logged": []}
    assert kind(one, both) == "value copy"
    raised = {"runs": {**one["runs"], "copy": {"raised": "KeyError"}}, "logged": []}
    assert kind(one, raised) == "raised copy"


def test_what_follows_a_failed_update_is_not_compared() -> None:
    one, two = ran(), ran()
    one["runs"]["plain"]["shared"] = [["int64", [], [1]]]
    two["runs"]["plain"]["shared"] = [["int64", [], [2]]]
    assert kind(one, two) == "shared plain"
    for number, each in enumerate((one, two)):
        run = each["runs"]["plain"]
        run["calls"] = [{"error": "ValueError"}, {"outputs": [["int64", [], [number]]]}]
    assert kind(one, two) is None


def test_only_what_numpy_has_a_value_of_is_held_against_it() -> None:
    one, two, none = ["int64", [], [1]], ["int64", [], [2]], cast("list[Any]", None)
    failed = {"runs": {"plain": {"calls": [{"error": "ValueError: no"}]}}}
    refused = {"refused": "TypeError: no", "logged": []}
    assert comparing.compare_values(ran(one), ran(one), 0) is None
    assert comparing.compare_values(ran(none), ran(two), 0) is None
    assert comparing.compare_values(ran(one), failed, 0) is None
    assert comparing.compare_values(ran(one), refused, 0) is None
    found = comparing.compare_values(ran(none, one), ran(two, two), 0)
    assert found is not None
    assert (found.kind, found.call, found.output) == ("value", 0, 1)


def test_what_numpy_is_held_against_may_be_less_exact() -> None:
    one, two = (["float64", [], [value]] for value in (1.0, 1.1))
    assert comparing.compare_values(ran(one), ran(two), 0) is not None
    assert comparing.compare_values({**ran(one), "tolerance": 0.2}, ran(two), 0) is None


# -- judging ---------------------------------------------------------------------------------


def workers(stack: Any, oracle: Any, stock: Any = None) -> Workers:
    return Workers(stack, {"again": stack}, oracle, stock, stock)


def wrong_exp(question: dict[str, Any]) -> dict[str, Any]:
    """A Theano whose exponential is wrong."""
    optimized = "unoptimized" not in question["function"] and "None)" not in question["function"]
    return ran(["int64", [], [1 if "T.exp" in question["graph"] and optimized else 0]])


def right(_: dict[str, Any]) -> dict[str, Any]:
    return ran(["int64", [], [0]])


def test_what_differs_is_found_shrunk_and_told() -> None:
    found = judging.investigate(a_program(), workers(wrong_exp, right), (), 500, 60)
    assert found is not None
    assert found.cause == "unknown"
    assert [text for _, text in found.program.statements] == ["T.exp(x0)"]
    assert judging.investigate(a_program(), workers(right, right), (), 500, 60) is None


def test_numpy_judges_last() -> None:
    asked = []

    def numpy(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question)
        return ran(["int64", [], [0]])

    def wrong(_: dict[str, Any]) -> dict[str, Any]:
        return ran(["int64", [], [1]])

    agreed = replace(workers(wrong, wrong, wrong), numpy=numpy)
    found = judging.investigate(a_program(), agreed, (), 50, 60)
    assert found is not None
    assert (found.judge, found.cause) == (judging.NUMPY, "stock's")
    assert asked[0]["statements"][0] == ("v0", "x0 + x1")
    asked.clear()
    differing = replace(workers(wrong_exp, right), numpy=numpy)
    found = judging.investigate(a_program(), differing, (), 50, 60)
    assert found is not None
    assert found.judge == judging.UNOPTIMIZED
    assert not asked


def test_of_givens_numpy_is_told_nothing() -> None:
    assert a_program().evaluation()["outputs"] == ["v2", "v0"]
    assert a_program(givens=(("x0", "v0"),)).evaluation()["statements"] == []


def test_stock_theano_gets_rows_of_their_own() -> None:
    value = Value("float64", (2,), (1.0, 2.0), "repeated")
    question = a_program(calls=((value, value),)).question("fast_run", ())
    assert question["calls"][0][0].startswith("repeated(np.array(")
    assert judging.in_own_memory(question)["calls"][0][0].startswith("spread(np.array(")


def test_whose_a_difference_is_stock_theano_tells() -> None:
    ours = judging.investigate(a_program(), workers(wrong_exp, right, right), (), 500, 60)
    both = judging.investigate(a_program(), workers(wrong_exp, right, wrong_exp), (), 500, 60)
    slow = Workers(wrong_exp, {}, right, lambda _: {"died": "hangs"}, None)
    unknown = judging.investigate(a_program(), slow, (), 500, 60)
    assert ours is not None
    assert both is not None
    assert unknown is not None
    causes = ours.cause, both.cause, unknown.cause
    assert causes == ("the stack's", "stock's", "unknown")


def test_a_row_lists_only_what_it_says() -> None:
    row = known.Known(("value",), r"T\.exp", "", True, ("plain",), True, "because")
    told = Difference("value", "plain")
    assert row.matches(a_program(), told, True)
    assert row.matches(a_program(), told, None)
    assert not row.matches(a_program(), told, False)
    assert not row.matches(a_program(), replace(told, kind="shape"), True)
    assert not row.matches(a_program(), replace(told, situation="copy"), True)
    assert not row.matches(a_program(statements=()), told, True)
    assert not replace(row, told="-1").matches(a_program(), told, True)
    assert replace(row, told="-1").matches(a_program(), replace(told, found="-1"), True)
    rare = replace(row, finite=False)
    assert not rare.matches(a_program(), told, True)
    assert rare.matches(a_program(), replace(told, finite=False), True)


def test_the_list_can_be_read(tmp_path: Path) -> None:
    assert all(row.reason and row.kinds for row in fuzzing.load(fuzzing.KNOWN))
    file = tmp_path / "known.toml"
    file.write_text("[[known]]\nkinds = ['value']\n")
    with pytest.raises(ConfigurationError, match="expected the keys"):
        fuzzing.load(file)
    file.write_text(
        "[[known]]\nkinds = []\npattern = '('\ntold = ''\nfinite = true\nsituations = []\n"
        "stock = true\nreason = ''\n"
    )
    with pytest.raises(ConfigurationError, match="unterminated"):
        fuzzing.load(file)


# -- the task --------------------------------------------------------------------------------


def test_an_unknown_category_lists_the_known() -> None:
    with pytest.raises(UsageError, match="elementwise"):
        fuzzing.fuzz("openblas", fuzzing.Limits(1, 1), 1, "none")


def test_a_stack_must_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envs, "installed", lambda _: None)
    with pytest.raises(EnvironmentFailed, match="is not built"):
        fuzzing.fuzz("openblas", fuzzing.Limits(1, 1), 1, "")


def test_programs_are_the_same_however_many_run() -> None:
    few = list(fuzzing._programs(fuzzing.Limits(0, 5), 3, list(generating.CATEGORIES), 0.0))
    many = list(fuzzing._programs(fuzzing.Limits(0, 40), 3, list(generating.CATEGORIES), 0.0))
    assert str(many[:5]) == str(few)
    assert {each.category for each in many} == set(generating.CATEGORIES)


def test_the_worker_runs_on_the_python_of_stock_theano() -> None:
    for file in (paths.ROOT / "fuzz").rglob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
