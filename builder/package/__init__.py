"""Build packages from recipes, store them in the package cache, and add them to channels."""
