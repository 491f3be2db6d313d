"""Test the labels of images, and that the Dockerfile agrees with the builder's constants."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from builder.common import paths
from builder.environment.envs import Lock
from builder.image import build_context, images
from builder.image.base import Base
from builder.package.channel import Package
from builder.stack import stacks

BASE = Base("debian:bookworm-slim", "sha256:0", 5, "2.36")
LOCK = Lock(
    "openblas", "x", (Package(Path("/c/theano-fast-0.1.0-py_0.conda"), "noarch", "ab" * 32, 5),)
)


def test_labels_describe_the_image() -> None:
    labels = images.make_labels(LOCK, BASE)
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert labels["org.opencontainers.image.base.name"] == "debian:bookworm-slim"
    assert labels["theano-fast.stack"] == "openblas"
    assert labels["theano-fast.lock"] == f"sha256:{LOCK.digest}"
    assert "security" not in labels["org.opencontainers.image.description"]


def test_the_label_of_a_python_2_image_warns() -> None:
    python = Package(Path("/c/python-2.7.18-h_0.conda"), "linux-64", "cd" * 32, 5)
    labels = images.make_labels(replace(LOCK, packages=(*LOCK.packages, python)), BASE)
    assert "no security fixes since 2020" in labels["org.opencontainers.image.description"]


def test_older_images_of_a_stack_with_programs_are_removed() -> None:
    """The filter has the label of the older images, which differs from the tag."""
    calls: list[Any] = []

    def prune(*, filters: list[tuple[str, str]]) -> None:
        calls.extend(filters)

    docker: Any = SimpleNamespace(
        tag=lambda *arguments: calls.append(arguments), image=SimpleNamespace(prune=prune)
    )
    lock = replace(LOCK, stack="openblas+keras")
    reference = images.format_reference(lock.stack)
    image = images.Image(reference, lock.stack, "sha256:1", BASE, 5, {"base": 5}, ())
    images.tag_image(docker, image)
    label = images.make_labels(lock, BASE)[images.STACK_LABEL]
    assert calls == [
        ("sha256:1", "theano-fast:openblas-keras"),
        ("label", f"theano-fast.stack={label}"),
    ]


def test_the_dockerfile_names_no_stack() -> None:
    text = paths.DOCKERFILE.read_text(encoding="utf-8")
    names = "|".join(stack.name for stack in stacks.load_all())
    assert not re.search(rf"\b({names})\b", text)


def test_the_dockerfile_has_the_builders_prefix_and_directories() -> None:
    text = paths.DOCKERFILE.read_text(encoding="utf-8")
    assert f"PATH={build_context.PREFIX}/bin:$PATH" in text
    home, work = build_context.SHARED
    assert f"HOME={home} " in text
    assert f"WORKDIR {work}\n" in text
