"""Facts of the libraries and of Theano: ``-m theano_fast.environment FILE`` writes them as JSON.

Importing this module loads the stack, and so may fail or crash as the stack does.
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


def facts() -> dict[str, Any]:
    """Return the BLAS and OpenMP loaded, and the Theano options in effect."""
    return {
        "blas": [describe(library) for library in blas.loaded()],
        "openmp": [
            {"library": runtime, "threads": blas.openmp_threads(runtime)}
            for runtime in libraries.openmp_runtimes(libraries.mapped())
        ],
        "prefix": sys.prefix,
        "theano_config": configuration(),
    }


def describe(library: blas.Blas) -> dict[str, Any]:
    """Return what a loaded BLAS says of itself, or that it does not answer."""
    told: dict[str, Any] = {"family": library.family, "library": library.place}
    try:
        return {**told, "threads": blas.threads(library), "version": blas.version(library)}
    except blas.BlasError as error:
        return {**told, "error": str(error)}


def configuration() -> dict[str, dict[str, str]]:
    """Return the effective Theano options and where each was set."""
    parser = theano.configparser
    # Theano's own copy loses the flags that it has read.
    flags = parser.parse_config_string(os.environ.get("THEANO_FLAGS", ""), issue_warnings=False)
    return {
        option: {
            "value": str(value_of(theano.config, option)),
            "source": source(option, flags, parser.config_files),
        }
        for option in OPTIONS
    }


def value_of(config: Any, option: str) -> Any:
    """Return the value of a Theano option; sections are attributes of the configuration."""
    for part in option.split("."):
        config = getattr(config, part)
    return config


def source(option: str, flags: dict[str, str], files: Iterable[str]) -> str:
    """Say where Theano takes an option from: THEANO_FLAGS, the last file with it, or a default.

    An option without a section is under ``[global]`` in a file.
    """
    if option in flags:
        return "THEANO_FLAGS"
    section, _, name = option.rpartition(".")
    place = "default"
    for file in files:
        read = configparser.RawConfigParser()
        read.read(file)
        if read.has_option(section or "global", name):
            place = file
    return place


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(facts()))
