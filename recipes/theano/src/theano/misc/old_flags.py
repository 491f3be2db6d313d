"""Flags that were written for another machine, or for a Theano of before 1.0.

Programs set them for the machines of their time. What they mean here is said in one line, and the
program goes on.
"""

from __future__ import annotations

import configparser
import functools
import logging
import os
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


def own_blas(prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)) -> str:
    """Return the link flags of the BLAS that the environment comes with, or ""."""
    parser = configparser.RawConfigParser()
    for prefix in prefixes:
        parser.read(Path(prefix, "etc", "theanorc"))
        if parser.has_option("blas", "ldflags"):
            return parser.get("blas", "ldflags")
    return ""


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
