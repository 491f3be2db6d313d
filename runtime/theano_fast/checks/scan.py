"""Check a profiled training step of a Neural Turing Machine, a typical program.

All BLAS ops of the function and of its scans must run in C. The scans must loop in C. The gradient
must agree with finite differences. Training must reach the stored loss.
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

# REFERENCE is the loss in the last of CALLS training calls, in float64. Another BLAS, thread count
# or libm changes only roundings of 1e-16 each. The differences hardly grow, because training is
# short and smooth: the small machine's loss is the same to the last digit in C with OpenBLAS and in
# Python without optimization. TOLERANCE allows a libm with errors of a few ulp. A wrong gradient
# changes the second digit of the loss.
CALLS = 20
REFERENCE = {"small": 0.6224275353404106, "full": 0.6911389082282239}
TOLERANCE = 1e-8
RATE = {"small": 1e-2, "full": 1e-4}
SIZES = {"small": ntm.SMALL, "full": ntm.FULL}
# The step h of central differences. Their error has two parts: h^2 times the third derivative, here
# 1e-10, and u / h, here 1e-11. u is the unit roundoff of float64.
DIFFERENCE = 1e-5
GRADIENT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Training:
    """A compiled training step and its data.

    A call returns the loss and the gradients at the parameters' values before the update.
    """

    machine: ntm.Machine
    function: Any
    inputs: Any
    targets: Any

    def __call__(self) -> list[Any]:
        """Train once; return the loss and the gradients."""
        return list(self.function(self.inputs, self.targets))


def run(options: Options) -> Result:
    """Train the small machine and check its gradient; with ``full``, also train the full size."""
    theano.config.floatX = "float64"
    small = compile_training("small", gradients=True)
    results = [check_training("small", small, find_gradient_failures)]
    if options.full:
        results.append(
            check_training("full", compile_training("full", gradients=False), lambda _: [])
        )
    return Result(
        summary="; ".join(result.summary for result in results),
        failures=tuple(failure for result in results for failure in result.failures),
        measurements={k: v for result in results for k, v in result.measurements.items()},
        details=tuple(line for result in results for line in result.details),
    )


def compile_training(name: str, gradients: bool) -> Training:
    """Compile the training step of a machine.

    Args:
        name: the machine's size, a key of SIZES.
        gradients: whether a call also returns the gradients of all parameters, after the loss.
    """
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


def check_training(
    name: str, training: Training, find_more_failures: Callable[[Training], list[str]]
) -> Result:
    """Train CALLS times, and check the loss, the profile and the loops.

    Args:
        name: the machine's size, a key of SIZES.
        training: the training step.
        find_more_failures: a function that returns the failures of further checks.
    """
    losses, seconds = [], []
    for _ in range(CALLS):
        started = time.perf_counter()
        losses.append(float(training()[0]))
        seconds.append(time.perf_counter() - started)
    failures = []
    if not abs(losses[-1] - REFERENCE[name]) <= TOLERANCE * REFERENCE[name]:
        failures.append(f"{name}: the loss in the last call is {losses[-1]}, not {REFERENCE[name]}")
    parsed = parse_profiles(training.function)
    failures += find_profile_failures(parsed) + find_loop_failures(training.function)
    failures += find_more_failures(training)
    per_call, numbers = float(np.median(seconds)), parsed[0].numbers
    summary = (
        f"{name}: {per_call * 1e3:.1f} ms per call of {training.machine.size.steps} steps, compiled"
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
    lines = tuple(line for profile in parsed for line in profiles.render(profile))
    return Result(summary, tuple(failures), "", {name: measurements}, lines)


def parse_profiles(function: Any) -> tuple[profiles.Profile, ...]:
    """Return the profiles of a function and of its scans, parsed from Theano's text."""
    text = io.StringIO()
    for statistics in (function.profile, *(op.fn.profile for op in thunks.list_scans(function))):
        statistics.summary(file=text, n_ops_to_print=1000, n_apply_to_print=1)
    return profiles.parse(text.getvalue())


def find_profile_failures(parsed: tuple[profiles.Profile, ...]) -> list[str]:
    """Return a failure for each BLAS op in Python, and for each profile without BLAS ops.

    There must be three profiles: of the function, its scan, and the scan of the gradient.
    """
    failures = [
        f"{row.name} runs as {row.kind} in {profile.title}"
        for profile in parsed
        for row in profiles.find_python_blas(profile)
    ]
    failures += [
        f"{profile.title} has no BLAS op" for profile in parsed if not profiles.find_blas(profile)
    ]
    if len(parsed) != 3:
        failures.append(
            f"{len(parsed)} profiles instead of 3: the function, its scan and the gradient's scan"
        )
    return failures


def find_loop_failures(function: Any) -> list[str]:
    """Return a failure for each scan that loops in Python, and if scan_steps is not loaded."""
    failures = [f"{scan} loops in Python" for scan in thunks.list_python_scans(function)]
    if not any("/theano/scan_module/scan_steps." in file for file in libraries.list_mapped()):
        failures.append("scan's compiled loop, scan_steps, is not loaded")
    return failures


def find_gradient_failures(training: Training) -> list[str]:
    """Return a failure for each parameter whose gradient disagrees with central differences.

    Compute each difference at the initial values, in a random direction of length 1.
    """
    values = ntm.initial_values(training.machine.size, seed=1)
    slopes = dict(zip(values, compute_loss(training, values)[1:], strict=True))
    draw = np.random.RandomState(3).uniform
    failures = []
    for name, value in values.items():
        direction = draw(-1, 1, value.shape)
        direction /= np.sqrt((direction**2).sum())
        above, below = (
            compute_loss(training, {**values, name: value + sign * DIFFERENCE * direction})[0]
            for sign in (1, -1)
        )
        expected = float(above - below) / (2 * DIFFERENCE)
        actual = float((slopes[name] * direction).sum())
        if not abs(actual - expected) <= GRADIENT_TOLERANCE:
            failures.append(
                f"the gradient of {name} is {actual!r}, but finite differences give {expected!r}"
            )
    return failures


def compute_loss(training: Training, values: dict[str, Any]) -> list[Any]:
    """Set the parameters to values, train once, and return the loss and gradients at the values."""
    for name, value in values.items():
        training.machine.parameters[name].set_value(value)
    return training()
