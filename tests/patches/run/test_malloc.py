"""theano.misc.malloc keeps freed memory for the next call.

Without it, glibc returns large freed arrays to the system. The system clears new pages for
the arrays of the next call, and each new page is a page fault.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy
import theano

x = theano.tensor.dvector()
f = theano.function([x], [x + 1.0, x + 2.0, x + 3.0, x + 4.0, x + 5.0], mode="FAST_COMPILE")
value = numpy.ones(384 << 10)


def faults(calls):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        f(value)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


faults(2)
print(faults(10))
"""
# The pages of five arrays of 3 MB. NumPy requests huge pages for arrays from 4 MB on.
PAGES = 5 * 768


def count_page_faults(flags="", **environment):
    """Return the page faults of a call in a new process.

    The process does not inherit the environment's settings of malloc.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**clean, "THEANO_FLAGS": f"cxx=,{flags}", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(completed.stdout)


def test_memory_is_kept_for_the_next_call():
    assert count_page_faults() < PAGES / 10


@pytest.mark.parametrize(
    ("flags", "environment"),
    [
        ("malloc.keep=0", {}),
        ("malloc.keep=1", {}),
        ("", {"MALLOC_TRIM_THRESHOLD_": "131072"}),
        ("", {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}),
    ],
)
def test_the_users_malloc_settings_take_precedence(flags, environment):
    assert count_page_faults(flags, **environment) > PAGES / 2
