"""Record the inputs and results of a program's compiled functions, and compare two records."""
