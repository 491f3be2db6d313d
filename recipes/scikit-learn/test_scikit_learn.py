"""Check that KMeans finds two clusters, and loads only the environment's OpenMP library."""

import sys
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

points = np.array([[0.0], [0.1], [5.0], [5.1]])
labels = KMeans(2, n_init=3, random_state=1).fit_predict(points)
assert labels[0] == labels[1] != labels[2] == labels[3]
maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
loaded = {Path(line.split()[-1]) for line in maps if "libgomp" in line}
assert len(loaded) == 1, loaded
assert loaded.pop().parent == Path(sys.prefix, "lib").resolve()
