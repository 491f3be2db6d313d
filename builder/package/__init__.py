"""Recipes built into packages, the package cache, and channels."""
