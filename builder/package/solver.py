"""Index channels, solve match specs and install packages with py-rattler, in a subprocess.

Other modules use :func:`call`, which runs ``python -m builder.package.solver VERB REQUEST``. After
py-rattler's event loop has run, the interpreter can crash while it shuts down. Therefore the
subprocess ends with ``os._exit``, which omits the shutdown.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.common.errors import CommandFailed
from builder.common.processes import run


def call(verb: str, **request: Any) -> Any:
    """Run a verb in a subprocess, and return its JSON answer.

    Args:
        verb: ``index``, ``solve`` or ``install``.
        request: the arguments of the verb's function, such as :func:`_solve`.

    Raises:
        CommandFailed: the verb failed; the message comes from py-rattler.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        finished = run(
            [sys.executable, "-m", __name__, verb, file.name], cwd=paths.ROOT, check=False
        )
    last_line = (finished.output.strip().splitlines() or [""])[-1]
    if finished.status != 0:
        raise CommandFailed(
            finished.output.strip() or f"{verb}: ended with status {finished.status}"
        )
    return json.loads(last_line)


async def _index(channel: str, every_form: bool = False) -> None:
    """Index the channel in the directory ``channel``.

    Args:
        every_form: also write the compressed and the sharded form of repodata.json.
    """
    from rattler.index import index_fs  # noqa: PLC0415

    # By default write repodata.json only. Clients prefer the other forms, but the engine updates
    # only repodata.json, so the other forms would become outdated.
    await index_fs(Path(channel), write_zst=every_form, write_shards=every_form, force=True)
    # py-rattler leaves its temporary directory in the channel.
    shutil.rmtree(Path(channel) / ".tmp", ignore_errors=True)


async def _solve(channel: str, specs: list[str]) -> list[str]:
    """Return the paths, within a channel, of packages that satisfy match specs on this host."""
    from rattler import VirtualPackage, solve  # noqa: PLC0415
    from rattler.virtual_package import VirtualPackageOverrides  # noqa: PLC0415

    records = await solve(
        [f"file://{channel}"],
        specs,
        platforms=["linux-64", "noarch"],
        virtual_packages=VirtualPackage.detect(VirtualPackageOverrides.from_env()),
    )
    return sorted(f"{record.subdir}/{record.file_name}" for record in records)


async def _install(
    files: list[str], prefix: str, cache: str, final_prefix: str | None = None
) -> None:
    """Install package files into a prefix.

    Args:
        cache: the directory into which py-rattler unpacks packages.
        final_prefix: the path at which the environment will be used; None for ``prefix``.
    """
    from rattler import RepoDataRecord, install  # noqa: PLC0415

    records = [await RepoDataRecord.from_package_archive(file) for file in files]
    await install(
        records,
        target_prefix=prefix,
        cache_dir=Path(cache),
        show_progress=False,
        alternative_target_prefix=final_prefix,
    )


def main() -> int:
    """Run one verb on a JSON request; print its JSON answer last."""
    verbs: dict[str, Any] = {"index": _index, "solve": _solve, "install": _install}
    request = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    try:
        answer = asyncio.run(verbs[sys.argv[1]](**request))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
