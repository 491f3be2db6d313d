"""Build a stack's image in stages: base image, context, layers, verification, tag, report."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from builder import report
from builder.common import paths, progress
from builder.common.errors import NotReproducible, UsageError
from builder.image import base, build_context, daemon, images, sif
from builder.image.images import Image
from builder.options import Options
from builder.pipeline import Build, load_stack
from builder.stack import stacks, toolchain


def build_base() -> str:
    """Build the default base image from the host's Debian mirrors; return its reference."""
    reference = base.create_base(daemon.connect())
    progress.say(reference)
    return reference


def build_image(
    name: str, options: Options, base_name: str = "", save: Path | None = None
) -> Image:
    """Build a stack's image, verify it in a container, tag it, and write its report.

    Skip verification if the previous report has the same image ID.

    Args:
        base_name: the base image's reference; "" for the default base image.
        save: the OCI archive to write; None to write no archive.

    Raises:
        UsageError: the directory of ``save`` does not exist, or an image of another project has the
            tag.
        ImageFailed: the base image or the image could not be built.
        VerifyFailed: a check failed. The image then gets no tag.
    """
    stack = load_stack(name, options)
    if save and not save.parent.is_dir():
        raise UsageError(f"{save.parent} is not a directory", "create it, or name another file")
    docker = daemon.connect()
    images.require_free_tag(docker, stack.name)
    build = Build.create(name, options, ("image",))
    lock = build.lock()
    base_image = base.find_base(docker, base_name, offline=options.offline)
    base.require_glibc(base_image, toolchain.read_oldest_glibc())
    context = paths.IMAGES / stack.name
    progress.say(f"building {images.format_reference(stack.name)} on {base_image.reference}")
    with build.steps.run_step("image") as step:
        began = time.monotonic()
        build_context.write_context(lock, context)
        context_written = time.monotonic()
        image = images.build_image(docker, lock, base_image, context)
        ended = time.monotonic()
        step.result = f"{image.size / 1e6:.0f} MB"
    seconds = {
        "context": round(context_written - began, 1),
        "build": round(ended - context_written, 1),
    }
    document = report.describe_image(image, lock)
    file = report.get_image_file(stack.name)
    previous = report.read(file)
    if previous.get("id") == image.id:
        document |= {key: previous[key] for key in ("seconds", "verify")}
    else:
        document |= {"seconds": seconds, "verify": images.verify_image(docker, image)}
    images.tag_image(docker, image)
    report.write(document, file)
    progress.print_table(
        ["layer", "MB"], [[layer, f"{size / 1e6:.1f}"] for layer, size in image.layers.items()]
    )
    if save:
        images.save_image(docker, image, save)
        progress.say(f"{image.reference}: saved as {save}")
    progress.say(f"{image.reference}: verified; {image.size / 1e6:.0f} MB; report: {file}")
    return image


def rebuild_image(
    name: str, options: Options, base_name: str = "", save: Path | None = None
) -> None:
    """Build a stack's image twice and compare the digests of the two manifests.

    The second build does not use Docker's cache of layers.

    Raises:
        UsageError: the directory of ``save`` does not exist, or an image of another project has the
            tag.
        ImageFailed: the image was not built.
        VerifyFailed: a check failed.
        NotReproducible: the digests of the two manifests differ.
    """
    docker = daemon.connect()
    first = build_image(name, options, base_name, save)
    lock = Build.create(name, options).lock()
    second = images.build_image(docker, lock, first.base, paths.IMAGES / lock.stack, no_cache=True)
    with tempfile.TemporaryDirectory(dir=paths.IMAGES) as directory:
        archive = Path(directory, "image.tar")
        digests = [images.save_image(docker, image, archive) for image in (first, second)]
    if second.id != first.id:
        docker.image.remove(second.id)
    if digests[0] != digests[1]:
        changed = [a for a, b in zip(first.diff_ids, second.diff_ids, strict=True) if a != b]
        raise NotReproducible(
            f"two builds of {first.reference} differ: {digests[0]}, {digests[1]}",
            f"layers that differ: {', '.join(changed) or 'none; the configurations differ'}",
        )
    progress.say(f"{first.reference}: two builds have the manifest {digests[0]}")


def convert_to_sif(archive: Path, target: Path) -> None:
    """Convert an OCI archive to a SIF file; write the definition file next to the archive.

    Raises:
        HostToolMissing: Apptainer is not on PATH. The definition file is written in this case too.
        ImageFailed: Apptainer could not build the file.
    """
    sif.build_sif(archive, target)
    progress.say(f"{target}: {target.stat().st_size / 1e6:.0f} MB, for Apptainer")


def build_all_images(options: Options, base_name: str = "") -> None:
    """Build the images of all CPU stacks with Python 3."""
    for stack in stacks.load_all():
        if stack.device == "cpu" and not stack.has_python_2:
            build_image(stack.name, options, base_name)
