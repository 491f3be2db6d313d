"""The libraries that this process has loaded, and what the environment says that it is."""

import os
import re
import sys

GLIBC = re.compile(
    r"(ld|ld-linux-x86-64|"
    r"lib(BrokenLocale|anl|c|crypt|dl|m|mvec|nsl|nss_\w+|pthread|resolv|rt|util))[.-]"
)
# By family, the names of a BLAS' own libraries, without the interface's.
BLAS = {"openblas": re.compile(r"libopenblas"), "mkl": re.compile(r"libmkl_(core|rt)")}
OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")


def mapped():
    """Return the paths of the shared objects in this process, sorted."""
    with open("/proc/self/maps") as maps:
        return sorted(set(re.findall(r"/\S+\.so(?:\.\S+)?(?=\n)", maps.read())))


def matching(pattern):
    """Return those of the loaded libraries whose names begin with a pattern."""
    return [path for path in mapped() if pattern.match(os.path.basename(path))]


def inside(path):
    """Tell whether a file, links resolved, belongs to the environment."""
    return os.path.realpath(path).startswith(os.path.realpath(sys.prefix) + os.sep)


def stack():
    """Return what the environment says that it is: its name, under "stack", and its axes.

    Raises EnvironmentError: it says nothing.
    """
    with open(os.path.join(sys.prefix, "etc", "theano-fast.toml")) as file:
        return dict(re.findall(r'^(\w+) = "(.*)"$', file.read(), re.MULTILINE))
