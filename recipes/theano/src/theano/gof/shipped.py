"""Shipped modules, which an environment contains from the start: lookup and compilation.

The modules of ops such as Dot22 or Softmax are the same in all programs. The directory that the
flag `cmodule.shipped` names can contain them, compiled for several levels of x86-64 processors. The
index of a level, the file LEVEL.json, maps the name of each module to its library. The name is a
hash of everything on which the module depends, except the processor.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from theano import config
from theano.gof import cmodule, module_files
from theano.gof.utils import hash_from_code
from theano.misc import cpu
from theano.misc.windows import output_subprocess_Popen

if TYPE_CHECKING:
    from theano.gof.cc import CLinker
    from theano.gof.compilation import Arguments, ModuleParts

# The processor levels (theano.misc.cpu) for which modules are shipped, highest first.
LEVELS = ("avx512", "fma")
# Flags that only select g++'s warnings. -Wa, -Wl and -Wp pass options to other programs.
WARNINGS = re.compile(r"-w|-W(?![alp],).*")


@functools.cache
def hash_headers() -> str:
    """Hash the headers in theano/gof/c_code."""
    paths = sorted((Path(__file__).parent / "c_code").glob("*.h"))
    headers: str = hash_from_code("".join(path.read_text() for path in paths))
    return headers


@functools.cache
def select_relevant_flags(preargs: tuple[str, ...]) -> list[str]:
    """Return g++'s flags without the flags for warnings and for a processor."""
    march = cmodule.GCC_compiler.march_flags
    return [flag for flag in preargs if flag not in march and not WARNINGS.fullmatch(flag)]


def hash_module(code: str, flags: Iterable[str], *libraries: Iterable[str]) -> str:
    """Return the name of a compiled module: a hash. Modules with equal names are interchangeable.

    Args:
        code: the source, or a hash of it.
        flags: g++'s flags.
        libraries: lists such as libraries, library directories and header directories.
    """
    dependencies = [
        code,
        hash_headers(),
        np.__version__,
        # Do not call sysconfig: in a read-only environment, its data may have no bytecode, and each
        # process would compile it.
        EXTENSION_SUFFIXES[0],
        select_relevant_flags(tuple(flags)),
        *libraries,
    ]
    name: str = hash_from_code(json.dumps(dependencies).replace(sys.base_prefix, ""))
    return name


def name_module(module: ModuleParts, arguments: Arguments) -> str:
    """Return the name of a DynamicModule in the index.

    Args:
        module: the module.
        arguments: compile_str's arguments for the module.
    """
    libraries = [arguments[key] for key in ("include_dirs", "lib_dirs", "libs")]
    return hash_module(module.code_hash, arguments["preargs"], *libraries)


def find_level_file(suffix: str) -> Path | None:
    """Return the path of the shipped file LEVEL + suffix for the highest level of this processor.

    Return None if there is no such file.
    """
    cmodule.GCC_compiler.compile_args()
    flags = cmodule.GCC_compiler.march_flags or ()
    for level in LEVELS:
        path = Path(config.cmodule.shipped, level + suffix)
        if (
            config.cmodule.shipped
            and set(cpu.list_level_flags(level)) <= {*flags}
            and path.exists()
        ):
            return path
    return None


@functools.cache
def read_index() -> dict[str, str]:
    """Read the index for this processor: module names and the paths of their libraries."""
    path = find_level_file(".json")
    if path is None:
        return {}
    libraries = json.loads(path.read_text())
    return {name: str(path.parent / library) for name, library in libraries.items()}


def find_module(module: ModuleParts, arguments: Arguments) -> ModuleType | None:
    """Load the shipped module for a DynamicModule; return None if there is none.

    Args:
        module: the DynamicModule, which would otherwise be compiled.
        arguments: compile_str's arguments for the module.
    """
    path = read_index() and read_index().get(name_module(module, arguments))
    if not path:
        return None
    # A library contains several modules. The hash of a module's code is its name in the library.
    return module_files.import_library(module.code_hash, path)


def write_modules(linkers: Iterable[CLinker], level: str, directory: str) -> None:
    """Compile the modules of linkers for a level of processors, and write the level's index.

    The modules are not loaded, because this machine's processor may be of a lower level.

    Args:
        linkers: the linkers of the nodes whose modules are shipped.
        level: one of LEVELS.
        directory: the directory for the libraries and the index, LEVEL.json.

    Raises:
        RuntimeError: g++ failed.
    """
    select_level(level)
    # One library for all modules with equal arguments of compile_str and an equal shared_prefix.
    # Maps these arguments and the prefix, as JSON, to the library's name, the arguments, and the
    # modules of the library.
    groups: dict[str, tuple[str, Arguments, list[ModuleParts]]] = {}
    names: dict[str, str] = {}
    for linker in linkers:
        arguments = linker.make_compile_arguments()
        module = linker.get_dynamic_module()
        name = name_module(module, arguments)
        if name not in names:
            del arguments["module_name"], arguments["src_code"]
            group = json.dumps([arguments, module.shared_prefix()], sort_keys=True)
            library = f"{level}-{len(groups)}.so"
            names[name], _, modules = groups.setdefault(group, (library, arguments, []))
            modules.append(module)
    for library, arguments, modules in groups.values():
        arguments["src_code"] = cmodule.DynamicModule.merge_code(modules)
        compile_library(arguments, Path(directory, library))
    with Path(directory, f"{level}.json").open("w") as file:
        json.dump(names, file, indent=0, sort_keys=True)


def select_level(level: str) -> None:
    """Let this process compile for a level of processors."""
    cmodule.GCC_compiler.march_flags = cpu.list_level_flags(level)
    select_relevant_flags.cache_clear()


def compile_library(arguments: Arguments, library: Path) -> None:
    """Compile a library.

    Args:
        arguments: compile_str's arguments, without the module's name.
        library: the path of the library.

    Raises:
        RuntimeError: g++ failed.
    """
    with tempfile.TemporaryDirectory() as location:
        command, output = cmodule.GCC_compiler.write_source(
            **{**arguments, "module_name": "modules"}, location=location
        )
        # Without this flag, the messages of asserts would contain the temporary directory.
        command.append(f"-ffile-prefix-map={location}=.")
        _, error, status = output_subprocess_Popen(command)
        if status:
            message = error.decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} failed: {message}")
        shutil.move(output, library)
