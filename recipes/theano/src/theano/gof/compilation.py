"""Several modules in one run of g++, and several runs at once."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import StringIO
from typing import Any, Self, TextIO

from theano import config
from theano.compat import decode
from theano.gof import cmodule
from theano.misc.windows import output_subprocess_Popen

_logger = logging.getLogger("theano.gof.cmodule")

# What compile_str takes for a module, by parameter.
Arguments = dict[str, Any]


class ModuleParts:
    """What a DynamicModule, which derives from this, has its code put together from."""

    # A DynamicModule's own.
    code_hash: str
    hash_placeholder: str
    includes: list[str]
    support_code: list[str]
    functions: list[Any]
    print_methoddef: Callable[[TextIO], None]
    print_init: Callable[[TextIO], None]
    # Whether it is compiled in a run of its own: beside other modules' code, its own can mean
    # something else.
    alone = False

    def include_lines(self) -> list[str]:
        """Return the lines that include headers, with <iostream> only where code names `std`."""
        includes = list(self.includes)
        # It has as many lines as all other headers.
        if any(
            re.search(r"\bstd\b", code)
            for code in [*self.support_code, *(each.code_block for each in self.functions)]
        ):
            includes.insert(1, "<iostream>")
        return [
            "#include " + (include if include[0] in '<"' else f'"{include}"')
            for include in includes
            if include
        ]

    def print_functions(self, stream: TextIO) -> None:
        """Write the code of the functions, and of what makes them a module, to a stream."""
        print("//////////////////////", file=stream)
        print("////  Functions", file=stream)
        print("//////////////////////", file=stream)
        for function in self.functions:
            print(function.code_block, file=stream)

        print("//////////////////////", file=stream)
        print("////  Module init", file=stream)
        print("//////////////////////", file=stream)
        self.print_methoddef(stream)
        self.print_init(stream)

    @staticmethod
    def merged_code(modules: Iterable[ModuleParts]) -> str:
        """Return one source for several finalized modules.

        What is outside of functions stands there once, as in a module of several ops; each module's
        functions are in a namespace of their own.
        """
        includes: list[str] = []
        support_code: list[str] = []
        functions: list[str] = []
        for number, module in enumerate(modules):
            sio = StringIO()
            module.print_functions(sio)
            includes.extend(module.include_lines())
            support_code.extend(
                code.replace(module.hash_placeholder, module.code_hash)
                for code in module.support_code
            )
            code = sio.getvalue().replace(module.hash_placeholder, module.code_hash)
            functions.append(f"namespace module_{number} {{\n{code}}}")
        return "\n".join([*dict.fromkeys(includes), *dict.fromkeys(support_code), *functions])

    def macros_left(self) -> tuple[str, ...]:
        """Return the support code up to the last macro that it leaves defined.

        The macro would change code after it, but for that of modules whose own support code begins
        the same. That of Theano's own macros is the same wherever it stands.
        """
        define = re.compile(
            r"^[ \t]*#[ \t]*(?:ifndef[ \t]+(\w+)\s*#[ \t]*)?define[ \t]+(\w+)", re.MULTILINE
        )
        undefined = re.findall(
            r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", "\n".join(self.support_code), re.MULTILINE
        )
        end = 0
        for number, code in enumerate(self.support_code):
            if any(
                name not in {guard, *undefined} and not name.startswith("THEANO_MACRO_")
                for guard, name in define.findall(code)
            ):
                end = number + 1
        return tuple(self.support_code[:end])


# The runs of the compiler that were started before their module was asked for, by the module's
# name.
compilations: dict[str, Compilation] = {}


class Compilation:
    """A run of the compiler in another thread, for one module or several."""

    def __init__(self, executor: ThreadPoolExecutor, cmd: list[str], lib_filename: str) -> None:
        self.lib_filename = lib_filename
        self.told = False
        # Standard output and error, and the exit status.
        self.future: Future[tuple[bytes, bytes, int]] = executor.submit(
            output_subprocess_Popen, cmd
        )

    def wait(self, lib_filename: str) -> tuple[bytes, bytes, int]:
        """Put the library of a run that succeeds at `lib_filename`.

        Returns:
            what the run wrote to standard output and standard error, and its exit status.
        """
        p_out = self.future.result()
        if p_out[2] == 0:
            # The second module's library is the first one's: they share its place on the disk and
            # in memory.
            try:
                os.link(self.lib_filename, lib_filename)
            except OSError:
                shutil.copy(self.lib_filename, lib_filename)
                self.lib_filename = lib_filename
        return p_out

    def tell_once(self) -> None:
        """Warn that modules compile alone, and not together: it costs time."""
        if not self.told:
            self.told = True
            _logger.warning(
                "g++ did not compile several modules in one run, so that each takes a run of its "
                "own: %s",
                decode(self.future.result()[1]).strip(),
            )


class CompilationPool:
    """Compile modules ahead of need, several at once and several in one run.

    When it is left, runs that have not begun are given up.
    """

    # A run takes as long for the headers as for some modules; but the first module asked for waits
    # for the whole run.
    some_in_a_run = 32

    def __enter__(self) -> Self:
        self.jobs: int = config.cmodule.jobs or len(os.sched_getaffinity(0))
        self.names: set[str] = set()
        return self

    def compile(self, modules: Iterable[tuple[ModuleParts, Arguments]]) -> None:
        """Start to compile modules.

        Args:
            modules: DynamicModules, each with compile_str's arguments for it.
        """
        if not self.names:
            self.executor = ThreadPoolExecutor(self.jobs)
            self.directory = tempfile.TemporaryDirectory(prefix="theano-")
        alike: dict[Any, list[tuple[ModuleParts, Arguments]]] = {}
        for module, arguments in modules:
            # The same code can have several keys.
            if module.code_hash not in self.names:
                self.names.add(module.code_hash)
                kind = (
                    type(module),
                    tuple(self.compiler_flags(arguments)),
                    module.macros_left(),
                    module.code_hash if module.alone else None,
                )
                alike.setdefault(kind, []).append((module, arguments))
        for group in alike.values():
            rounds = max(1, round(len(group) / (self.jobs * self.some_in_a_run)))
            for run in self.balanced(group, min(self.jobs * rounds, len(group))):
                self.start(run)

    @staticmethod
    def balanced(
        modules: Iterable[tuple[ModuleParts, Arguments]], number: int
    ) -> list[list[tuple[ModuleParts, Arguments]]]:
        """Return modules in a number of runs, each with about as much code."""
        runs: list[list[tuple[ModuleParts, Arguments]]] = [[] for _ in range(number)]
        sizes = [0] * number
        for module, arguments in sorted(
            modules, key=lambda each: len(each[1]["src_code"]), reverse=True
        ):
            least = sizes.index(min(sizes))
            runs[least].append((module, arguments))
            sizes[least] += len(arguments["src_code"])
        return runs

    @staticmethod
    def compiler_flags(arguments: Arguments) -> list[str]:
        """Return the flags among compile_str's arguments, but for those of the linker."""
        return [flag for flag in arguments["preargs"] if not flag.startswith("-Wl,")]

    def start(self, modules: Sequence[tuple[ModuleParts, Arguments]]) -> None:
        """Start a run of the compiler for modules that have the same flags of the compiler.

        Those of the linker may differ: it links with the libraries of all of them.
        """
        names = [module.code_hash for module, _ in modules]
        location = tempfile.mkdtemp(dir=self.directory.name)
        arguments = dict(
            modules[0][1], src_code=ModuleParts.merged_code([module for module, _ in modules])
        )
        for key in ("include_dirs", "lib_dirs", "libs"):
            arguments[key] = list(dict.fromkeys(each for _, own in modules for each in own[key]))
        linker_flags = dict.fromkeys(
            flag for _, own in modules for flag in own["preargs"] if flag.startswith("-Wl,")
        )
        arguments["preargs"] = [*self.compiler_flags(arguments), *linker_flags]
        cmd, lib_filename = cmodule.GCC_compiler.write_source(location=location, **arguments)
        compilation = Compilation(self.executor, cmd, lib_filename)
        compilations.update((name, compilation) for name in names)

    def __exit__(self, *exc_info: object) -> None:
        if self.names:
            for name in self.names:
                compilations.pop(name, None)
            self.executor.shutdown(cancel_futures=True)
            self.directory.cleanup()
