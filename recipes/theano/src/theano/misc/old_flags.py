"""Translation of flags that were set for another machine or for a Theano before 1.0.

Instead of raising an error, each translation logs one warning.
"""

from __future__ import annotations

import configparser
import functools
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_logger = logging.getLogger("theano.configdefaults")

TRANSLATE = "theano-fast rc translate FILE prints a theanorc with current flags"


@functools.cache
def warn_once(message: str, *arguments: str) -> None:
    """Log a warning, once for each combination of arguments."""
    _logger.warning(message, *arguments)


def translate_device(flag: str, value: str) -> str:
    """Return the current name of a device of the old GPU back end, such as cuda0; log a warning.

    Args:
        flag: the name of a flag whose value is a device, such as "device".
        value: the old name: "gpu", or "gpu" and a number.
    """
    current = value.replace("gpu", "cuda", 1)
    warn_once(
        "%s=%s names the old GPU back end; Theano uses %s: %s", flag, value, current, TRANSLATE
    )
    return current


def warn_of_old_flag(flag: str, value: str, instead: str) -> None:
    """Warn that a flag from before Theano 1.0 has no effect.

    Args:
        flag: the name of the flag.
        value: the value of the flag.
        instead: the current flags that replace the flag.
    """
    warn_once("%s=%s has no effect; the current flag is %s: %s", flag, value, instead, TRANSLATE)


def read_theanorc(
    section: str, flag: str, prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)
) -> tuple[str, str]:
    """Read a flag from the environment's file etc/theanorc.

    Args:
        section: the section of the flag, such as "blas".
        flag: the name of the flag in the section, such as "ldflags".
        prefixes: the prefixes to search, in this order.

    Returns:
        The flag's value and the prefix of the file, or two empty strings if no file has the flag.
    """
    parser = configparser.RawConfigParser()
    for prefix in prefixes:
        parser.read(Path(prefix, "etc", "theanorc"))
        if parser.has_option(section, flag):
            return parser.get(section, flag), prefix
    return "", ""


def find_own_blas() -> str:
    """Return the link flags of the environment's BLAS, or "" if the environment sets none."""
    return read_theanorc("blas", "ldflags")[0]


def check_compiler(cxx: str, is_default: bool) -> None:
    """Raise an error if there is no compiler; warn if its C++ library (libstdc++) is too new.

    If the compiler's libstdc++ is newer than the environment's, some modules cannot be loaded: a
    process loads the environment's library first, and a module may need an interface of the newer
    library.

    Args:
        cxx: the value of the flag `cxx`. If the user sets it to "", ops run in Python.
        is_default: whether the flag has its default value, which is "" if g++ is not on PATH.

    Raises:
        RuntimeError: the compiler does not exist.
    """
    if cxx == "" and not is_default:
        return
    if shutil.which(cxx.strip('"')) is None:
        problem = f"the Theano flag cxx names no executable: {cxx}" if cxx else "g++ is not on PATH"
        raise RuntimeError(
            f"No C++ compiler: {problem}. Theano compiles the C code of its functions when they are"
            " built; without a compiler they run in Python, often hundreds of times slower. Install"
            " g++, or name a compiler with the Theano flag cxx=/path/to/g++, or accept the slow"
            " mode with THEANO_FLAGS=cxx="
        )
    own, prefix = read_theanorc("global", "cxx")
    if not own or Path(cxx).resolve() == Path(own).resolve():
        return
    query = subprocess.run(
        [cxx, "-print-file-name=libstdc++.so"], capture_output=True, text=True, check=False
    )
    compiler_version = _find_newest_interface(query.stdout.strip())
    own_version = _find_newest_interface(f"{prefix}/lib/libstdc++.so.6")
    if compiler_version > own_version:
        warn_once(
            "cxx=%s: its libstdc++ (GLIBCXX_3.4.%s) is newer than this environment's (3.4.%s), and "
            "a module that needs it cannot be loaded; without the flag, cxx is %s",
            cxx,
            str(compiler_version),
            str(own_version),
            own,
        )


def _find_newest_interface(library: str) -> int:
    """Return N of the newest interface GLIBCXX_3.4.N of a libstdc++, or 0 if it has none."""
    try:
        content = Path(library).read_bytes()
    except OSError:
        return 0
    return max(map(int, re.findall(rb"GLIBCXX_3\.4\.(\d+)\b", content)), default=0)


@functools.cache
def choose_blas_flags(value: str, cxx: str) -> str:
    """Return the link flags to use for a value of `blas.ldflags`.

    The environment's BLAS, if there is one, replaces libraries that are named without a directory.
    Otherwise the process could load a second BLAS, such as the host's. The environment's BLAS also
    replaces a library that is named with its directory but does not link.

    Args:
        value: the value of the flag.
        cxx: the compiler, or "" if there is none.
    """
    own = find_own_blas()
    if not own or value in ("", own):
        return value
    if not any(flag.startswith("-L") for flag in shlex.split(value)):
        if not any(name in value and name in own for name in ("mkl", "openblas")):
            libraries = " ".join(flag for flag in shlex.split(own) if flag.startswith("-l"))
            warn_once(
                "blas.ldflags=%s: Theano uses this environment's BLAS, %s; to use another BLAS,"
                " name its directory: -L/DIRECTORY -lopenblas",
                value,
                libraries,
            )
        return own
    program = 'extern "C" void dgemm_(); int main() { dgemm_(); }'
    if cxx and (reason := _find_error(cxx, program, *shlex.split(value))):
        warn_once(
            "blas.ldflags=%s does not link (%s): Theano uses this environment's BLAS", value, reason
        )
        return own
    return value


@functools.cache
def filter_cxxflags(value: str, cxx: str) -> str:
    """Return a value of `gcc.cxxflags` without flags that the compiler rejects, such as clang's.

    Args:
        value: the value of the flag.
        cxx: the compiler, or "" if there is none.
    """
    flags = value.split()
    if not cxx or not flags or not _find_error(cxx, "", *flags, "-c"):
        return value
    accepted = [flag for flag in flags if "unrecognized" not in _find_error(cxx, "", flag, "-c")]
    if rejected := [flag for flag in flags if flag not in accepted]:
        warn_once("gcc.cxxflags: %s does not know %s: the flag is ignored", cxx, " ".join(rejected))
    return " ".join(accepted)


def _find_error(cxx: str, program: str, *flags: str) -> str:
    """Compile a program; return "" if it compiles, otherwise the last line of the errors.

    The line "error: ld returned" is ignored, because it only repeats that the linker failed.
    """
    with tempfile.TemporaryDirectory() as location:
        compilation = subprocess.run(
            [cxx, "-x", "c++", "-", *flags, "-o", f"{location}/program"],
            env={**os.environ, "LC_ALL": "C"},
            input=program,
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in compilation.stderr.splitlines() if "error: ld returned" not in line]
    return (lines or ["it failed"])[-1] if compilation.returncode else ""
