"""Load stacks, render their recipes, and describe the compilers that build packages."""
