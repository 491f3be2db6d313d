"""Command ``theano-fast``: verify, describe and tune the environment that contains it.

Programs can import the module ``nn``, which has layers of recurrent networks.
"""

__version__ = "0.1.0"
