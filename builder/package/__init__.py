"""Build recipes into packages, store these in the package cache, and add them to channels."""
