"""The in-environment side of theano-fast: prove, describe and tune a Theano environment."""

__version__ = "0.1.0"
