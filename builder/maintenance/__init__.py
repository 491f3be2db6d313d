"""Developers' tasks: edit patches, audit sources, record the interpreter's profile, lint, test."""
