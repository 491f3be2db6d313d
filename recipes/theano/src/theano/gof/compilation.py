"""Parallel runs of g++, each for a batch of modules."""

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

# The arguments of compile_str for a module, by name.
Arguments = dict[str, Any]


class ModuleParts:
    """Base class of DynamicModule that assembles the source of one module or of several."""

    # DynamicModule sets these.
    code_hash: str
    hash_placeholder: str
    includes: list[str]
    support_code: list[str]
    functions: list[Any]
    print_methoddef: Callable[[TextIO], None]
    print_init: Callable[[TextIO], None]
    # Whether the module needs a separate run, because other code in the source could change the
    # meaning of its code.
    alone = False

    def include_lines(self) -> list[str]:
        """Return the #include lines, with <iostream> only if the code names `std`."""
        includes = list(self.includes)
        # <iostream> has as many lines as all other headers together.
        function_code = [function.code_block for function in self.functions]
        if any(re.search(r"\bstd\b", code) for code in [*self.support_code, *function_code]):
            includes.insert(1, "<iostream>")
        return [
            "#include " + (include if include[0] in '<"' else f'"{include}"')
            for include in includes
            if include
        ]

    def print_functions(self, stream: TextIO) -> None:
        """Write the code of the functions and of the module's initialization to a stream."""
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

        Equal headers and support code occur once, as in a module of several ops. The functions of
        each module have a separate namespace.
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

    def shared_prefix(self) -> tuple[str, ...]:
        """Return the leading code that all modules of one source must share.

        This is the support code up to the last macro that stays defined, because such a macro would
        change the code of a module with other support code. Theano's own macros do not count,
        because all modules define them in the same way.
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


# Maps a module's name to the run of g++ that compiles it and started before the module was needed.
compilations: dict[str, Compilation] = {}


class Compilation:
    """A run of g++ in another thread, for one module or several."""

    def __init__(self, executor: ThreadPoolExecutor, cmd: list[str], lib_filename: str) -> None:
        self.lib_filename = lib_filename
        self.warned = False
        # Standard output, standard error, exit status.
        self.future: Future[tuple[bytes, bytes, int]] = executor.submit(
            output_subprocess_Popen, cmd
        )

    def wait(self, lib_filename: str) -> tuple[bytes, bytes, int]:
        """Wait for the run; if it succeeds, put its library at `lib_filename`.

        Returns:
            The run's standard output, standard error and exit status.
        """
        p_out = self.future.result()
        if p_out[2] == 0:
            # A hard link: the modules of one run share the library on disk and in memory.
            try:
                os.link(self.lib_filename, lib_filename)
            except OSError:
                shutil.copy(self.lib_filename, lib_filename)
                self.lib_filename = lib_filename
        return p_out

    def warn_once(self) -> None:
        """Warn, once for this run, that each of its modules now needs a separate run."""
        if not self.warned:
            self.warned = True
            _logger.warning(
                "g++ could not compile several modules in one run; each module is compiled in a "
                "separate run, which takes longer: %s",
                decode(self.future.result()[1]).strip(),
            )


def run(cmd: list[str], lib_filename: str, module_name: str) -> tuple[bytes, bytes, int]:
    """Run a command that compiles a module, or wait for the module's run that started early.

    If the early run failed, a run for this module alone shows its errors, or succeeds.

    Args:
        cmd: the command.
        lib_filename: the library that the command writes.
        module_name: the key in `compilations`.

    Returns:
        The run's standard output, standard error and exit status.
    """
    early_run = compilations.pop(module_name, None)
    result = early_run.wait(lib_filename) if early_run else None
    if result is None or result[2]:
        result = output_subprocess_Popen(cmd)
        if early_run and not result[2]:
            early_run.warn_once()
    return result


class CompilationPool:
    """Compile modules before they are needed: parallel runs of g++ with several modules each.

    Leaving the context cancels the runs that have not started.
    """

    # More modules in a run save time for reading headers, but the first module that is needed
    # waits for the whole run.
    modules_per_run = 32

    def __enter__(self) -> Self:
        self.jobs: int = config.cmodule.jobs or len(os.sched_getaffinity(0))
        self.names: set[str] = set()
        return self

    def compile(self, modules: Iterable[tuple[ModuleParts, Arguments]]) -> None:
        """Start to compile modules.

        Args:
            modules: pairs of a DynamicModule and compile_str's arguments for it.
        """
        if not self.names:
            self.executor = ThreadPoolExecutor(self.jobs)
            self.directory = tempfile.TemporaryDirectory(prefix="theano-")
        groups: dict[Any, list[tuple[ModuleParts, Arguments]]] = {}
        for module, arguments in modules:
            # Several keys can have the same code.
            if module.code_hash not in self.names:
                self.names.add(module.code_hash)
                kind = (
                    type(module),
                    tuple(self.compiler_flags(arguments)),
                    module.shared_prefix(),
                    module.code_hash if module.alone else None,
                )
                groups.setdefault(kind, []).append((module, arguments))
        for group in groups.values():
            rounds = max(1, round(len(group) / (self.jobs * self.modules_per_run)))
            for batch in self.split_evenly(group, min(self.jobs * rounds, len(group))):
                self.start(batch)

    @staticmethod
    def split_evenly(
        modules: Iterable[tuple[ModuleParts, Arguments]], number: int
    ) -> list[list[tuple[ModuleParts, Arguments]]]:
        """Split modules into a number of batches with about the same amount of code."""
        runs: list[list[tuple[ModuleParts, Arguments]]] = [[] for _ in range(number)]
        sizes = [0] * number
        for module, arguments in sorted(
            modules, key=lambda pair: len(pair[1]["src_code"]), reverse=True
        ):
            least = sizes.index(min(sizes))
            runs[least].append((module, arguments))
            sizes[least] += len(arguments["src_code"])
        return runs

    @staticmethod
    def compiler_flags(arguments: Arguments) -> list[str]:
        """Return the flags among compile_str's arguments, without the linker's flags."""
        return [flag for flag in arguments["preargs"] if not flag.startswith("-Wl,")]

    def start(self, modules: Sequence[tuple[ModuleParts, Arguments]]) -> None:
        """Start one run of g++ for modules with equal compiler flags.

        The libraries and linker flags may differ: the run uses the libraries and linker flags of
        all modules.
        """
        names = [module.code_hash for module, _ in modules]
        location = tempfile.mkdtemp(dir=self.directory.name)
        arguments = dict(
            modules[0][1], src_code=ModuleParts.merged_code([module for module, _ in modules])
        )
        for key in ("include_dirs", "lib_dirs", "libs"):
            arguments[key] = list(dict.fromkeys(name for _, own in modules for name in own[key]))
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
