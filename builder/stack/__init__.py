"""Stacks, their recipes, and the compilers that build them."""
