from __future__ import annotations

import pytest

from builder import image_pipeline
from builder.options import Options


def test_images_of_all_stacks_means_python_3(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(image_pipeline, "build_image", lambda name, *_: made.append(name))
    image_pipeline.build_all_images(Options())
    assert made == ["openblas", "mkl", "openblas-amdlibm", "mkl-amdlibm"]
