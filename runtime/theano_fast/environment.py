"""Describe the loaded libraries and Theano: ``-m theano_fast.environment FILE`` writes JSON.

Importing this module loads the stack's libraries. If they are broken, the import fails or crashes.
"""

import configparser
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import theano

from theano_fast import blas, libraries

OPTIONS = (
    "blas.ldflags",
    "compiledir",
    "cxx",
    "device",
    "floatX",
    "gcc.cxxflags",
    "lib.amdlibm",
    "mode",
    "openmp",
)


def gather_facts() -> dict[str, Any]:
    """Return the loaded BLAS and OpenMP libraries, and the effective Theano options."""
    return {
        "blas": [describe_blas(library) for library in blas.list_loaded()],
        "openmp": [
            {"library": runtime, "threads": blas.count_openmp_threads(runtime)}
            for runtime in libraries.find_openmp(libraries.list_mapped())
        ],
        "prefix": sys.prefix,
        "theano_config": read_configuration(),
    }


def describe_blas(library: blas.Blas) -> dict[str, Any]:
    """Return the kernels, threads and version of a loaded BLAS, or the error of the query."""
    names: dict[str, Any] = {"family": library.family, "library": library.path}
    try:
        return {
            **names,
            "kernels": blas.read_kernels(library),
            "threads": blas.count_threads(library),
            "version": blas.read_version(library),
        }
    except blas.BlasError as error:
        return {**names, "error": str(error)}


def read_configuration() -> dict[str, dict[str, str]]:
    """Return the effective value and the origin of each of OPTIONS."""
    parser = theano.configparser
    # Parse THEANO_FLAGS again: when Theano reads a flag, it deletes the flag from its parsed copy.
    flags = parser.parse_config_string(os.environ.get("THEANO_FLAGS", ""), issue_warnings=False)
    return {
        option: {
            "value": str(get_value(theano.config, option)),
            "source": find_origin(option, flags, parser.config_files),
        }
        for option in OPTIONS
    }


def get_value(config: Any, option: str) -> Any:
    """Return the value of a Theano option, such as "blas.ldflags" (section.option)."""
    for part in option.split("."):
        config = getattr(config, part)
    return config


def find_origin(option: str, flags: dict[str, str], files: Iterable[str]) -> str:
    """Return the origin of an option: THEANO_FLAGS, the last file that sets it, or "default".

    In a file, an option without a section is under ``[global]``.

    Args:
        option: the name of the option, such as "blas.ldflags".
        flags: the flags of THEANO_FLAGS.
        files: the theanorc files in the order in which Theano reads them.
    """
    if option in flags:
        return "THEANO_FLAGS"
    section, _, name = option.rpartition(".")
    setter = "default"
    for file in files:
        parser = configparser.RawConfigParser()
        parser.read(file)
        if parser.has_option(section or "global", name):
            setter = file
    return setter


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(gather_facts()))
