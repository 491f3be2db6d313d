"""theano.tensor.random of Theano-PyMC: its types, and no random variables.

PyMC3 3.11 uses none of theano.tensor.random. MRG_RandomStream and RandomStreams draw numbers.
"""

from theano.tensor.random import type, var


def __getattr__(name):
    """Raise an AttributeError that names a replacement."""
    raise AttributeError(
        f"theano.tensor.random.{name} is Theano-PyMC's alone: use "
        "theano.sandbox.rng_mrg.MRG_RandomStream or theano.tensor.shared_randomstreams.RandomStreams"
    )
