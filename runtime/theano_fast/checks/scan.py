"""A profiled training step of a Neural Turing Machine: a real legacy program, judged.

Every BLAS op of the function and of its scans is C, the scans loop in C, the gradient agrees
with finite differences, and training goes where it went when the reference was stored.
"""

import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import theano

from theano_fast import libraries, ntm, profiles, rmsprop, thunks
from theano_fast.checks.result import Options, Result

# The loss at the last of CALLS training calls, in float64. Another BLAS, thread count or libm only
# changes roundings, of 1e-16 each, in runs that are short and smooth: the small machine's loss is
# the same to the last digit as C code bound to OpenBLAS and as Python without any optimization.
# The tolerance leaves room for a libm of a few ulp; a wrong gradient shows in the second digit.
CALLS = 20
REFERENCE = {"small": 0.6224275353404106, "full": 0.6911389082282239}
TOLERANCE = 1e-8
RATE = {"small": 1e-2, "full": 1e-4}
SIZES = {"small": ntm.SMALL, "full": ntm.FULL}
# Central differences err by h^2 times the third derivative and by u / h: 1e-10 and 1e-11 here.
DIFFERENCE = 1e-5
GRADIENT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Training:
    """A compiled training step, which returns the loss and gradients before it updates."""

    machine: ntm.Machine
    function: Any
    inputs: Any
    targets: Any

    def __call__(self) -> list[Any]:
        """Train once; return the loss and the gradients."""
        return list(self.function(self.inputs, self.targets))


def run(options: Options) -> Result:
    """Run the small machine, and its gradient check; with full, the full-size machine too."""
    theano.config.floatX = "float64"
    small = compile_training("small", gradients=True)
    results = [judge("small", small, gradient_failures)]
    if options.full:
        results.append(judge("full", compile_training("full", gradients=False), lambda _: []))
    return Result(
        summary="; ".join(result.summary for result in results),
        failures=tuple(failure for result in results for failure in result.failures),
        measurements={k: v for result in results for k, v in result.measurements.items()},
        details=tuple(line for result in results for line in result.details),
    )


def compile_training(name: str, gradients: bool) -> Training:
    """Compile the training step of a size, returning its gradients too if asked to."""
    machine = ntm.build(SIZES[name], profile=True)
    parameters = list(machine.parameters.values())
    slopes = theano.grad(machine.loss, parameters)
    function = theano.function(
        [machine.inputs, machine.targets],
        [machine.loss, *(slopes if gradients else [])],
        updates=rmsprop.updates(parameters, slopes, RATE[name]),
        name=f"ntm_{name}",
        profile=True,
    )
    return Training(machine, function, *ntm.copy_task(machine.size, seed=1))


def judge(name: str, training: Training, more: Callable[[Training], list[str]]) -> Result:
    """Train CALLS times and say what is wrong with the loss, the profile and the loops."""
    losses, seconds = [], []
    for _ in range(CALLS):
        started = time.perf_counter()
        losses.append(float(training()[0]))
        seconds.append(time.perf_counter() - started)
    failures = []
    if not abs(losses[-1] - REFERENCE[name]) <= TOLERANCE * REFERENCE[name]:
        failures.append(f"{name}: the loss at the last call is {losses[-1]}, not {REFERENCE[name]}")
    read = profile(training.function)
    failures += profile_failures(read) + loop_failures(training.function) + more(training)
    per_call, numbers = float(np.median(seconds)), read[0].numbers
    summary = (
        f"{name}: {per_call * 1e3:.1f} ms a call of {training.machine.size.steps} steps, compiled"
        f" in {numbers['compile']:.0f} s"
    )
    measurements = {
        "per_call": per_call,
        "loss": losses[-1],
        "calls": CALLS,
        "scan_steps": training.machine.size.steps,
        **numbers,
        "nodes": int(numbers["nodes"]),
    }
    lines = tuple(line for each in read for line in profiles.render(each))
    return Result(summary, tuple(failures), "", {name: measurements}, lines)


def profile(function: Any) -> tuple[profiles.Profile, ...]:
    """Return the profiles of a function and of its scans, read from Theano's text."""
    text = io.StringIO()
    kept = [function.profile, *(op.fn.profile for op in thunks.scans(function))]
    for statistics in kept:
        statistics.summary(file=text, n_ops_to_print=1000, n_apply_to_print=1)
    return profiles.parse(text.getvalue())


def profile_failures(read: tuple[profiles.Profile, ...]) -> list[str]:
    """Return what the profiles show: BLAS in Python, or tables without any BLAS."""
    failures = [
        f"{row.name} runs as {row.kind} in {each.title}"
        for each in read
        for row in profiles.python_blas(each)
    ]
    failures += [f"{each.title} shows no BLAS op" for each in read if not profiles.blas(each)]
    if len(read) != 3:
        failures.append(f"{len(read)} profiles, not of the function, its scan and the gradient's")
    return failures


def loop_failures(function: Any) -> list[str]:
    """Return which scans loop in Python, and whether scan_steps's module is missing."""
    failures = [f"{scan} loops in Python" for scan in thunks.python_scans(function)]
    if not any("/theano/scan_module/scan_steps." in file for file in libraries.mapped()):
        failures.append("the compiled loop of scan, scan_steps, is not loaded")
    return failures


def gradient_failures(training: Training) -> list[str]:
    """Return the parameters whose gradient disagrees with central differences.

    Each is probed along one random direction of length 1 at the initial values.
    """
    values = ntm.initial_values(training.machine.size, seed=1)
    slopes = dict(zip(values, loss_at(training, values)[1:], strict=True))
    draw = np.random.RandomState(3).uniform
    failures = []
    for name, value in values.items():
        direction = draw(-1, 1, value.shape)
        direction /= np.sqrt((direction**2).sum())
        above, below = (
            loss_at(training, {**values, name: value + sign * DIFFERENCE * direction})[0]
            for sign in (1, -1)
        )
        expected = float(above - below) / (2 * DIFFERENCE)
        got = float((slopes[name] * direction).sum())
        if not abs(got - expected) <= GRADIENT_TOLERANCE:
            failures.append(f"the gradient of {name} is {got!r}, by differences {expected!r}")
    return failures


def loss_at(training: Training, values: dict[str, Any]) -> list[Any]:
    """Return the loss and gradients at the given parameters, whatever training did to them."""
    for name, value in values.items():
        training.machine.parameters[name].set_value(value)
    return training()
