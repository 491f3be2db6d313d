"""The command ``theano-fast``, which verifies, describes and tunes the environment around it.

Programs import the module ``nn``, layers of recurrent networks.
"""

__version__ = "0.1.0"
