"""Parallel runs of g++ that compile a batch of modules each."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Self, TextIO

from theano import config
from theano.compat import decode
from theano.gof import cmodule
from theano.misc.windows import output_subprocess_Popen

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_logger = logging.getLogger("theano.gof.cmodule")

# The keyword arguments of GCC_compiler.compile_str for a module.
Arguments = dict[str, Any]
# Support code that only defines static strings: the sources of GPU kernels (GpuKernelBase).
STRINGS = re.compile(
    r'(?:\s*static const char \*\w+ = (?:\(char \*\)\w+|"(?:[^"\\]|\\.)*+");)++\s*', re.DOTALL
)


class ModuleParts:
    """Base class of cmodule.DynamicModule that writes the source of one or several modules."""

    # DynamicModule sets these attributes.
    code_hash: str
    hash_placeholder: str
    includes: list[str]
    support_code: list[str]
    functions: list[Any]
    print_methoddef: Callable[[TextIO], None]
    print_init: Callable[[TextIO], None]
    # Whether g++ must compile the module in a run without other modules, because macros and
    # functions of one module could change the meaning of the other module's code.
    alone = False

    def make_include_lines(self) -> list[str]:
        """Return the #include lines, with <iostream> only if the code names `std`."""
        includes = list(self.includes)
        # Omit <iostream> if possible, because it has as many lines as all other headers together.
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
    def merge_code(modules: Iterable[ModuleParts]) -> str:
        """Return one source for several finalized modules.

        Equal headers and equal pieces of support code occur once, as in the source of one module
        of several ops. The functions of each module are in a separate namespace. The sources of the
        module's kernels are in this namespace too, because different kernels may have equal names.
        """
        includes: list[str] = []
        support_code: list[str] = []
        functions: list[str] = []
        for number, module in enumerate(modules):
            sio = StringIO()
            module.print_functions(sio)
            includes.extend(module.make_include_lines())
            own_pieces = module.select_own_pieces()
            own_code = "\n".join([*own_pieces, sio.getvalue()])
            support_code.extend(
                piece.replace(module.hash_placeholder, module.code_hash)
                for piece in module.support_code
                if piece not in own_pieces
            )
            own_code = own_code.replace(module.hash_placeholder, module.code_hash)
            functions.append(f"namespace module_{number} {{\n{own_code}}}")
        return "\n".join([*dict.fromkeys(includes), *dict.fromkeys(support_code), *functions])

    def select_own_pieces(self) -> list[str]:
        """Return the pieces of support code that merge_code puts into the module's namespace.

        These are the sources of kernels and the struct that uses them.
        """
        strings = [piece for piece in self.support_code if STRINGS.fullmatch(piece)]
        structs = [piece for piece in self.support_code if "__struct_compiled_op_" in piece]
        return [*dict.fromkeys(strings), *structs] if any(strings) else []

    def shared_prefix(self) -> tuple[str, ...]:
        """Return the pieces of support code up to the last piece that leaves a macro defined.

        Modules can share a source only if these pieces are equal. Otherwise, the macro of one
        module could change the code of another module. Include guards are ignored. Theano's own
        macros (THEANO_MACRO_*) are ignored too, because all modules define them in the same way.
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


# Maps a module's name to the early run of g++ that compiles it. An early run starts before Theano
# needs the module.
compilations: dict[str, Compilation] = {}


class Compilation:
    """A run of g++ in another thread that compiles one or several modules.

    Attributes:
        lib_filename: the path of the library that g++ writes.
        warned: whether warn_once has logged its warning.
        future: the standard output, standard error and exit status of g++.
    """

    def __init__(self, executor: ThreadPoolExecutor, cmd: list[str], lib_filename: str) -> None:
        self.lib_filename = lib_filename
        self.warned = False
        self.future: Future[tuple[bytes, bytes, int]] = executor.submit(
            output_subprocess_Popen, cmd
        )

    def wait(self, lib_filename: str) -> tuple[bytes, bytes, int]:
        """Wait for the run; if it succeeds, link or copy its library to `lib_filename`.

        Returns:
            The run's standard output, standard error and exit status.
        """
        p_out = self.future.result()
        if p_out[2] == 0:
            # With a hard link, the modules of one run share the library on disk and in memory.
            try:
                os.link(self.lib_filename, lib_filename)
            except OSError:
                shutil.copy(self.lib_filename, lib_filename)
                # The next modules can be links to the copy.
                self.lib_filename = lib_filename
        return p_out

    def warn_once(self) -> None:
        """Warn that each module of this run now needs a separate run; warn once per run."""
        if not self.warned:
            self.warned = True
            _logger.warning(
                "g++ could not compile several modules in one run; each module is compiled in a "
                "separate run, which takes longer: %s",
                decode(self.future.result()[1]).strip(),
            )


def run(cmd: list[str], lib_filename: str, module_name: str) -> tuple[bytes, bytes, int]:
    """Compile a module: wait for its early run, or run a command if there is none.

    If the early run fails, the command compiles this module alone. It succeeds if the cause was
    another module of the early run. Otherwise it shows the errors of this module only.

    Args:
        cmd: the command of g++ that compiles this module alone.
        lib_filename: the path for the module's library.
        module_name: the module's key in `compilations`.

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


