"""Write a stack's software bill of materials; print the digests that a user can sign."""

from __future__ import annotations

from pathlib import Path

from builder import report
from builder.common import files, paths, progress
from builder.common.errors import EnvironmentFailed
from builder.environment import envs, sbom
from builder.options import Options
from builder.pipeline import Build
from builder.source import sources
from builder.stack import stacks


def write_bill(name: str, options: Options) -> Path:
    """Write ``build/reports/<stack>.cdx.json``, a stack's software bill of materials.

    Also print the SHA-256 digests of the lock file, the bill, the environment and the image. Omit
    the environment if its packages differ from the lock file. Omit the image if it was not built.

    Returns:
        The path of the bill.

    Raises:
        EnvironmentFailed: a package of the stack is not built.
    """
    build = Build.create(name, options)
    stack_name = build.stack.name
    if build.missing:
        raise EnvironmentFailed(
            f"{name}: not built: {', '.join(recipe.name for recipe in build.missing)}",
            f"./invoke build {stacks.format_flags(stack_name)}",
        )
    lock = build.lock()
    file = paths.REPORTS / f"{stack_name}.cdx.json"
    files.write_atomically(file, sbom.format_bill(build.plan, lock))
    digests = {"lock": lock.digest, "bill of materials": sources.hash_file(file)}
    if envs.read_installed_digest(stack_name) == lock.digest:
        digests["environment"] = envs.hash_environment(paths.ENVIRONMENTS / stack_name)
    if image_id := report.read(report.get_image_file(stack_name)).get("id"):
        digests["image"] = str(image_id).removeprefix("sha256:")
    for subject, digest in digests.items():
        progress.say(f"{digest}  {subject}")
    progress.say(f"{stack_name}: bill of materials: {file}")
    return file
