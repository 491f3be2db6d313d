"""`theano-fast profile` counts the calls of NVIDIA's driver."""

import json

PROGRAM = """
import numpy as np
import theano
import theano.tensor as T
x = T.dmatrix()
weights = theano.shared(np.ones((3, 3)))
function = theano.function([x], T.tanh(T.exp(x).dot(weights)), updates=[(weights, weights * 0.5)])
for _ in range(5):
    function(np.ones((2, 3)))
"""


def test_the_profile_has_the_calls_of_the_driver(emulate, tmp_path):
    """The report has the numbers of driver calls in each of two first calls and per later call."""
    program, out = tmp_path / "program.py", tmp_path / "profile"
    program.write_text(PROGRAM)
    done = emulate("-m", "theano_fast", "profile", "run", "--out", out, program)
    assert done.returncode == 0, done.stderr
    (counts,) = json.loads((tmp_path / "profile.json").read_text())["driver"].values()
    assert counts["calls"] == 5
    first, second = counts["first"]
    calls = {group: times["calls"] for group, times in counts["later"].items()}
    # The first kernel computes exp and the multiplication by 0.5, the second computes tanh. The
    # emulated cuBLAS launches no kernel.
    assert calls.pop("launches") == first["launches"]["calls"] == 2
    assert calls.pop("copies to the device") == calls.pop("copies to the host") == 1
    assert calls.pop("queries") == second["queries"]["calls"]
    assert calls == {}
    assert "copies to the host" in done.stderr
