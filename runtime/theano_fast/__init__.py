"""The code of theano-fast in an environment: verify, describe and tune the environment."""

__version__ = "0.1.0"
