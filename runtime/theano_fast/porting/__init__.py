"""Find the names that an old program imports and this environment lacks; convert Python 2."""
