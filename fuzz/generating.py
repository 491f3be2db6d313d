"""The programs of a seed: each depends on the seed, its category and its number alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fuzz.grammar import (
    branches,
    convolutions,
    elementwise,
    gradients,
    products,
    random_streams,
    reductions,
    scans,
    shapes,
    softmaxes,
    sorting,
    sparse_matrices,
    states,
    subtensors,
)
from fuzz.grammar.writer import Variable, Writer
from fuzz.program import LAYOUTS, Program

Write = Callable[[Writer], Variable]
# What a category's programs are made of, the first of it most of all; each program has so many.
CATEGORIES: dict[str, tuple[tuple[Write, ...], tuple[int, int]]] = {
    "elementwise": ((elementwise.write,), (1, 6)),
    "broadcasting": ((elementwise.broadcast, elementwise.write), (1, 5)),
    "reductions": ((reductions.write, elementwise.arithmetic, subtensors.read), (1, 4)),
    "subtensors": ((subtensors.write, elementwise.arithmetic), (1, 5)),
    "scans": ((scans.write, elementwise.arithmetic, subtensors.read), (1, 2)),
    "products": ((products.write, elementwise.arithmetic), (1, 3)),
    "shapes": ((shapes.write, subtensors.read, elementwise.arithmetic), (1, 4)),
    "branches": ((branches.write, elementwise.write, subtensors.read), (1, 4)),
    "random": ((random_streams.write,), (1, 2)),
    "sparse": ((sparse_matrices.write, elementwise.arithmetic), (1, 2)),
    "convolutions": ((convolutions.write,), (1, 2)),
    "sorting": ((sorting.write, subtensors.read, elementwise.arithmetic), (1, 3)),
    "softmax": ((softmaxes.write, elementwise.arithmetic), (1, 2)),
    "gradients": ((gradients.write,), (1, 1)),
    "states": ((states.write, elementwise.arithmetic, subtensors.read), (1, 2)),
    "mixed": (
        (
            *(elementwise.write, subtensors.write, reductions.write, scans.write, shapes.write),
            *(elementwise.broadcast, products.write, branches.write, sorting.write, states.write),
        ),
        (3, 7),
    ),
}
ALWAYS = ("again",)
OFTEN = (
    *("copy", "copy_sharing", "swap", "pickle", "deepcopy", "twice", "failing", "trusting"),
    *("threads", "two_threads", "subset", "unshipped"),
)
# Functions of these have no copies, nor outputs of their own.
LINKERS = ("c_linker", "python", "debug", "kept")
OF_ALL_LINKERS = ("twice", "failing", "unshipped")
MODES = (
    *("fast_run",) * 5,
    *("unfused",) * 10,
    *("kept", "not_in_place", "fast_compile", "c_linker", "python", "debug"),
)


def generate(seed: int, category: str, number: int) -> Program:
    """The number-th program of a category."""
    chosen = random.Random(f"{seed} {category} {number}")
    writer = Writer(chosen, extreme=chosen.random() < 0.3)
    makers, (fewest, most) = CATEGORIES[category]
    for _ in range(chosen.randint(fewest, most)):
        if category == "mixed":
            maker = chosen.choice(makers)
        else:
            maker = makers[0] if chosen.random() < 0.7 else chosen.choice(makers)
        maker(writer)
    program = writer.program(category, 4)
    return _called(chosen, program, writer)


def _called(chosen: random.Random, program: Program, writer: Writer) -> Program:
    """The program with layouts, a mode, options and situations."""
    if chosen.random() < 0.4:
        program = replace(
            program,
            calls=tuple(
                tuple(
                    replace(value, layout=chosen.choice(LAYOUTS))
                    if chosen.random() < 0.4
                    else value
                    for value in call
                )
                for call in program.calls
            ),
        )
    count = len(program.inputs)
    if count > 1 and chosen.random() < 0.15:
        one, other = chosen.sample(range(count), 2)
        if program.inputs[one].dtype == program.inputs[other].dtype:
            program = replace(program, aliases=((one, other),))
    if chosen.random() < 0.1:
        program = replace(program, borrow=True)
    if chosen.random() < 0.06 and count and not program.aliases:
        program = _given(program, chosen.randrange(count))
        count = len(program.inputs)
    if chosen.random() < 0.12 and count and not program.aliases:
        place = chosen.randrange(count)
        # What is mutable may be written to: no layout that cannot be.
        inputs = list(program.inputs)
        inputs[place] = replace(inputs[place], borrow=True, mutable=chosen.random() < 0.5)
        calls = tuple(
            tuple(
                replace(value, layout="C") if value.layout in ("frozen", "repeated") else value
                for value in call
            )
            for call in program.calls
        )
        program = replace(program, inputs=tuple(inputs), calls=calls)
    mode = chosen.choice(MODES)
    if mode == "debug" and writer.extreme:
        # It compares by itself, and not all of what is nan.
        mode = "fast_run"
    situations = [*ALWAYS]
    if chosen.random() < 0.35:
        situations.append(chosen.choice(OF_ALL_LINKERS if mode in LINKERS else OFTEN))
    return replace(program, mode=mode, situations=tuple(situations))


def _given(program: Program, place: int) -> Program:
    """The program with a shared variable in the place of an input, where it has its type."""
    given = program.inputs[place]
    if any(given.broadcastable):
        return program

    def without(each: tuple[Any, ...]) -> tuple[Any, ...]:
        return each[:place] + each[place + 1 :]

    value = program.calls[0][place]
    name = f"given_{given.name}"
    target, _, text = given.source().partition(" = ")
    return replace(
        program,
        inputs=without(program.inputs),
        # Of other lengths are others' values.
        calls=tuple(without(call) for call in program.calls if call[place].shape == value.shape),
        shared=(*program.shared, (name, replace(value, layout="C"))),
        statements=((target, text), *program.statements),
        givens=(*program.givens, (given.name, name)),
    )
