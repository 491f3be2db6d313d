"""The images of stacks: their verbs, from a stack's lock on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from builder import pipeline, report
from builder.common import paths, progress
from builder.common.errors import ImageFailed, NotReproducible, UsageError
from builder.image import base, build_context, daemon, images, registry, sif
from builder.image.images import Image
from builder.pipeline import Options, load, lock
from builder.stack import stacks, toolchain

# The media type of a bill of materials.
BILL = "application/vnd.cyclonedx+json"


def build_base() -> str:
    """The base image, made anew from the host's Debian mirrors; its reference."""
    reference = base.create(daemon.connect())
    progress.say(reference)
    return reference


def build(name: str, options: Options, base_name: str = "", save: Path | None = None) -> Image:
    """The stack's image: built, verified in a container, tagged, reported, and saved to ``save``.

    An image that verified before is not verified again.
    """
    stack = load(name, options)
    if save and not save.parent.is_dir():
        raise UsageError(f"{save.parent} is not a directory")
    docker = daemon.connect()
    images.claim(docker, stack.name)
    planned, resolved = lock(name, options, then=("image",))
    found = base.find(docker, base_name, offline=options.offline)
    base.require(found, toolchain.floor())
    directory = paths.IMAGES / stack.name
    progress.say(f"building {images.reference(stack.name)} on {found.reference}")
    with planned.steps.step("image") as step:
        began = time.monotonic()
        build_context.write(resolved, directory)
        written = time.monotonic()
        built = images.build(docker, resolved, found, directory)
        ended = time.monotonic()
        step.did = f"{built.size / 1e6:.0f} MB"
    seconds = {"context": round(written - began, 1), "build": round(ended - written, 1)}
    document = report.image_document(built, resolved)
    file = report.image_file(stack.name)
    before = report.read(file)
    if before.get("id") == built.id:
        document |= {key: before[key] for key in ("seconds", "verify")}
    else:
        document |= {"seconds": seconds, "verify": images.prove(docker, built)}
    images.tag(docker, built)
    report.write(document, file)
    progress.table(
        ["layer", "MB"], [[layer, f"{size / 1e6:.1f}"] for layer, size in built.layers.items()]
    )
    if save:
        images.save(docker, built, save)
        progress.say(f"{built.reference}: saved as {save}")
    progress.say(f"{built.reference}: verified; {built.size / 1e6:.0f} MB; report: {file}")
    return built


def rebuild(name: str, options: Options, base_name: str = "", save: Path | None = None) -> None:
    """The stack's image built once more, none of its layers from before, and compared.

    Raises:
        ImageFailed: the image was not built.
        NotReproducible: the digests of the two manifests differ.
    """
    docker = daemon.connect()
    first = build(name, options, base_name, save)
    _, resolved = lock(name, options)
    second = images.build(docker, resolved, first.base, paths.IMAGES / resolved.stack, anew=True)
    with tempfile.TemporaryDirectory(dir=paths.IMAGES) as directory:
        digests = [
            images.save(docker, one, Path(directory, "image.tar")) for one in (first, second)
        ]
    if second.id != first.id:
        docker.image.remove(second.id)
    if digests[0] != digests[1]:
        changed = [a for a, b in zip(first.diff_ids, second.diff_ids, strict=True) if a != b]
        raise NotReproducible(
            f"two builds of {first.reference} differ: {digests[0]}, {digests[1]}",
            f"layers that differ: {', '.join(changed) or 'none, but the configuration does'}",
        )
    progress.say(f"{first.reference}: two builds have the manifest {digests[0]}")


def for_apptainer(archive: Path, target: Path) -> None:
    """A SIF file of a saved image, and its definition file."""
    sif.build(archive, target)
    progress.say(f"{target}: {target.stat().st_size / 1e6:.0f} MB, for Apptainer")


def publish(names: Iterable[str], options: Options, to: str) -> None:
    """Push the images of stacks to a repository of a registry, their bills of materials attached.

    Args:
        names: the stacks; none for all that have an image.
        to: its URL.
    """
    repository = registry.Repository(to)
    made = [stack.name for stack in stacks.load_all() if report.image_file(stack.name).exists()]
    if not (chosen := list(names) or made):
        raise ImageFailed("no stack has an image", "./invoke image --stack=openblas")
    for name in chosen:
        with tempfile.TemporaryDirectory(dir=paths.IMAGES) as directory:
            file = Path(directory, "image.tar")
            built = build(name, options, save=file)
            tag = built.reference.partition(":")[2]
            digest = repository.push(file, tag)
        repository.attach(digest, pipeline.bill(name, options).read_bytes(), BILL)
        progress.say(f"{repository.address}:{tag}@{digest}")


def build_all(options: Options, base_name: str = "") -> None:
    """The image of each stack that needs no GPU, but for those of 2017."""
    for stack in stacks.load_all():
        if stack.device == "cpu" and not stack.old:
            build(stack.name, options, base_name)
