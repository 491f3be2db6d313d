"""Provide Theano 0.8.2's profiles of a Neural Turing Machine with three sets of libraries."""

from pathlib import Path

import pytest
from theano_fast import profiles

FILES = Path(__file__).parents[1] / "data"
# The profiled environments, which are named after their libraries.
STACKS = ("openblas-numpy", "mkl", "mkl-amdlibm")


@pytest.fixture
def files():
    """Return a function that lists the files of ``train_fn`` or ``grad_of_scan``, one per stack."""
    return lambda name: [FILES / f"theano-0.8.2-ntm-{stack}.{name}.txt" for stack in STACKS]


@pytest.fixture
def read(files):
    """Return a function that parses the files of ``train_fn`` or ``grad_of_scan``."""
    return lambda name: [profiles.parse(file.read_text()) for file in files(name)]
