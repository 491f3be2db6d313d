"""Query the loaded BLAS libraries through their own C functions: version, kernels, threads.

A library's file name does not prove which BLAS the library is; its functions do. OpenBLAS declares
these functions in ``cblas.h`` (``openblas_get_config``, ``openblas_get_corename``,
``openblas_get_num_threads``). MKL declares them in ``mkl_service.h``.
"""

import ctypes
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from theano_fast import libraries

GET_THREADS = {"openblas": "openblas_get_num_threads", "mkl": "MKL_Get_Max_Threads"}
SET_THREADS = {"openblas": "openblas_set_num_threads", "mkl": "MKL_Set_Num_Threads"}
# A number of threads larger than any machine's number of CPUs.
MANY_THREADS = 1 << 20


class BlasError(Exception):
    """A library's file has the name of a BLAS, but the library lacks the functions of this BLAS."""


@dataclass(frozen=True)
class Blas:
    """A loaded BLAS.

    ``family`` is a key of libraries.BLAS, such as "openblas". ``path`` is the library's file, or
    its folder if it consists of many files.
    """

    family: str
    path: str

    @property
    def name(self) -> str:
        """The file's name, or the family if the library consists of many files."""
        return self.family if Path(self.path).is_dir() else Path(self.path).name


class MklVersion(ctypes.Structure):
    """The struct MKLVersion of ``mkl_types.h``; ``processor`` names the instruction set in use."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("update", ctypes.c_int),
        ("status", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("processor", ctypes.c_char_p),
        ("platform", ctypes.c_char_p),
    )


def list_loaded() -> tuple[Blas, ...]:
    """Return every BLAS implementation that this process has loaded."""
    mapped = [Blas(*instance) for instance in libraries.find_blas(libraries.list_mapped())]
    return tuple(blas for blas in mapped if not is_interface(blas))


def is_interface(blas: Blas) -> bool:
    """Return whether a library with netlib's name only forwards calls to another BLAS."""
    if blas.family != "netlib":
        return False
    implementations = (pattern for family, pattern in libraries.BLAS.items() if family != "netlib")
    needed = libraries.read_requirements(blas.path).libraries
    return any(pattern.fullmatch(name) for pattern in implementations for name in needed)


def read_version(blas: Blas) -> str:
    """Return the version of OpenBLAS or MKL, or the family of another BLAS; raises BlasError."""
    if blas.family == "openblas":
        config = _find_function(blas, "openblas_get_config", ctypes.c_char_p)
        return f"{config().decode()} on {read_kernels(blas)}"
    if blas.family == "mkl":
        text = ctypes.create_string_buffer(256)
        _find_function(blas, "MKL_Get_Version_String", None)(text, len(text))
        return text.value.decode().strip()
    return blas.family


def read_kernels(blas: Blas) -> str:
    """Return the name of the kernels that the library uses on this processor; raises BlasError."""
    if blas.family == "openblas":
        core = _find_function(blas, "openblas_get_corename", ctypes.c_char_p)
        name = str(core().decode())
        # OpenBLAS returns the first processor in its list that has these kernels. Prescott is the
        # oldest 64-bit processor. Its kernels appear first under Katmai, the 32-bit Pentium III.
        return "Prescott" if name == "Katmai" else name
    struct = MklVersion()
    get_version = "MKL_Get_Version" if blas.family == "mkl" else None
    _find_function(blas, get_version, None)(ctypes.byref(struct))
    return str(struct.processor.decode())


def count_threads(blas: Blas) -> int:
    """Return the number of threads that the library will use; raises BlasError."""
    return int(_find_function(blas, GET_THREADS.get(blas.family), ctypes.c_int)())


def read_most_threads(blas: Blas) -> int:
    """Return the largest number of threads that the library uses; raises BlasError.

    OpenBLAS's limit is fixed when OpenBLAS is compiled. By default, MKL uses at most one thread per
    physical core (MKL_DYNAMIC), even if a larger number is set. Without a limit, return
    sys.maxsize.
    """
    limit = re.search(r"MAX_THREADS=(\d+)", read_version(blas))
    if limit:
        return int(limit[1])
    count = count_threads(blas)
    set_threads(blas, MANY_THREADS)
    most = count_threads(blas)
    set_threads(blas, count)
    return sys.maxsize if most == MANY_THREADS else most


def set_threads(blas: Blas, count: int) -> None:
    """Set the number of threads that the library uses in this process; raises BlasError."""
    _find_function(blas, SET_THREADS.get(blas.family), None)(ctypes.c_int(count))


def count_openmp_threads(runtime: str) -> int:
    """Return the number of threads of a parallel region.

    Args:
        runtime: the path of the library of an OpenMP run time.
    """
    return int(ctypes.CDLL(runtime).omp_get_max_threads())


def _find_function(blas: Blas, name: str | None, result: Any) -> Callable[..., Any]:
    """Return a C function of the library, with its ctypes result type; raises BlasError.

    The name is None if this family has no such function.
    """
    path = Path(blas.path)
    for file in sorted(path.glob("libmkl_*.so*")) if path.is_dir() else [path]:
        function = getattr(_open(file), name, None) if name else None
        if function is not None:
            function.restype = result
            return cast(Callable[..., Any], function)
    raise BlasError(f"{blas.path} is named {blas.family} but has no {name or 'known function'}")


def _open(file: Path) -> Any:
    """Return a library if this process has loaded it, otherwise None.

    Never load the library, because it would be a second BLAS in the process.
    """
    try:
        return ctypes.CDLL(str(file), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
