"""Record what a program's compiled functions compute, and compare two records."""
