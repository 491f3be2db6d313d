"""Worker process that compiles and calls programs with the environment's Theano.

The worker reads a question per line of standard input and writes an answer per line of standard
output, in JSON (``fuzz.program.Program.make_question``). A forked child compiles and calls, so that
the worker survives a crash or a hang and reports it. The child keeps compiled modules for the next
programs. An answer is one of:

- {"runs": {situation: run}, "logged": errors}
- {"refused": the exception of the compilation, "logged": errors}
- {"died": the name of the signal that ended the child, "exit STATUS", or "hangs"}

A run is {"calls": calls, "shared": the final values of the shared variables}. A call is {"outputs":
values} or {"error": the exception}. "logged" contains errors that Theano logged.
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

# The limit of the child's CPU time for one program, in seconds. The limit of the elapsed time is
# ten times as long, because the child waits for g++ and shares the processors.
LIMIT = int(os.environ.get("FUZZ_LIMIT", "60"))
TIMERS = {signal.ITIMER_PROF: LIMIT, signal.ITIMER_REAL: 10 * LIMIT}
EXPIRED = ("SIGPROF", "SIGALRM")
# The number of programs that a child runs before a new child replaces it.
LIFE = 400
# The number of runs of each thread.
ROUNDS = 4


def describe_error(error: BaseException) -> str:
    """Return the exception's type and message, at most 300 characters of the first line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


class Task:
    """A compiled program.

    A method with the name of a situation, such as ``copy``, runs the program in this situation. It
    returns the run, or None if the situation does not apply to the program.
    """

    def __init__(self, question: dict[str, Any]) -> None:
        self.question = question
        self.names: dict[str, Any] = {}
        exec(question["graph"], self.names)
        # The names that occur in the expressions of arguments.
        self.values = {**vars(layouts), "np": np}
        self.function = eval(question["function"], self.names)
        self.initial = [
            (variable, copy.deepcopy(variable.get_value(borrow=True)))
            for variable in self.function.get_shared()
        ]

    def make_arguments(self, number: int) -> list[Any]:
        """Return new arguments for the call ``number``; aliased arguments are one array."""
        arrays = [eval(text, self.values) for text in self.question["calls"][number]]
        for one, other in self.question["aliases"]:
            if (arrays[one].dtype, arrays[one].shape) == (arrays[other].dtype, arrays[other].shape):
                arrays[other] = arrays[one]
        return arrays

    def restore(self) -> None:
        """Reset shared variables to their initial values."""
        for variable, value in self.initial:
            variable.set_value(copy.deepcopy(value), borrow=True)

    def run(self, function: Any, failing: bool = False, subset: bool = False) -> dict[str, Any]:
        """Make all calls of the program with a function; return the run.

        Args:
            function: the compiled function, or a copy.
            failing: whether to make failing calls before each call.
            subset: whether to compute each output by a separate call.
        """
        calls: list[Any] = []
        successful_calls: list[tuple[Any, Any]] = []
        for number in range(len(self.question["calls"])):
            if failing:
                self.make_failing_calls(function, number)
            values = self.make_arguments(number)
            before = [value.copy() for value in values]
            try:
                if subset:
                    numbers = range(self.question["outputs"])
                    outputs = [function(*values, output_subset=[output])[0] for output in numbers]
                else:
                    outputs = function(*values)
            except Exception as error:
                calls.append({"error": describe_error(error)})
                continue
            call: dict[str, Any] = {"outputs": [encode(output) for output in outputs]}
            changed = [
                position
                for position, (old, new) in enumerate(zip(before, values))
                if not self.question["free"][position] and repr(encode(old)) != repr(encode(new))
            ]
            if changed:
                call["changed"] = changed
            calls.append(call)
            successful_calls.append((call, outputs))
        if not self.question["borrow"]:
            for call, outputs in successful_calls:
                final_outputs = [encode(output) for output in outputs]
                if repr(final_outputs) != repr(call["outputs"]):
                    call["overwritten"] = final_outputs
        return {"calls": calls, "shared": self.encode_shared()}

    def encode_shared(self) -> list[Any]:
        """Return the encoded values of the shared variables."""
        return [encode(self.names[name].get_value()) for name in self.question["shared"]]

    def make_failing_calls(self, function: Any, number: int) -> None:
        """Make calls with wrong arguments, and ignore their exceptions.

        The arguments have one more dimension, or one argument is missing. If the function has no
        shared variable that the call could change, the first argument also has one more row.
        """
        values = self.make_arguments(number)
        if not values:
            return
        attempts = [[value[None] for value in values], values[1:]]
        if not self.question["updates"] and not self.initial:
            attempts.append(
                [np.concatenate([v, v[:1]]) if v.ndim else v for v in values[:1]] + values[1:]
            )
        for attempt in attempts:
            try:
                function(*attempt)
            except Exception:
                continue

    def run_situations(self) -> dict[str, Any]:
        """Run the program in all situations of the question; map each situation to its run."""
        runs = {"plain": self.run(self.function)}
        for name in self.question["situations"]:
            self.restore()
            try:
                run = getattr(self, name)()
            except Exception as error:
                run = {"raised": describe_error(error)}
            if run is not None:
                runs[name] = run
        return runs

    def copy(self) -> Any:
        """Call the original function, a copy, and the original again; return the copy's run."""
        first_run = self.run(self.function)
        self.restore()
        copy_run = self.run(self.function.copy())
        self.restore()
        if repr(self.run(self.function)) != repr(first_run):
            return {"raised": "the copy changed the results of the original function"}
        return copy_run

    def copy_sharing(self) -> Any:
        """Call a copy that shares intermediate storage with the function."""
        return self.run(self.function.copy(share_memory=True))

    def swap(self) -> Any:
        """Call a copy in which new variables with equal values replace the shared variables."""
        swapped = {name: self.names[name] for name in self.question["shared"]}
        if not swapped:
            return None
        new_variables = {
            name: theano.shared(variable.get_value(), name) for name, variable in swapped.items()
        }
        function = self.function.copy(swap={swapped[name]: new_variables[name] for name in swapped})
        before = self.encode_shared()
        run = self.run(function)
        if repr(run["shared"]) != repr(before):
            return {"raised": "the copy changed the shared variable that was swapped out"}
        shared = [encode(variable.get_value()) for variable in new_variables.values()]
        return {**run, "shared": shared}

    def pickle(self) -> Any:
        """Call a pickled and unpickled copy, whose shared variables are copies too."""
        return {**self.run(pickle.loads(pickle.dumps(self.function))), "shared": None}

    def deepcopy(self) -> Any:
        """Call a deep copy, whose shared variables are copies too."""
        return {**self.run(copy.deepcopy(self.function)), "shared": None}

    def twice(self) -> Any:
        """Call a second function, compiled from a new graph of the same program."""
        task = Task(self.question)
        return task.run(task.function)

    def failing(self) -> Any:
        """Call the function, with failing calls before each call."""
        return self.run(self.function, failing=True)

    def trusting(self) -> Any:
        """Call the function with trust_input, so that it does not check inputs."""
        self.function.trust_input = True
        try:
            # This is safe, because all arguments have the correct type.
            return self.run(self.function)
        finally:
            self.function.trust_input = False

    def subset(self) -> Any:
        """Compute each output in a separate call."""
        return (
            None
            if self.question["updates"] or self.initial
            else self.run(self.function, subset=True)
        )

    def threads(self) -> Any:
        """Call the function and a copy at the same time."""
        return None if self.initial else self.run_in_threads(self.function, self.function.copy())

    def two_threads(self) -> Any:
        """Call two functions of the same program at the same time."""
        if self.initial:
            return None
        return self.run_in_threads(self.function, Task(self.question).function)

    def run_in_threads(self, *functions: Any) -> Any:
        """Call functions at the same time, each in a thread.

        Return the first run that differs from a run without threads; the exception of a thread is
        such a run. If none differs, return the run without threads.
        """
        plain = self.run(functions[0])
        runs: list[Any] = []

        def work(function: Any) -> None:
            try:
                runs.extend(self.run(function) for _ in range(ROUNDS))
            # Without this run, the result would equal the run without threads.
            except Exception as error:
                runs.append({"raised": describe_error(error)})

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


