"""Tools for developers: patches as commits, the age of sources, the interpreter's profile, lint."""
