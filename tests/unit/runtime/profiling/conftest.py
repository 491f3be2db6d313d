"""Load Theano 0.8.2's profiles of a Neural Turing Machine, with three choices of BLAS and libm."""

from pathlib import Path

import pytest
from theano_fast import profiles

FILES = Path(__file__).parents[1] / "data"
STACKS = ("openblas-numpy", "mkl", "mkl-amdlibm")


@pytest.fixture
def files():
    """Return a function that lists the files of a function or scan, one for each of STACKS."""
    return lambda name: [FILES / f"theano-0.8.2-ntm-{stack}.{name}.txt" for stack in STACKS]


@pytest.fixture
def read(files):
    """Return a function that parses the profiles in these files."""
    return lambda name: [profiles.parse(file.read_text()) for file in files(name)]
