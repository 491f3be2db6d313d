"""Flags that were written for another machine, or for a Theano of before 1.0.

Programs set them for the machines of their time. What they mean here is said in one line, and the
program goes on.
"""

from __future__ import annotations

import configparser
import functools
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

_logger = logging.getLogger("theano.configdefaults")

TRANSLATE = "theano-fast rc translate FILE writes a theanorc anew"


@functools.cache
def say(message: str, *arguments: str) -> None:
    """Log a warning, once."""
    _logger.warning(message, *arguments)


def device(flag: str, value: str) -> str:
    """Return today's name of a device of the old GPU back end.

    Args:
        flag: "device", or another that names one.
        value: "gpu", or "gpu" and a number.
    """
    now = value.replace("gpu", "cuda", 1)
    say("%s=%s is of the old GPU back end, and means %s now: %s", flag, value, now, TRANSLATE)
    return now


def drop(flag: str, value: str, instead: str) -> None:
    """Say that a flag of before Theano 1.0 has no effect.

    Args:
        instead: the flags that are in its place.
    """
    say("%s=%s has no effect; today it is %s: %s", flag, value, instead, TRANSLATE)


def from_theanorc(
    section: str, flag: str, prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)
) -> tuple[str, str]:
    """Return the environment's own value of a flag and the prefix of its theanorc, or two ""."""
    parser = configparser.RawConfigParser()
    for prefix in prefixes:
        parser.read(Path(prefix, "etc", "theanorc"))
        if parser.has_option(section, flag):
            return parser.get(section, flag), prefix
    return "", ""


def own_blas() -> str:
    """Return the link flags of the BLAS that the environment comes with, or ""."""
    return from_theanorc("blas", "ldflags")[0]


def compiler(cxx: str) -> None:
    """Say if a compiler's C++ library is newer than the environment's.

    The environment's is loaded first, and a module that asks for a newer one cannot be.
    """
    own, prefix = from_theanorc("global", "cxx")
    if not own or not cxx or Path(cxx).resolve() == Path(own).resolve():
        return
    done = subprocess.run(
        [cxx, "-print-file-name=libstdc++.so"], capture_output=True, text=True, check=False
    )
    theirs, ours = map(_interface, (done.stdout.strip(), f"{prefix}/lib/libstdc++.so.6"))
    if theirs > ours:
        say(
            "cxx=%s: its libstdc++ (GLIBCXX_3.4.%s) is newer than this environment's (3.4.%s), and "
            "a module that needs it cannot be loaded; without the flag it is %s",
            cxx,
            str(theirs),
            str(ours),
            own,
        )


def _interface(library: str) -> int:
    """Return N of the newest GLIBCXX_3.4.N that a libstdc++ has, or 0."""
    try:
        content = Path(library).read_bytes()
    except OSError:
        return 0
    return max(map(int, re.findall(rb"GLIBCXX_3\.4\.(\d+)\b", content)), default=0)


@functools.cache
def blas(value: str, cxx: str) -> str:
    """Return the link flags to use for a value of `blas.ldflags`.

    Where the environment comes with a BLAS, libraries without a directory are that one: another in
    the same process, as of the host's, would be a second one. One of a directory must link.

    Args:
        cxx: the compiler, or "".
    """
    own = own_blas()
    if not own or value in ("", own):
        return value
    if not any(flag.startswith("-L") for flag in shlex.split(value)):
        if not any(name in value and name in own for name in ("mkl", "openblas")):
            named = " ".join(flag for flag in shlex.split(own) if flag.startswith("-l"))
            say(
                "blas.ldflags=%s: the BLAS is this environment's, %s; another needs its directory, "
                "as in -L/DIRECTORY -lopenblas",
                value,
                named,
            )
        return own
    program = 'extern "C" void dgemm_(); int main() { dgemm_(); }'
    if cxx and (why := _complaint(cxx, program, *shlex.split(value))):
        say("blas.ldflags=%s does not link (%s): the BLAS is this environment's", value, why)
        return own
    return value


@functools.cache
def cxxflags(value: str, cxx: str) -> str:
    """Return a value of `gcc.cxxflags` without what the compiler, as of clang's, does not know.

    Args:
        cxx: the compiler, or "".
    """
    flags = value.split()
    if not cxx or not flags or not _complaint(cxx, "", *flags, "-c"):
        return value
    known = [flag for flag in flags if "unrecognized" not in _complaint(cxx, "", flag, "-c")]
    if unknown := [flag for flag in flags if flag not in known]:
        say("gcc.cxxflags: %s does not know %s: left out", cxx, " ".join(unknown))
    return " ".join(known)


def _complaint(cxx: str, program: str, *flags: str) -> str:
    """Return the last line, but ld's summary, that a compiler writes of a program it refuses."""
    with tempfile.TemporaryDirectory() as location:
        done = subprocess.run(
            [cxx, "-x", "c++", "-", *flags, "-o", f"{location}/program"],
            env={**os.environ, "LC_ALL": "C"},
            input=program,
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in done.stderr.splitlines() if "error: ld returned" not in line]
    return (lines or ["it failed"])[-1] if done.returncode else ""
