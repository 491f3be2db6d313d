"""Runs programs inside an environment: a line of JSON for each on standard input, one back.

A process that compiles and calls is forked off, so that what dies or hangs is known and the next
program goes on; it keeps its modules from program to program. An answer is
{"runs": {situation: run}, "logged": [...]}, {"refused": why it could not be compiled}, or
{"died": the signal}.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import re
import signal
import sys
import threading
import warnings
from typing import Any

import numpy as np
import theano

from fuzz import layouts
from fuzz.encoding import encoded

# Seconds of its own processor time for one program, and all seconds, in which g++ works too and
# other processes.
LIMIT = int(os.environ.get("FUZZ_LIMIT", "60"))
TIMERS = {signal.ITIMER_PROF: LIMIT, signal.ITIMER_REAL: 10 * LIMIT}
EXPIRED = ("SIGPROF", "SIGALRM")
# A process that compiled so many programs gives way to a new one.
LIFE = 400
ROUNDS = 4


class Logged(logging.Handler):
    """Keeps the first lines of errors that Theano logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        first = record.getMessage().partition("\n")[0]
        self.lines.append(re.sub(r" object at 0x\w+", "", first))


def why(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


class Task:
    """One program."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.names: dict[str, Any] = {}
        exec(asked["graph"], self.names)
        # As the helpers of the program's values are called.
        self.values = {**vars(layouts), "np": np}
        self.function = eval(asked["function"], self.names)
        self.initial = [
            (each, copy.deepcopy(each.get_value(borrow=True)))
            for each in self.function.get_shared()
        ]

    def arguments(self, number: int) -> list[Any]:
        """The arguments of a call."""
        made = [eval(text, self.values) for text in self.asked["calls"][number]]
        for one, other in self.asked["aliases"]:
            if made[one].dtype == made[other].dtype and made[one].shape == made[other].shape:
                made[other] = made[one]
        return made

    def restore(self) -> None:
        """Give shared variables their first values back."""
        for variable, value in self.initial:
            variable.set_value(copy.deepcopy(value), borrow=True)

    def run(self, function: Any, failing: bool = False, subset: bool = False) -> dict[str, Any]:
        """Call a function as the program says; what each call did, and what is left."""
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
                    found = [function(*values, output_subset=[place])[0] for place in places]
                else:
                    found = function(*values)
            except Exception as error:
                answers.append({"error": why(error)})
                continue
            answer: dict[str, Any] = {"outputs": [encoded(each) for each in found]}
            changed = [
                place
                for place, (old, new) in enumerate(zip(before, values))
                if not self.asked["free"][place] and repr(encoded(old)) != repr(encoded(new))
            ]
            if changed:
                answer["changed"] = changed
            answers.append(answer)
            kept.append((answer, found))
        if not self.asked["borrow"]:
            for answer, found in kept:
                now = [encoded(each) for each in found]
                if repr(now) != repr(answer["outputs"]):
                    answer["overwritten"] = now
        return {"calls": answers, "shared": self.shared()}

    def shared(self) -> list[Any]:
        """The shared variables' values."""
        return [encoded(self.names[name].get_value()) for name in self.asked["shared"]]

    def fail(self, function: Any, number: int) -> None:
        """Call a function so that it fails, as far as that changes no shared variable."""
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
        """The runs of all situations, by name."""
        runs = {"plain": self.run(self.function)}
        for name in self.asked["situations"]:
            self.restore()
            try:
                found = getattr(self, name)()
            except Exception as error:
                found = {"raised": why(error)}
            if found is not None:
                runs[name] = found
        return runs

    def copy(self) -> Any:
        """A copy, while the function itself is called too."""
        function = self.function.copy()
        found = self.run(function)
        self.restore()
        after = self.run(self.function)
        return found if repr(found) != repr(after) else after

    def copy_sharing(self) -> Any:
        """A copy that shares what is between calls."""
        return self.run(self.function.copy(share_memory=True))

    def swap(self) -> Any:
        """A copy on other shared variables of the same values."""
        swapped = {name: self.names[name] for name in self.asked["shared"]}
        if not swapped:
            return None
        others = {name: theano.shared(each.get_value(), name) for name, each in swapped.items()}
        function = self.function.copy(swap={swapped[name]: others[name] for name in swapped})
        before = self.shared()
        found = self.run(function)
        if repr(found["shared"]) != repr(before):
            return {"raised": "the copy changed the shared variable that was swapped out"}
        return {**found, "shared": [encoded(others[name].get_value()) for name in others]}

    def pickle(self) -> Any:
        """A function that was pickled."""
        return {**self.run(pickle.loads(pickle.dumps(self.function))), "shared": None}

    def deepcopy(self) -> Any:
        """A deep copy."""
        return {**self.run(copy.deepcopy(self.function)), "shared": None}

    def twice(self) -> Any:
        """A function compiled of the same graph made anew."""
        again = Task(self.asked)
        return again.run(again.function)

    def failing(self) -> Any:
        """Calls that fail between the others."""
        return self.run(self.function, failing=True)

    def trusting(self) -> Any:
        """Inputs are not checked."""
        self.function.trust_input = True
        try:
            # Of the right type they are all.
            return self.run(self.function)
        finally:
            self.function.trust_input = False

    def subset(self) -> Any:
        """Outputs asked for one by one."""
        return (
            None if self.asked["updates"] or self.initial else self.run(self.function, subset=True)
        )

    def threads(self) -> Any:
        """The function and a copy, called at once."""
        return None if self.initial else self.together(self.function, self.function.copy())

    def two_threads(self) -> Any:
        """Two functions of the same graph, called at once."""
        if self.initial:
            return None
        return self.together(self.function, Task(self.asked).function)

    def together(self, *functions: Any) -> Any:
        """Call functions at once in a thread each; the first run unlike a plain one."""
        plain = self.run(functions[0])
        runs: list[Any] = []

        def work(function: Any) -> None:
            runs.extend(self.run(function) for _ in range(ROUNDS))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=work, args=[each]) for each in functions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        return next((each for each in runs if repr(each) != repr(plain)), plain)


