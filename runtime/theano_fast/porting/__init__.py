"""Find the names that an old program imports and this environment lacks; port it from Python 2."""
