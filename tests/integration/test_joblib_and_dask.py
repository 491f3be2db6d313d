"""Run the examples of docs/clusters.md that use joblib and Dask.

The environment does not contain these packages. The variable THEANO_FAST_JOBLIB_AND_DASK names a
directory that contains them. The environment's pip writes the directory: ``pip install
--target=DIRECTORY joblib distributed``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Result

from builder.common import paths

VARIABLE = "THEANO_FAST_JOBLIB_AND_DASK"


@pytest.fixture
def packages(prefix: Path, run: Callable[..., Result]) -> str:
    """Return the directory that contains joblib and Dask."""
    directory = os.environ.get(VARIABLE, "")
    result = run(prefix / "bin/python", "-c", "import joblib, distributed", PYTHONPATH=directory)
    if result.returncode != 0:
        pytest.skip(
            f"no joblib and Dask: {prefix}/bin/pip install --target=DIRECTORY joblib distributed,"
            f" and set {VARIABLE}=DIRECTORY"
        )
    return directory


def test_workers_have_one_thread_and_equal_results(
    prefix: Path, run: Callable[..., Result], packages: str, tmp_path: Path
) -> None:
    """joblib's and Dask's workers compute the losses of a loop without workers."""
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    section = page.partition("\n## Many tasks of one program\n")[2]
    joblib, dask, _ = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    joblib_main = joblib[joblib.index("if __name__") :]
    loop = "for rate in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):\n    print(*fit(step, rate))\n"
    outputs = []
    for name, main in (("loop", loop), ("joblib", joblib_main), ("dask", dask)):
        program = tmp_path / f"with_{name}.py"
        program.write_text(joblib.replace(joblib_main, main))
        done = run(prefix / "bin/python", program, PYTHONPATH=packages)
        assert done.returncode == 0, done.stderr
        outputs.append([line.split() for line in done.stdout.splitlines()])
    loop_output, *worker_outputs = outputs
    assert len(loop_output) == 6
    for worker_output in worker_outputs:
        expected = pytest.approx([float(loss) for loss, _ in loop_output], rel=1e-9)
        assert [float(loss) for loss, _ in worker_output] == expected
        assert {threads for _, threads in worker_output} == {"1"}
