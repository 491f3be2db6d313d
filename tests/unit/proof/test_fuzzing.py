"""Test the differential fuzzer: generated programs, shrinking, comparison, and oracles."""

from __future__ import annotations

import ast
import builtins
import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError, EnvironmentFailed, UsageError
from builder.environment import envs
from builder.proof import fuzzing
from fuzz import differences, generator, known_differences, oracles, program, shrinker
from fuzz.differences import Difference
from fuzz.grammar import types
from fuzz.oracles import Workers
from fuzz.program import Input, Program, Value

NAN, INF = math.nan, math.inf


def make_program(**changes: Any) -> Program:
    """Make a program of two inputs, three statements and two calls, with changed attributes."""
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


@pytest.mark.parametrize("category", generator.CATEGORIES)
def test_a_program_depends_only_on_seed_category_and_number(category: str) -> None:
    programs = [generator.generate(5, category, number) for number in range(40)]
    # Compare strings, because nan is not equal to itself.
    assert str(generator.generate(5, category, 39)) == str(programs[39])
    assert str(generator.generate(6, category, 39)) != str(programs[39])
    assert len(set(map(str, programs))) > 30


@pytest.mark.parametrize("category", generator.CATEGORIES)
def test_a_program_reads_only_names_that_it_defines_before(category: str) -> None:
    for number in range(60):
        generated = generator.generate(2, category, number)
        ast.parse(generated.format_graph())
        ast.parse(generated.format_function(generated.mode))
        known_names = {*program.IMPORTS, *dir(builtins)}
        known_names |= {variable.name for variable in generated.inputs} | {
            name for name, _ in generated.shared
        }
        for target, text in generated.statements:
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
            assert program.find_names(text) <= known_names | bound
            known_names |= set(program.find_targets(target))
        assert generated.outputs
        assert set(generated.outputs) <= known_names
        assert all(len(values) == len(generated.inputs) for values in generated.calls)


def test_givens_replace_an_input_by_a_shared_variable() -> None:
    programs = [generator.generate(2, "elementwise", number) for number in range(100)]
    generated = next(program for program in programs if program.givens)
    ((replaced, shared),) = generated.givens
    assert f"givens=[({replaced}, {shared})]" in generated.format_function("fast_run")
    assert replaced not in [variable.name for variable in generated.inputs]
    assert f"{shared} = theano.shared(" in generated.format_graph()


def test_integer_inputs_are_in_the_range_of_their_type() -> None:
    for category in ("elementwise", "subtensors"):
        for number in range(100):
            for values in generator.generate(1, category, number).calls:
                for value in values:
                    assert len(value.data) == math.prod(value.shape)
                    if value.dtype in types.INTEGERS:
                        bits = types.count_bits(value.dtype)
                        low = -(2 ** (bits - 1)) if value.dtype in types.SIGNED else 0
                        assert all(low <= element < low + 2**bits for element in value.data)


