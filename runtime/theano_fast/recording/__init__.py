"""What a program's compiled functions compute, recorded, and held against another record."""
