"""Test the selection of stacks whose images are built."""

from __future__ import annotations

import pytest

from builder import image_pipeline
from builder.options import Options


def test_only_images_with_python_3_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    images: list[str] = []
    monkeypatch.setattr(image_pipeline, "build_image", lambda name, *_: images.append(name))
    image_pipeline.build_all_images(Options())
    assert images == ["openblas", "mkl", "openblas-amdlibm", "mkl-amdlibm"]
