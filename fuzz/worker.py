"""Compile and call programs in an environment: read questions and write answers, as lines of JSON.

A forked child compiles and calls, so that the worker survives a crash or a hang and reports it. The
child keeps its compiled modules from program to program. An answer is
{"runs": {situation: run}, "logged": [...]}, {"refused": the exception of the compilation}, or
{"died": the signal}.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import sys
import threading
import warnings
from typing import Any

import numpy as np
import theano

from conformance.logged_failures import LoggedFailures
from fuzz import layouts
from fuzz.encoding import encode

# The limit for one program, in seconds of the child's processor time. The limit of elapsed time is
# ten times as long, because g++ and other processes run too.
LIMIT = int(os.environ.get("FUZZ_LIMIT", "60"))
TIMERS = {signal.ITIMER_PROF: LIMIT, signal.ITIMER_REAL: 10 * LIMIT}
EXPIRED = ("SIGPROF", "SIGALRM")
# The number of programs after which a new child starts.
LIFE = 400
ROUNDS = 4


def describe_error(error: BaseException) -> str:
    """Return the exception's type and message, at most 300 characters of the first line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


class Task:
    """A compiled program. A method named after a situation runs the program in it."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.names: dict[str, Any] = {}
        exec(asked["graph"], self.names)
        # The names that the expressions of values use.
        self.values = {**vars(layouts), "np": np}
        self.function = eval(asked["function"], self.names)
        self.initial = [
            (variable, copy.deepcopy(variable.get_value(borrow=True)))
            for variable in self.function.get_shared()
        ]

    def arguments(self, number: int) -> list[Any]:
        """Make the arguments of a call."""
        made = [eval(text, self.values) for text in self.asked["calls"][number]]
        for one, other in self.asked["aliases"]:
            if made[one].dtype == made[other].dtype and made[one].shape == made[other].shape:
                made[other] = made[one]
        return made

    def restore(self) -> None:
        """Reset shared variables to their initial values."""
        for variable, value in self.initial:
            variable.set_value(copy.deepcopy(value), borrow=True)

    def run(self, function: Any, failing: bool = False, subset: bool = False) -> dict[str, Any]:
        """Make all calls of the program; return their results and the shared variables' values."""
        answers: list[Any] = []
        kept: list[tuple[Any, Any]] = []
        for number in range(len(self.asked["calls"])):
            if failing:
                self.fail(function, number)
            values = self.arguments(number)
            before = [value.copy() for value in values]
            try:
                if subset:
                    places = range(self.asked["outputs"])
                    outputs = [function(*values, output_subset=[output])[0] for output in places]
                else:
                    outputs = function(*values)
            except Exception as error:
                answers.append({"error": describe_error(error)})
                continue
            answer: dict[str, Any] = {"outputs": [encode(output) for output in outputs]}
            changed = [
                position
                for position, (old, new) in enumerate(zip(before, values))
                if not self.asked["free"][position] and repr(encode(old)) != repr(encode(new))
            ]
            if changed:
                answer["changed"] = changed
            answers.append(answer)
            kept.append((answer, outputs))
        if not self.asked["borrow"]:
            for answer, outputs in kept:
                now = [encode(output) for output in outputs]
                if repr(now) != repr(answer["outputs"]):
                    answer["overwritten"] = now
        return {"calls": answers, "shared": self.shared()}

    def shared(self) -> list[Any]:
        """Return the values of the shared variables."""
        return [encode(self.names[name].get_value()) for name in self.asked["shared"]]

    def fail(self, function: Any, number: int) -> None:
        """Make calls that fail, except calls that may change a shared variable."""
        values = self.arguments(number)
        if not values:
            return
        attempts = [[value[None] for value in values], values[1:]]
        if not self.asked["updates"] and not self.initial:
            attempts.append(
                [np.concatenate([v, v[:1]]) if v.ndim else v for v in values[:1]] + values[1:]
            )
        for attempt in attempts:
            try:
                function(*attempt)
            except Exception:
                continue

    def situations(self) -> dict[str, Any]:
        """Run the program in all situations; return the runs by situation."""
        runs = {"plain": self.run(self.function)}
        for name in self.asked["situations"]:
            self.restore()
            try:
                run = getattr(self, name)()
            except Exception as error:
                run = {"raised": describe_error(error)}
            if run is not None:
                runs[name] = run
        return runs

    def copy(self) -> Any:
        """Call a copy, then the original function."""
        function = self.function.copy()
        copied = self.run(function)
        self.restore()
        after = self.run(self.function)
        return copied if repr(copied) != repr(after) else after

    def copy_sharing(self) -> Any:
        """Call a copy that shares intermediate storage with the function."""
        return self.run(self.function.copy(share_memory=True))

    def swap(self) -> Any:
        """Call a copy with other shared variables of the same values."""
        swapped = {name: self.names[name] for name in self.asked["shared"]}
        if not swapped:
            return None
        others = {
            name: theano.shared(variable.get_value(), name) for name, variable in swapped.items()
        }
        function = self.function.copy(swap={swapped[name]: others[name] for name in swapped})
        before = self.shared()
        run = self.run(function)
        if repr(run["shared"]) != repr(before):
            return {"raised": "the copy changed the shared variable that was swapped out"}
        return {**run, "shared": [encode(others[name].get_value()) for name in others]}

    def pickle(self) -> Any:
        """Call the function after pickling and unpickling it."""
        return {**self.run(pickle.loads(pickle.dumps(self.function))), "shared": None}

    def deepcopy(self) -> Any:
        """Call a deep copy."""
        return {**self.run(copy.deepcopy(self.function)), "shared": None}

    def twice(self) -> Any:
        """Call a second function, compiled from a new graph of the same program."""
        again = Task(self.asked)
        return again.run(again.function)

    def failing(self) -> Any:
        """Call the function, with failing calls in between."""
        return self.run(self.function, failing=True)

    def trusting(self) -> Any:
        """Call the function with trust_input, so that it does not check inputs."""
        self.function.trust_input = True
        try:
            # All arguments have the right type.
            return self.run(self.function)
        finally:
            self.function.trust_input = False

    def subset(self) -> Any:
        """Compute each output in a separate call."""
        return (
            None if self.asked["updates"] or self.initial else self.run(self.function, subset=True)
        )

    def threads(self) -> Any:
        """Call the function and a copy at the same time."""
        return None if self.initial else self.run_in_threads(self.function, self.function.copy())

    def two_threads(self) -> Any:
        """Call two functions of the same program at the same time."""
        if self.initial:
            return None
        return self.run_in_threads(self.function, Task(self.asked).function)

    def run_in_threads(self, *functions: Any) -> Any:
        """Call functions at the same time, each in a thread; return the first run that differs."""
        plain = self.run(functions[0])
        runs: list[Any] = []

        def work(function: Any) -> None:
            runs.extend(self.run(function) for _ in range(ROUNDS))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=work, args=[function]) for function in functions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        return next((run for run in runs if repr(run) != repr(plain)), plain)


