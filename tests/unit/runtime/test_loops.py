"""Test that the check ``loops`` reads vector widths from the messages of g++."""

import pytest

loops = pytest.importorskip("theano_fast.checks.loops")

# Messages of g++ -fopt-info-vec-optimized.
NOTES = """\
mod.cpp:41:22: optimized: loop vectorized using 32 byte vectors
mod.cpp:41:22: optimized:  loop versioned for vectorization because of possible aliasing
mod.cpp:63:20: optimized: loop vectorized using 16 byte vectors
"""


def test_the_vector_widths_in_bytes_are_parsed_from_the_compilers_messages():
    assert loops.parse_widths(NOTES) == {16, 32}
    assert loops.parse_widths("mod.cpp:9:1: optimized: basic block part vectorized") == set()
