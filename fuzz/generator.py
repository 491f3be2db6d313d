"""Generate random programs. A program depends only on the seed, its category and its number."""

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
# Maps a category to the functions that write statements, and to the minimum and maximum number of
# statements. Programs use the first function most often, except in "mixed".
CATEGORIES: dict[str, tuple[tuple[Write, ...], tuple[int, int]]] = {
    "elementwise": ((elementwise.write,), (1, 6)),
    "broadcasting": ((elementwise.write_broadcast, elementwise.write), (1, 5)),
    "reductions": (
        (reductions.write, elementwise.write_arithmetic, subtensors.write_subtensor),
        (1, 4),
    ),
    "subtensors": ((subtensors.write, elementwise.write_arithmetic), (1, 5)),
    "scans": ((scans.write, elementwise.write_arithmetic, subtensors.write_subtensor), (1, 2)),
    "products": ((products.write, elementwise.write_arithmetic), (1, 3)),
    "shapes": ((shapes.write, subtensors.write_subtensor, elementwise.write_arithmetic), (1, 4)),
    "branches": ((branches.write, elementwise.write, subtensors.write_subtensor), (1, 4)),
    "random": ((random_streams.write,), (1, 2)),
    "sparse": ((sparse_matrices.write, elementwise.write_arithmetic), (1, 2)),
    "convolutions": ((convolutions.write,), (1, 2)),
    "sorting": ((sorting.write, subtensors.write_subtensor, elementwise.write_arithmetic), (1, 3)),
    "softmax": ((softmaxes.write, elementwise.write_arithmetic), (1, 2)),
    "gradients": ((gradients.write,), (1, 1)),
    "states": ((states.write, elementwise.write_arithmetic, subtensors.write_subtensor), (1, 2)),
    "mixed": (
        (
            *(elementwise.write, subtensors.write, reductions.write, scans.write, shapes.write),
            *(
                elementwise.write_broadcast,
                products.write,
                branches.write,
                sorting.write,
                states.write,
            ),
        ),
        (3, 7),
    ),
}
# Keys of fuzz.program.SITUATIONS. All programs run in ALWAYS, and a third of the programs run in
# one more situation.
ALWAYS = ("again",)
ADDITIONAL = (
    *("copy", "copy_sharing", "swap", "pickle", "deepcopy", "twice", "failing", "trusting"),
    *("threads", "two_threads", "subset", "unshipped"),
)
# Functions in these modes cannot be copied, or may reuse the memory of their outputs. Programs in
# these modes run in fewer situations.
LIMITED_MODES = ("c_linker", "python", "debug", "kept")
IN_LIMITED_MODES = ("twice", "failing", "unshipped")
# Keys of fuzz.program.MODES, repeated by their frequency.
MODES = (
    *("fast_run",) * 5,
    *("unfused",) * 10,
    *("kept", "not_in_place", "fast_compile", "c_linker", "python", "debug"),
)


def generate(seed: int, category: str, number: int) -> Program:
    """Generate the program ``number`` of a category."""
    rng = random.Random(f"{seed} {category} {number}")
    writer = Writer(rng, extreme=rng.random() < 0.3)
    write_functions, (minimum, maximum) = CATEGORIES[category]
    for _ in range(rng.randint(minimum, maximum)):
        if category == "mixed":
            write = rng.choice(write_functions)
        else:
            write = write_functions[0] if rng.random() < 0.7 else rng.choice(write_functions)
        write(writer)
    program = writer.make_program(category, 4)
    return _add_options(rng, program, writer)


def _add_options(rng: random.Random, program: Program, writer: Writer) -> Program:
    """Add memory layouts, aliases, options of theano.function, a mode and situations."""
    if rng.random() < 0.4:
        program = replace(
            program,
            calls=tuple(
                tuple(
                    replace(value, layout=rng.choice(LAYOUTS)) if rng.random() < 0.4 else value
                    for value in call
                )
                for call in program.calls
            ),
        )
    count = len(program.inputs)
    if count > 1 and rng.random() < 0.15:
        one, other = rng.sample(range(count), 2)
        if program.inputs[one].dtype == program.inputs[other].dtype:
            program = replace(program, aliases=((one, other),))
    if rng.random() < 0.1:
        program = replace(program, borrow=True)
    if rng.random() < 0.06 and count and not program.aliases:
        program = _replace_by_shared(program, rng.randrange(count))
        count = len(program.inputs)
    if rng.random() < 0.12 and count and not program.aliases:
        position = rng.randrange(count)
        # The function may overwrite a mutable input, so the input's memory must be writable.
        inputs = list(program.inputs)
        inputs[position] = replace(inputs[position], borrow=True, mutable=rng.random() < 0.5)
        calls = tuple(
            tuple(
                replace(value, layout="C") if value.layout in ("frozen", "repeated") else value
                for value in call
            )
            for call in program.calls
        )
        program = replace(program, inputs=tuple(inputs), calls=calls)
    mode = rng.choice(MODES)
    if mode == "debug" and writer.extreme:
        # DebugMode compares results itself, and wrongly reports a difference for some nan.
        mode = "fast_run"
    situations = [*ALWAYS]
    if rng.random() < 0.35:
        situations.append(rng.choice(IN_LIMITED_MODES if mode in LIMITED_MODES else ADDITIONAL))
    return replace(program, mode=mode, situations=tuple(situations))


def _replace_by_shared(program: Program, position: int) -> Program:
    """Replace an input by a shared variable of the same type, with theano.function's ``givens``.

    Return the program unchanged if a dimension of the input is broadcastable.
    """
    variable = program.inputs[position]
    if any(variable.broadcastable):
        return program

    def remove_position(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values[:position] + values[position + 1 :]

    value = program.calls[0][position]
    name = f"given_{variable.name}"
    target, _, text = variable.format_source().partition(" = ")
    return replace(
        program,
        inputs=remove_position(program.inputs),
        # The shared variable has one value in all calls: drop calls in which the input has another
        # shape.
        calls=tuple(
            remove_position(call) for call in program.calls if call[position].shape == value.shape
        ),
        shared=(*program.shared, (name, replace(value, layout="C"))),
        statements=((target, text), *program.statements),
        givens=(*program.givens, (variable.name, name)),
    )
