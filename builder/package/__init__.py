"""Recipes made into packages, in a cache and a channel."""