def reply(question: dict[str, Any], logged: LoggedFailures) -> dict[str, Any]:
    """Compile and run a program; return the answer. ``logged`` collects Theano's errors."""
    logged.lines = []
    try:
        task = Task(question)
    except Exception as error:
        return {"refused": describe_error(error), "logged": logged.lines}
    return {"runs": task.run_situations(), "logged": logged.lines}


def serve(questions: int, answers: int) -> None:
    """Answer at most LIFE questions, until the pipe ends.

    ``questions`` and ``answers`` are the file descriptors of two pipes.
    """
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with (
        LoggedFailures() as logged,
        os.fdopen(questions) as question_stream,
        os.fdopen(answers, "w") as answer_stream,
    ):
        for _, line in zip(range(LIFE), question_stream):
            for timer, seconds in TIMERS.items():
                signal.setitimer(timer, seconds)
            text = json.dumps(reply(json.loads(line), logged))
            for timer in TIMERS:
                signal.setitimer(timer, 0)
            print(text, file=answer_stream, flush=True)


class Child:
    """A forked process that compiles and calls, and the pipes to it."""

    def __init__(self) -> None:
        question_reader, question_writer = os.pipe()
        answer_reader, answer_writer = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.close(question_writer)
            os.close(answer_reader)
            # Redirect the output of programs to standard error: standard output has the answers.
            os.dup2(2, 1)
            status = 1
            try:
                serve(question_reader, answer_writer)
                status = 0
            finally:
                os._exit(status)
        os.close(question_reader)
        os.close(answer_writer)
        self.questions = os.fdopen(question_writer, "w")
        self.answers = os.fdopen(answer_reader)

    def ask(self, line: str) -> str:
        """Send the line of a question; return the answer's line, or "" if the process ended."""
        try:
            self.questions.write(line)
            self.questions.flush()
        except BrokenPipeError:
            return ""
        return self.answers.readline()

    def end(self) -> int:
        """Close the pipes and wait for the process; return its exit status, or -SIGNAL."""
        for stream in (self.questions, self.answers):
            try:
                stream.close()
            except BrokenPipeError:
                continue
        _, status = os.waitpid(self.process, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    """Pass the questions of standard input to a child, and print its answers."""
    child = Child()
    count = 0
    for line in sys.stdin:
        if count == LIFE:
            child.end()
            child, count = Child(), 0
        answer = child.ask(line)
        count += 1
        if not answer:
            status = child.end()
            name = signal.Signals(-status).name if status < 0 else f"exit {status}"
            answer = json.dumps({"died": "hangs" if name in EXPIRED else name}) + "\n"
            child, count = Child(), 0
        sys.stdout.write(answer)
        sys.stdout.flush()
    child.end()


if __name__ == "__main__":
    main()
