"""List the libraries that this process has loaded, and read the environment's stack file."""

import os
import re
import sys

GLIBC = re.compile(
    r"(ld|ld-linux-x86-64|"
    r"lib(BrokenLocale|anl|c|crypt|dl|m|mvec|nsl|nss_\w+|pthread|resolv|rt|util))[.-]"
)
# For each BLAS family, a pattern for the implementation's libraries. It matches no interface library.
BLAS = {"openblas": re.compile(r"libopenblas"), "mkl": re.compile(r"libmkl_(core|rt)")}
OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")


def mapped():
    """Return the sorted paths of the shared objects that this process has loaded."""
    with open("/proc/self/maps") as maps:
        return sorted(set(re.findall(r"/\S+\.so(?:\.\S+)?(?=\n)", maps.read())))


def matching(pattern):
    """Return the paths of the loaded libraries whose file names match a pattern at the start."""
    return [path for path in mapped() if pattern.match(os.path.basename(path))]


def inside(path):
    """Return whether a file belongs to the environment, after all links are resolved."""
    return os.path.realpath(path).startswith(os.path.realpath(sys.prefix) + os.sep)


def stack():
    """Return the stack's name, under the key "stack", and the values of its axes.

    They come from etc/theano-fast.toml. Raises EnvironmentError if this file cannot be read.
    """
    with open(os.path.join(sys.prefix, "etc", "theano-fast.toml")) as file:
        return dict(re.findall(r'^(\w+) = "(.*)"$', file.read(), re.MULTILINE))
