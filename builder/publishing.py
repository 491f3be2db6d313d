"""Publish built stacks: packages and lock files in a conda channel, or images in a registry."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from builder import bill, image_pipeline, report
from builder.common import paths, progress
from builder.common.errors import EnvironmentFailed, ImageFailed
from builder.environment import envs
from builder.image import registry
from builder.options import Options
from builder.package import published
from builder.pipeline import Build
from builder.stack import stacks

BILL_MEDIA_TYPE = "application/vnd.cyclonedx+json"


def publish_packages(
    names: Sequence[str], options: Options, directory: Path, address: str = ""
) -> None:
    """Add the packages of stacks to a conda channel, and write lock files with the channel's URL.

    Args:
        names: the stacks; if empty, all stacks that are built.
        directory: the directory of the channel, which a web server can serve.
        address: the URL at which clients find the channel; "" for the URL ``file://`` of
            ``directory``.

    Raises:
        EnvironmentFailed: no stack is built.
    """
    built_names = [
        stack.name for stack in stacks.load_all() if envs.read_installed_digest(stack.name)
    ]
    locks = [Build.create(name, options).lock() for name in names or built_names]
    if not locks:
        raise EnvironmentFailed("no stack is built", "./invoke build --stack=openblas")
    published.publish({package for lock in locks for package in lock.packages}, directory)
    for lock in locks:
        envs.write_lock(lock, directory / "envs" / lock.stack, address or directory.as_uri())
    stack_names = ", ".join(lock.stack for lock in locks)
    progress.say(f"{stack_names}: packages and locks in {progress.display_path(directory)}")


def publish_images(names: Sequence[str], options: Options, address: str) -> None:
    """Push the images of stacks to a registry, with their software bills of materials.

    Args:
        names: the stacks; if empty, all stacks that have an image.
        address: the URL of a registry's repository: https://registry.example.org/theano-fast.

    Raises:
        ImageFailed: no stack has an image, or the registry refused an image.
    """
    repository = registry.Repository(address)
    built_names = [
        stack.name for stack in stacks.load_all() if report.get_image_file(stack.name).exists()
    ]
    if not (stack_names := names or built_names):
        raise ImageFailed("no stack has an image", "./invoke image --stack=openblas")
    for name in stack_names:
        with tempfile.TemporaryDirectory(dir=paths.IMAGES) as directory:
            file = Path(directory, "image.tar")
            image = image_pipeline.build_image(name, options, save=file)
            tag = image.reference.partition(":")[2]
            digest = repository.push(file, tag)
        document = bill.write_bill(name, options).read_bytes()
        repository.attach(digest, document, BILL_MEDIA_TYPE)
        progress.say(f"{repository.address}:{tag}@{digest}")
