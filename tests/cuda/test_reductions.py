"""What reductions compute by kernels of Theano's own; without kernels-compile many are 0."""

import json
from pathlib import Path

REDUCTIONS = Path(__file__).with_name("reductions.py")


def test_kernels_compute_what_numpy_does(run):
    done = run(REDUCTIONS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 60
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}