@pytest.mark.parametrize(
    ("pair", "common"),
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
def test_upcast_agrees_with_numpy(pair: tuple[str, str], common: str) -> None:
    assert types.upcast(*pair) == common
    assert types.upcast(*pair[::-1]) == common


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
def test_a_value_is_formatted_as_source(value: Value, text: str) -> None:
    assert value.format_source() == text


def test_a_program_is_formatted_as_source() -> None:
    example = make_program(updates=(("s0", "v0"),), shared=(("s0", Value("float64", (), (1.0,))),))
    assert example.format_graph().splitlines() == [
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
    assert example.format_function("fast_run") == (
        "theano.function([x0, x1], [v2, v0], updates=[(s0, v0)], on_unused_input='ignore')"
    )


def test_the_script_of_a_program_does_not_import_the_fuzzer() -> None:
    text = program.make_script(make_program(), "value", ["assert found[0][0] == 1"], "A comment.")
    tree = ast.parse(text)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names == ["unaligned", "compiled", "test_same"]
    assert "assert found[0][0] == 1" in text
    assert "fuzz" not in text
    assert "Any" not in text


def test_a_script_that_expects_an_exception_fails_without_one() -> None:
    text = program.make_script(make_program(), "returned", [], "A comment.")
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


def test_unread_statements_and_inputs_are_removed() -> None:
    shortened = program.remove_unused(make_program(outputs=("v0",)))
    assert shortened.statements == (("v0", "x0 + x1"),)
    shortened = program.remove_unused(make_program(outputs=("v0",), statements=(("v0", "x1 * 2"),)))
    assert [variable.name for variable in shortened.inputs] == ["x1"]
    assert [len(values) for values in shortened.calls] == [1, 1]


# -- shrinking -------------------------------------------------------------------------------


def test_a_program_is_shrunk_to_its_relevant_part() -> None:
    def differs(candidate: Program) -> bool:
        return any("T.exp(" in text for _, text in candidate.statements)

    result = shrinker.shrink(make_program(), differs, 1000)
    assert [text for _, text in result.statements] == ["T.exp(x0)"]
    assert [variable.name for variable in result.inputs] == ["x0"]
    assert result.situations == ()
    assert [value.shape for values in result.calls for value in values] == [(0,)]


def test_values_and_shapes_are_shrunk_while_the_difference_remains() -> None:
    def differs(candidate: Program) -> bool:
        return any(-2.5 in value.data for values in candidate.calls for value in values[:1])

    result = shrinker.shrink(make_program(), differs, 1000)
    assert len(result.calls) == 1
    assert -2.5 in result.calls[0][0].data
    assert sum(element != 0 for value in result.calls[0] for element in value.data) == 1


def test_the_relevant_situation_is_kept() -> None:
    result = shrinker.shrink(make_program(), lambda candidate: "copy" in candidate.situations, 1000)
    assert result.situations == ("copy",)


def test_a_single_irrelevant_update_and_a_single_irrelevant_given_are_removed() -> None:
    scalar = Value("float64", (), (1.0,))
    start = make_program(
        updates=(("s0", "v0"),), givens=(("x1", "s1"),), shared=(("s0", scalar), ("s1", scalar))
    )
    result = shrinker.shrink(start, lambda candidate: bool(candidate.statements), 1000)
    assert (result.updates, result.givens, result.shared) == ((), (), ())


def test_shrinking_ends_after_the_maximum_number_of_attempts() -> None:
    candidates = []

    def differs(candidate: Program) -> bool:
        candidates.append(candidate)
        return len(candidate.calls) == 1

    result = shrinker.shrink(make_program(), differs, 3)
    assert len(candidates) == 3
    assert len(result.calls) == 1


def test_the_body_of_a_scan_is_shrunk() -> None:
    text = "theano.scan(lambda a, p: [a * p + 1, a - p], sequences=x0, outputs_info=[x1, None])[0]"
    start = make_program(statements=(("v0", text),), outputs=("v0",))
    result = shrinker.shrink(
        start,
        lambda candidate: any("scan" in t and "p + 1" in t for _, t in candidate.statements),
        1000,
    )
    (statement,) = result.statements
    assert "a - p" not in statement[1]


def test_cutting_keeps_the_remaining_elements() -> None:
    value = Value("int64", (2, 3), (0, 1, 2, 3, 4, 5))
    assert shrinker.cut(value, 3, 2) == Value("int64", (2, 2), (0, 1, 3, 4))
    assert shrinker.cut(value, 2, 1, 0) == Value("int64", (1, 3), (0, 1, 2))


# -- differences -------------------------------------------------------------------------------


def make_answer(*outputs: list[Any], **more: Any) -> dict[str, Any]:
    """Make the answer of a worker process: the outputs of one call in the situation "plain"."""
    call = {"outputs": list(outputs), **more}
    return {"runs": {"plain": {"calls": [call], "shared": []}}, "logged": []}


def find_difference(old: list[Any], new: list[Any], tolerance: float = 1e-8) -> str | None:
    """Return the kind of the difference between two outputs, or None if they agree."""
    difference_ = differences.compare(make_answer(old), make_answer(new), tolerance)
    return difference_.kind if difference_ else None


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
def test_two_values_have_the_expected_kind_of_difference(
    old: list[Any], new: list[Any], kind: str | None
) -> None:
    assert find_difference(old, new) == kind


def test_with_the_tolerance_0_floats_must_be_equal() -> None:
    pair = ["float64", [], [1.0]], ["float64", [], [1.0 + 1e-15]]
    assert find_difference(*pair, tolerance=0.0) == "value"
    assert find_difference(*pair, tolerance=1e-8) is None


def describe_difference(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Return the kind and the situation of the first difference between two answers."""
    difference_ = differences.compare(old, new, 1e-8)
    return f"{difference_.kind} {difference_.situation}" if difference_ else None


def test_two_runs_have_the_expected_kind_of_difference() -> None:
    first = make_answer(["int64", [], [1]])
    failed = {"runs": {"plain": {"calls": [{"error": "ValueError: no"}], "shared": []}}}
    failed["logged"] = []
    assert describe_difference(first, {"died": "SIGSEGV"}) == "died plain"
    assert describe_difference(first, {"died": "hangs"}) == "hangs plain"
    assert describe_difference({"died": "SIGSEGV"}, first) is None
    assert describe_difference(first, failed) == "raised plain"
    assert describe_difference(failed, first) == "returned plain"
    assert describe_difference(failed, failed) is None
    refused = {"refused": "TypeError: no", "logged": []}
    assert describe_difference(first, refused) == "refused plain"
    assert describe_difference(refused, first) == "compiled plain"
    assert describe_difference(refused, refused) is None
    assert (
        describe_difference(first, {**first, "logged": ["Optimization failure"]}) == "logged plain"
    )
    assert (
        describe_difference(first, make_answer(["int64", [], [1]], changed=[0])) == "changed plain"
    )
    assert (
        describe_difference(first, make_answer(["int64", [], [1]], overwritten=[]))
        == "overwritten plain"
    )


def test_every_situation_is_compared_with_the_plain_run() -> None:
    first, second = make_answer(["int64", [], [1]]), make_answer(["int64", [], [2]])
    changed_copy = {"runs": {**first["runs"], "copy": second["runs"]["plain"]}, "logged": []}
    assert describe_difference(first, changed_copy) == "value copy"
    raised = {"runs": {**first["runs"], "copy": {"raised": "KeyError"}}, "logged": []}
    assert describe_difference(first, raised) == "raised copy"


def test_calls_after_a_failed_update_are_not_compared() -> None:
    first, second = make_answer(), make_answer()
    first["runs"]["plain"]["shared"] = [["int64", [], [1]]]
    second["runs"]["plain"]["shared"] = [["int64", [], [2]]]
    assert describe_difference(first, second) == "shared plain"
    for number, answer in enumerate((first, second)):
        run = answer["runs"]["plain"]
        run["calls"] = [{"error": "ValueError"}, {"outputs": [["int64", [], [number]]]}]
    assert describe_difference(first, second) is None


def test_the_answer_of_numpy_is_compared_only_where_both_have_values() -> None:
    first, second, none = ["int64", [], [1]], ["int64", [], [2]], cast("list[Any]", None)
    failed = {"runs": {"plain": {"calls": [{"error": "ValueError: no"}]}}}
    refused = {"refused": "TypeError: no", "logged": []}
    assert differences.compare_values(make_answer(first), make_answer(first), 0) is None
    assert differences.compare_values(make_answer(none), make_answer(second), 0) is None
    assert differences.compare_values(make_answer(first), failed, 0) is None
    assert differences.compare_values(make_answer(first), refused, 0) is None
    result = differences.compare_values(make_answer(none, first), make_answer(second, second), 0)
    assert result is not None
    assert (result.kind, result.call, result.output) == ("value", 0, 1)


def test_the_answer_of_numpy_may_contain_a_larger_tolerance() -> None:
    first, second = (["float64", [], [value]] for value in (1.0, 1.1))
    assert differences.compare_values(make_answer(first), make_answer(second), 0) is not None
    assert (
        differences.compare_values({**make_answer(first), "tolerance": 0.2}, make_answer(second), 0)
        is None
    )


# -- oracles ---------------------------------------------------------------------------------


def make_workers(stack: Any, oracle: Any, stock: Any = None) -> Workers:
    """Make workers from answering functions: the stack, its oracle, and stock Theano."""
    return Workers(stack, {"again": stack}, oracle, stock, stock)


def answer_wrongly_for_exp(question: dict[str, Any]) -> dict[str, Any]:
    """Answer like a Theano whose optimized exp is wrong: 1 instead of 0."""
    optimized = "unoptimized" not in question["function"] and "None)" not in question["function"]
    return make_answer(["int64", [], [1 if "T.exp" in question["graph"] and optimized else 0]])


def answer_correctly(_: dict[str, Any]) -> dict[str, Any]:
    """Answer 0 to every question."""
    return make_answer(["int64", [], [0]])


def test_a_difference_is_shrunk() -> None:
    finding = oracles.investigate(
        make_program(), make_workers(answer_wrongly_for_exp, answer_correctly), (), 500, 60
    )
    assert finding is not None
    assert finding.cause == "unknown"
    assert [text for _, text in finding.program.statements] == ["T.exp(x0)"]
    assert (
        oracles.investigate(
            make_program(), make_workers(answer_correctly, answer_correctly), (), 500, 60
        )
        is None
    )


def test_numpy_is_asked_only_if_the_other_oracles_agree() -> None:
    questions = []

    def answer_as_numpy(question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question)
        return make_answer(["int64", [], [0]])

    def answer_wrongly(_: dict[str, Any]) -> dict[str, Any]:
        return make_answer(["int64", [], [1]])

    agreed = replace(
        make_workers(answer_wrongly, answer_wrongly, answer_wrongly), numpy=answer_as_numpy
    )
    finding = oracles.investigate(make_program(), agreed, (), 50, 60)
    assert finding is not None
    assert (finding.oracle, finding.cause) == (oracles.NUMPY, "stock's")
    assert questions[0]["statements"][0] == ("v0", "x0 + x1")
    questions.clear()
    differing = replace(
        make_workers(answer_wrongly_for_exp, answer_correctly), numpy=answer_as_numpy
    )
    finding = oracles.investigate(make_program(), differing, (), 50, 60)
    assert finding is not None
    assert finding.oracle == oracles.UNOPTIMIZED
    assert not questions


def test_a_program_with_givens_sends_no_statements_to_numpy() -> None:
    assert make_program().make_evaluation()["outputs"] == ["v2", "v0"]
    assert make_program(givens=(("x0", "v0"),)).make_evaluation()["statements"] == []


def test_stock_theano_gets_copies_of_repeated_rows() -> None:
    value = Value("float64", (2,), (1.0, 2.0), "repeated")
    question = make_program(calls=((value, value),)).make_question("fast_run", ())
    assert question["calls"][0][0].startswith("repeated(np.array(")
    assert oracles.copy_repeated_rows(question)["calls"][0][0].startswith("spread(np.array(")


def test_the_cause_is_stocks_if_stock_theano_differs_too() -> None:
    stack_only = oracles.investigate(
        make_program(),
        make_workers(answer_wrongly_for_exp, answer_correctly, answer_correctly),
        (),
        500,
        60,
    )
    stack_and_stock = oracles.investigate(
        make_program(),
        make_workers(answer_wrongly_for_exp, answer_correctly, answer_wrongly_for_exp),
        (),
        500,
        60,
    )
    slow = Workers(answer_wrongly_for_exp, {}, answer_correctly, lambda _: {"died": "hangs"}, None)
    unknown = oracles.investigate(make_program(), slow, (), 500, 60)
    assert stack_only is not None
    assert stack_and_stock is not None
    assert unknown is not None
    causes = stack_only.cause, stack_and_stock.cause, unknown.cause
    assert causes == ("the stack's", "stock's", "unknown")


def test_a_row_of_known_toml_matches_only_if_all_its_properties_match() -> None:
    row = known_differences.KnownDifference(
        ("value",), r"T\.exp", "", True, ("plain",), True, "because"
    )
    difference_ = Difference("value", "plain")
    assert row.matches(make_program(), difference_, True)
    assert row.matches(make_program(), difference_, None)
    assert not row.matches(make_program(), difference_, False)
    assert not row.matches(make_program(), replace(difference_, kind="shape"), True)
    assert not row.matches(make_program(), replace(difference_, situation="copy"), True)
    assert not row.matches(make_program(statements=()), difference_, True)
    assert not replace(row, message="-1").matches(make_program(), difference_, True)
    assert replace(row, message="-1").matches(
        make_program(), replace(difference_, actual="-1"), True
    )
    rare = replace(row, finite=False)
    assert not rare.matches(make_program(), difference_, True)
    assert rare.matches(make_program(), replace(difference_, finite=False), True)


def test_an_invalid_row_of_known_toml_is_refused(tmp_path: Path) -> None:
    assert all(row.reason and row.kinds for row in fuzzing.load_known(fuzzing.KNOWN))
    file = tmp_path / "known.toml"
    file.write_text("[[known]]\nkinds = ['value']\n")
    with pytest.raises(ConfigurationError, match="expected the keys"):
        fuzzing.load_known(file)
    file.write_text(
        "[[known]]\nkinds = []\npattern = '('\nmessage = ''\nfinite = true\nsituations = []\n"
        "stock = true\nreason = ''\n"
    )
    with pytest.raises(ConfigurationError, match="unterminated"):
        fuzzing.load_known(file)


# -- workers ---------------------------------------------------------------------------------


def test_an_exception_in_a_thread_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    # The builder's Python has neither NumPy nor Theano. At the end of the test, setitem removes the
    # modules that import the substitutes.
    importers = ("fuzz.worker", "fuzz.layouts", "fuzz.encoding")
    for name in ("numpy", "theano", *importers):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    for name in importers:
        del sys.modules[name]
    worker = importlib.import_module("fuzz.worker")
    plain = make_answer()["runs"]["plain"]
    answers = iter([plain, plain])

    def run(function: Any) -> Any:
        try:
            return next(answers)
        except StopIteration:
            raise ValueError("no value") from None

    task = SimpleNamespace(run=run)
    runs = worker.Task.run_in_threads(task, None, None)
    assert runs == {"raised": "ValueError: no value"}
    answers = iter([plain] * (1 + 2 * worker.ROUNDS))
    assert worker.Task.run_in_threads(task, None, None) == plain


# -- the task --------------------------------------------------------------------------------


def test_an_unknown_category_lists_all_categories() -> None:
    with pytest.raises(UsageError, match="elementwise"):
        fuzzing.fuzz("openblas", fuzzing.Limits(1, 1), 1, ["none"])


def test_a_stack_must_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envs, "read_installed_digest", lambda _: None)
    with pytest.raises(EnvironmentFailed, match="is not built"):
        fuzzing.fuzz("openblas", fuzzing.Limits(1, 1), 1, [])


def test_the_first_programs_do_not_depend_on_the_number_of_programs() -> None:
    few = list(fuzzing._generate_programs(fuzzing.Limits(0, 5), 3, list(generator.CATEGORIES), 0.0))
    many = list(
        fuzzing._generate_programs(fuzzing.Limits(0, 40), 3, list(generator.CATEGORIES), 0.0)
    )
    assert str(many[:5]) == str(few)
    assert {generated.category for generated in many} == set(generator.CATEGORIES)


def test_the_fuzzer_is_valid_python_3_9_for_stock_theano() -> None:
    for file in (paths.ROOT / "fuzz").rglob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
