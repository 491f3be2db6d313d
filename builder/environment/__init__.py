"""Packages locked for a stack, and installed."""
