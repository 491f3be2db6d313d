from __future__ import annotations

import pytest

from builder import image_pipeline
from builder.pipeline import Options


def test_images_of_all_stacks_are_of_those_with_python_3(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(image_pipeline, "build", lambda name, *_: made.append(name))
    image_pipeline.build_all(Options())
    assert made == ["openblas", "mkl", "openblas-amdlibm", "mkl-amdlibm"]
