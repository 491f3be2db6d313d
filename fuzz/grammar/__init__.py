"""Write random statements of a program: one module for each kind of operation.

A function takes a Writer, adds statements to the Writer's program, and returns a new variable.
"""
