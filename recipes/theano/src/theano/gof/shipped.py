"""Modules that come compiled with an environment.

What g++ compiles for a program is mostly its own loops. The modules of ops such as Dot22 or Softmax
are the same in all programs: the directory that the flag `cmodule.shipped` names can have them,
compiled for levels of x86-64 processors. A level's index, LEVEL.json, tells the library of each
module, by a name that stands for all that the module depends on, but for the processor.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import json
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from theano import config
from theano.gof import cmodule
from theano.gof.utils import hash_from_code
from theano.misc.windows import output_subprocess_Popen

if TYPE_CHECKING:
    from theano.gof.cc import CLinker
    from theano.gof.compilation import Arguments, ModuleParts

# What g++'s flags for a processor have if it is of the level; the highest first.
V3 = {"-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe"}
V4 = V3 | {"-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl"}
LEVELS = {"x86-64-v4": V4, "x86-64-v3": V3}
# Flags that change what g++ says, and no module.
WARNINGS = re.compile(r"-w|-W(?![alp],).*")


@functools.cache
def headers_hash() -> str:
    """Return a hash of the headers that come with Theano."""
    paths = sorted((Path(__file__).parent / "c_code").glob("*.h"))
    found: str = hash_from_code("".join(path.read_text() for path in paths))
    return found


@functools.cache
def flags_but_processors(preargs: tuple[str, ...]) -> list[str]:
    """Return which of g++'s flags change a module, but for those of processors."""
    march = cmodule.GCC_compiler.march_flags
    return [flag for flag in preargs if flag not in march and not WARNINGS.fullmatch(flag)]


def name_of(code: str, flags: Iterable[str], *libraries: Iterable[str]) -> str:
    """Return the name of what g++ makes of code: of two with one name, either will do.

    Args:
        code: itself, or what stands for it.
        flags: for g++.
        libraries: and their directories, and those of headers.
    """
    described = [
        code,
        headers_hash(),
        np.__version__,
        sysconfig.get_config_var("SOABI"),
        flags_but_processors(tuple(flags)),
        *libraries,
    ]
    name: str = hash_from_code(json.dumps(described).replace(sys.prefix, ""))
    return name


def name_of_module(module: ModuleParts, arguments: Arguments) -> str:
    """Return the name of a DynamicModule.

    Args:
        arguments: what compile_str takes for it.
    """
    libraries = [arguments[key] for key in ("include_dirs", "lib_dirs", "libs")]
    return name_of(module.code_hash, arguments["preargs"], *libraries)


def at_level(suffix: str) -> Path | None:
    """Return the file for this processor whose name ends so, or None if none was shipped."""
    cmodule.GCC_compiler.compile_args()
    flags = cmodule.GCC_compiler.march_flags or ()
    for level, needed in LEVELS.items():
        path = Path(config.cmodule.shipped, level + suffix)
        if config.cmodule.shipped and needed.issubset(flags) and path.exists():
            return path
    return None


@functools.cache
def index() -> dict[str, str]:
    """Return the paths of the libraries for this processor, by the names of their modules.

    It is empty where none were shipped.
    """
    path = at_level(".json")
    if path is None:
        return {}
    libraries = json.loads(path.read_text())
    return {name: str(path.parent / library) for name, library in libraries.items()}


def find(module: ModuleParts, arguments: Arguments) -> ModuleType | None:
    """Return the loaded module that was shipped for a DynamicModule, or None.

    Args:
        arguments: what compile_str takes for it.
    """
    path = index() and index().get(name_of_module(module, arguments))
    if not path:
        return None
    # The library has the other modules as well, by the hashes of their code.
    loader = importlib.machinery.ExtensionFileLoader(module.code_hash, path)
    spec = importlib.util.spec_from_loader(module.code_hash, loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded


def write(linkers: Iterable[CLinker], level: str, directory: str) -> None:
    """Compile the modules of linkers for a level of processors, and their index.

    This process can load none of them: its own processor may be of another one.

    Args:
        level: one of LEVELS.
        directory: where the libraries go, and the index: `level`, and ".json".

    Raises:
        RuntimeError: g++ failed.
    """
    compile_for(level)
    # By what they have in common: the library, compile_str's arguments, and the modules in it.
    groups: dict[str, tuple[str, Arguments, list[ModuleParts]]] = {}
    names: dict[str, str] = {}
    for linker in linkers:
        arguments = linker.compile_arguments()
        module = linker.get_dynamic_module()
        name = name_of_module(module, arguments)
        if name not in names:
            del arguments["module_name"], arguments["src_code"]
            group = json.dumps([arguments, module.macros_left()], sort_keys=True)
            library = f"{level}-{len(groups)}.so"
            names[name], _, modules = groups.setdefault(group, (library, arguments, []))
            modules.append(module)
    for library, arguments, modules in groups.values():
        arguments["src_code"] = cmodule.DynamicModule.merged_code(modules)
        compile_library(arguments, Path(directory, library))
    with Path(directory, f"{level}.json").open("w") as file:
        json.dump(names, file, indent=0, sort_keys=True)


def compile_for(level: str) -> None:
    """Have g++ compile for a level of processors from now on."""
    # By their names, which are those of processors, g++ knows the levels from its release 11 on.
    cmodule.GCC_compiler.march_flags = sorted(LEVELS[level])
    flags_but_processors.cache_clear()


def compile_library(arguments: Arguments, library: Path) -> None:
    """Compile a library.

    Args:
        arguments: compile_str's, but for the module's name.

    Raises:
        RuntimeError: g++ failed.
    """
    with tempfile.TemporaryDirectory() as location:
        command, made = cmodule.GCC_compiler.write_source(
            **{**arguments, "module_name": "modules"}, location=location
        )
        # For asserts, which tell the file.
        command.append(f"-ffile-prefix-map={location}=.")
        _, error, status = output_subprocess_Popen(command)
        if status:
            message = error.decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} failed: {message}")
        shutil.move(made, library)
