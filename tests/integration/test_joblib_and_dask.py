"""Run docs/clusters.md's examples with joblib and Dask, which the environment does not contain."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Result

from builder.common import paths

# pip install --target=DIRECTORY joblib distributed, with the environment's pip.
VARIABLE = "THEANO_FAST_JOBLIB_AND_DASK"


@pytest.fixture
def packages(prefix: Path, run: Callable[..., Result]) -> str:
    """Return the directory of both packages."""
    directory = os.environ.get(VARIABLE, "")
    result = run(prefix / "bin/python", "-c", "import joblib, distributed", PYTHONPATH=directory)
    if result.returncode != 0:
        pytest.skip(
            f"no joblib and Dask: {prefix}/bin/pip install --target=DIRECTORY joblib distributed,"
            f" and name it in {VARIABLE}"
        )
    return directory


def test_workers_have_one_thread_and_equal_results(
    prefix: Path, run: Callable[..., Result], packages: str, tmp_path: Path
) -> None:
    page = (paths.ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    section = page.partition("\n## Many tasks of one program\n")[2]
    joblib, dask, _ = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    start = joblib[joblib.index("if __name__") :]
    plain = "for rate in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):\n    print(*fit(step, rate))\n"
    outputs = []
    for name, end in (("plain", plain), ("joblib", start), ("dask", dask)):
        program = tmp_path / f"with_{name}.py"
        program.write_text(joblib.replace(start, end))
        done = run(prefix / "bin/python", program, PYTHONPATH=packages)
        assert done.returncode == 0, done.stderr
        outputs.append([line.split() for line in done.stdout.splitlines()])
    one, *others = outputs
    assert len(one) == 6
    for other in others:
        expected = pytest.approx([float(loss) for loss, _ in one], rel=1e-9)
        assert [float(loss) for loss, _ in other] == expected
        assert {threads for _, threads in other} == {"1"}