def reply(asked: dict[str, Any], logged: LoggedFailures) -> dict[str, Any]:
    """Compile and run a program; return the answer."""
    logged.lines = []
    try:
        task = Task(asked)
    except Exception as error:
        return {"refused": describe_error(error), "logged": logged.lines}
    return {"runs": task.situations(), "logged": logged.lines}


def serve(questions: int, answers: int) -> None:
    """Answer questions until the pipe ends, or LIFE questions."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with (
        LoggedFailures() as logged,
        os.fdopen(questions) as asked,
        os.fdopen(answers, "w") as replies,
    ):
        for _, line in zip(range(LIFE), asked):
            for timer, seconds in TIMERS.items():
                signal.setitimer(timer, seconds)
            text = json.dumps(reply(json.loads(line), logged))
            for timer in TIMERS:
                signal.setitimer(timer, 0)
            print(text, file=replies, flush=True)


class Child:
    """A forked process that compiles and calls."""

    def __init__(self) -> None:
        asked, self._ask = os.pipe()
        self._hear, answers = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.close(self._ask)
            os.close(self._hear)
            # Programs may print; keep their output apart from the answers.
            os.dup2(2, 1)
            status = 1
            try:
                serve(asked, answers)
                status = 0
            finally:
                os._exit(status)
        os.close(asked)
        os.close(answers)
        self.questions = os.fdopen(self._ask, "w")
        self.answers = os.fdopen(self._hear)

    def ask(self, line: str) -> str:
        """Return the answer to a line; "" if the process ended."""
        try:
            self.questions.write(line)
            self.questions.flush()
        except BrokenPipeError:
            return ""
        return self.answers.readline()

    def end(self) -> int:
        """Wait until the process ends; return its status, or the negative number of its signal."""
        for stream in (self.questions, self.answers):
            try:
                stream.close()
            except BrokenPipeError:
                continue
        _, status = os.waitpid(self.process, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    """Pass questions to a child, and return its answers."""
    child = Child()
    asked = 0
    for line in sys.stdin:
        if asked == LIFE:
            child.end()
            child, asked = Child(), 0
        answer = child.ask(line)
        asked += 1
        if not answer:
            status = child.end()
            name = signal.Signals(-status).name if status < 0 else f"exit {status}"
            answer = json.dumps({"died": "hangs" if name in EXPIRED else name}) + "\n"
            child, asked = Child(), 0
        sys.stdout.write(answer)
        sys.stdout.flush()
    child.end()


if __name__ == "__main__":
    main()
