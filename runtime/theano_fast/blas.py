"""The BLAS library loaded in this process, asked through its own C functions.

What a library is named proves little; what it answers does. Functions of OpenBLAS:
``openblas_get_config``, ``openblas_get_num_threads`` (its ``cblas.h``); of MKL: ``mkl_service.h``.
"""

import ctypes
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from theano_fast import elf, libraries

GET_THREADS = {"openblas": "openblas_get_num_threads", "mkl": "MKL_Get_Max_Threads"}
SET_THREADS = {"openblas": "openblas_set_num_threads", "mkl": "MKL_Set_Num_Threads"}


class BlasError(Exception):
    """A library does not answer as the BLAS that its file name says it is."""


@dataclass(frozen=True)
class Blas:
    """A loaded BLAS; place is its file, or its folder for one made of many files."""

    family: str
    place: str


def loaded() -> tuple[Blas, ...]:
    """Return every BLAS mapped into this process."""
    instances = libraries.blas_instances(libraries.mapped())
    found = (Blas(family, place) for family, place in instances)
    return tuple(blas for blas in found if not is_interface(blas))


def is_interface(blas: Blas) -> bool:
    """Tell whether a library of netlib's name only hands its calls on to another BLAS."""
    if blas.family != "netlib":
        return False
    implementations = (pattern for family, pattern in libraries.BLAS.items() if family != "netlib")
    needed = elf.read(blas.place).needed
    return any(pattern.fullmatch(name) for pattern in implementations for name in needed)


def version(blas: Blas) -> str:
    """Return the library's description of itself; raises BlasError."""
    if blas.family == "openblas":
        config = _function(blas, "openblas_get_config", ctypes.c_char_p)
        core = _function(blas, "openblas_get_corename", ctypes.c_char_p)
        return f"{config().decode()} on {core().decode()}"
    if blas.family == "mkl":
        text = ctypes.create_string_buffer(256)
        _function(blas, "MKL_Get_Version_String", None)(text, len(text))
        return text.value.decode().strip()
    return blas.family


def threads(blas: Blas) -> int:
    """Return the number of threads the library will use; raises BlasError."""
    return int(_function(blas, GET_THREADS.get(blas.family), ctypes.c_int)())


def most_threads(blas: Blas) -> int:
    """Return the number of threads that the library was built for; raises BlasError."""
    built = re.search(r"MAX_THREADS=(\d+)", version(blas))
    return int(built[1]) if built else sys.maxsize


def set_threads(blas: Blas, count: int) -> None:
    """Make the library use count threads in this process; raises BlasError."""
    _function(blas, SET_THREADS.get(blas.family), None)(ctypes.c_int(count))


def openmp_threads(runtime: str) -> int:
    """Return the threads of a parallel region of the OpenMP run time in the file given."""
    return int(ctypes.CDLL(runtime).omp_get_max_threads())


def _function(blas: Blas, name: str | None, result: Any) -> Callable[..., Any]:
    place = Path(blas.place)
    for file in sorted(place.glob("libmkl_*.so*")) if place.is_dir() else [place]:
        function = getattr(_opened(file), name, None) if name else None
        if function is not None:
            function.restype = result
            return cast(Callable[..., Any], function)
    raise BlasError(f"{blas.place} is named {blas.family} but has no {name or 'known function'}")


def _opened(file: Path) -> Any:
    # Only what is mapped already: the question must not bring a second library in.
    try:
        return ctypes.CDLL(str(file), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