def reply(asked: dict[str, Any], logged: Logged) -> dict[str, Any]:
    """The answer to a program."""
    logged.lines = []
    try:
        task = Task(asked)
    except Exception as error:
        return {"refused": why(error), "logged": logged.lines}
    return {"runs": task.situations(), "logged": logged.lines}


def serve(questions: int, answers: int) -> None:
    """Answer programs until there are no more, or the process is old."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    logged = Logged()
    logging.getLogger("theano").addHandler(logged)
    with os.fdopen(questions) as asked, os.fdopen(answers, "w") as told:
        for _, line in zip(range(LIFE), asked):
            for timer, seconds in TIMERS.items():
                signal.setitimer(timer, seconds)
            text = json.dumps(reply(json.loads(line), logged))
            for timer in TIMERS:
                signal.setitimer(timer, 0)
            print(text, file=told, flush=True)


class Child:
    """The process that compiles and calls."""

    def __init__(self) -> None:
        asked, self._ask = os.pipe()
        self._hear, told = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.close(self._ask)
            os.close(self._hear)
            # What a program prints is no answer.
            os.dup2(2, 1)
            status = 1
            try:
                serve(asked, told)
                status = 0
            finally:
                os._exit(status)
        os.close(asked)
        os.close(told)
        self.questions = os.fdopen(self._ask, "w")
        self.answers = os.fdopen(self._hear)

    def ask(self, line: str) -> str:
        """The answer to a line; empty if the process ended."""
        try:
            self.questions.write(line)
            self.questions.flush()
        except BrokenPipeError:
            return ""
        return self.answers.readline()

    def end(self) -> int:
        """Wait for its end; its status, negative for a signal."""
        for stream in (self.questions, self.answers):
            try:
                stream.close()
            except BrokenPipeError:
                continue
        _, status = os.waitpid(self.process, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    """Pass lines on to a child, and its answers back."""
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