def count_jobs() -> int:
    """Return the largest number of parallel runs of g++: the flag cmodule.jobs, or the CPUs."""
    return config.cmodule.jobs or len(os.sched_getaffinity(0))


class CompilationPool:
    """Compile modules before Theano needs them, in parallel runs of g++ with several modules each.

    Leaving the context cancels the runs that have not started.

    Attributes:
        nice: the number that is added to the nice value of g++; a greater number lowers the
            priority.
        jobs: the largest number of parallel runs.
        names: the names of the modules whose compilation was requested.
        runs: all runs of the pool.
    """

    # With more modules per run, g++ reads the headers less often. But Theano waits for a whole run
    # as soon as it needs one of the run's modules.
    modules_per_run = 32

    def __init__(self, nice: int = 0) -> None:
        self.nice = nice

    def __enter__(self) -> Self:
        self.jobs = count_jobs()
        self.names: set[str] = set()
        self.runs: list[Compilation] = []
        return self

    def wait_for_run(self) -> None:
        """Wait until a run ends; return at once if all runs have ended."""
        from concurrent import futures  # noqa: PLC0415, see compile

        running = [run.future for run in self.runs if not run.future.done()]
        if running:
            futures.wait(running, return_when=futures.FIRST_COMPLETED)

    def compile(self, modules: Iterable[tuple[ModuleParts, Arguments]]) -> None:
        """Start to compile modules.

        Args:
            modules: pairs of a DynamicModule and compile_str's arguments for it.
        """
        if not self.names:
            # A process that finds all modules in the cache does not import concurrent.futures.
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

            # On Linux, each thread has its own nice value, which the processes that it starts
            # inherit.
            self.executor = ThreadPoolExecutor(
                self.jobs, initializer=os.nice, initargs=(self.nice,)
            )
            self.directory = tempfile.TemporaryDirectory(prefix="theano-")
        groups: dict[Any, list[tuple[ModuleParts, Arguments]]] = {}
        for module, arguments in modules:
            # Modules with different keys can have the same code: compile it once.
            if module.code_hash not in self.names:
                self.names.add(module.code_hash)
                group_key = (
                    type(module),
                    tuple(self.select_compiler_flags(arguments)),
                    module.shared_prefix(),
                    module.code_hash if module.alone else None,
                )
                groups.setdefault(group_key, []).append((module, arguments))
        for group in groups.values():
            rounds = max(1, round(len(group) / (self.jobs * self.modules_per_run)))
            for batch in self.split_evenly(group, min(self.jobs * rounds, len(group))):
                self.start(batch)

    @staticmethod
    def split_evenly(
        modules: Iterable[tuple[ModuleParts, Arguments]], n_batches: int
    ) -> list[list[tuple[ModuleParts, Arguments]]]:
        """Split modules into n_batches batches with about the same amount of code."""
        batches: list[list[tuple[ModuleParts, Arguments]]] = [[] for _ in range(n_batches)]
        sizes = [0] * n_batches
        for module, arguments in sorted(
            modules, key=lambda pair: len(pair[1]["src_code"]), reverse=True
        ):
            smallest = sizes.index(min(sizes))
            batches[smallest].append((module, arguments))
            sizes[smallest] += len(arguments["src_code"])
        return batches

    @staticmethod
    def select_compiler_flags(arguments: Arguments) -> list[str]:
        """Return the flags among compile_str's arguments, without the linker's flags."""
        return [flag for flag in arguments["preargs"] if not flag.startswith("-Wl,")]

    def start(self, modules: Sequence[tuple[ModuleParts, Arguments]]) -> None:
        """Start one run of g++ for modules with equal compiler flags.

        The run uses the libraries and linker flags of all modules.
        """
        names = [module.code_hash for module, _ in modules]
        location = tempfile.mkdtemp(dir=self.directory.name)
        arguments = dict(
            modules[0][1], src_code=ModuleParts.merge_code([module for module, _ in modules])
        )
        for key in ("include_dirs", "lib_dirs", "libs"):
            arguments[key] = list(
                dict.fromkeys(
                    name for _, module_arguments in modules for name in module_arguments[key]
                )
            )
        linker_flags = dict.fromkeys(
            flag
            for _, module_arguments in modules
            for flag in module_arguments["preargs"]
            if flag.startswith("-Wl,")
        )
        arguments["preargs"] = [*self.select_compiler_flags(arguments), *linker_flags]
        cmd, lib_filename = cmodule.GCC_compiler.write_source(location=location, **arguments)
        compilation = Compilation(self.executor, cmd, lib_filename)
        self.runs.append(compilation)
        compilations.update((name, compilation) for name in names)

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the runs that have not started, wait for the others, and remove all files."""
        if self.names:
            for name in self.names:
                compilations.pop(name, None)
            self.executor.shutdown(cancel_futures=True)
            self.directory.cleanup()
