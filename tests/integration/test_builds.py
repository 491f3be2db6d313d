"""Build a stack that contains only zlib with the real engine; check errors and partial files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support import Project, require

from builder.common import errors, processes
from builder.package import solver

BUILD = ("packages", "--stack=openblas")
REBUILD = ("rebuild", "--stack=openblas", "--package=zlib")


def append_to_build(project: Project, command: str) -> None:
    """Append a command to zlib's build script."""
    with (project.root / "recipes" / "zlib" / "build.sh").open("a") as script:
        script.write(f"{command}\n")


def wait_for_build(project: Project, recipe: str) -> None:
    """Wait at most 60 s until a recipe's build script prints "it began"."""
    log = project.root / "build" / "logs" / f"{recipe}.log"
    for _ in range(600):
        if log.exists() and "it began" in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise AssertionError(f"the build did not begin: {log}")


def list_builders(project: Project) -> list[str]:
    """Return the command lines of the processes that build in the project's work directory."""
    work = str(project.cache / "work")
    command_lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if work in command_line:
            command_lines.append(command_line)
    return command_lines


@pytest.mark.thorough
def test_an_offline_build_needs_no_network(
    project: Project, sources: Path, no_network: tuple[str, ...]
) -> None:
    """The first build reads ``--sources``; the second build takes its packages from the cache."""
    status, output = project.invoke(*BUILD, f"--sources={sources}", "--offline", wrap=no_network)
    assert status == 0, output
    assert list((project.root / "build" / "channel" / "linux-64").glob("zlib-*.conda"))
    before = time.monotonic()
    status, output = project.invoke(*BUILD, "--offline", wrap=no_network)
    assert status == 0, output
    assert "building" not in output, time.monotonic() - before


@pytest.mark.thorough
def test_two_builds_give_the_same_bytes(project: Project, sources: Path) -> None:
    status, output = project.invoke(*REBUILD, f"--sources={sources}")
    assert status == 0, output
    document = json.loads((project.root / "build/reports/openblas-rebuild.json").read_text())
    assert {package.partition("-")[0] for package in document["packages"]} == {"zlib"}


@pytest.mark.thorough
def test_traces_of_the_build_are_reported(project: Project, sources: Path) -> None:
    """`rebuild` names the file that contains the umask, which differs in the second build."""
    append_to_build(project, 'echo "# $(umask)" >> "$PREFIX/lib/pkgconfig/zlib.pc"')
    status, output = project.invoke(*REBUILD, f"--sources={sources}")
    assert status == errors.NotReproducible.exit_code, output
    assert "zlib-1.2.13" in output
    assert "lib/pkgconfig/zlib.pc" in output


@pytest.mark.thorough
def test_a_package_built_with_a_host_tool_is_reported(project: Project, sources: Path) -> None:
    """`rebuild` hides the host's perl, so the second build of a recipe that calls perl fails."""
    require("perl", "mount", root=True)
    append_to_build(project, "perl -e 1")
    status, output = project.invoke(*REBUILD, f"--sources={sources}")
    assert status == errors.BuildFailed.exit_code, output
    assert "the second build failed" in output


def test_a_package_that_names_its_build_directory_fails(project: Project, sources: Path) -> None:
    append_to_build(project, 'echo "# $SRC_DIR" >> "$PREFIX/lib/pkgconfig/zlib.pc"')
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == errors.BuildFailed.exit_code, output
    assert "lib/pkgconfig/zlib.pc contains the path of the build directory" in output


# Build lib/libf.so, which breaks four rules of ``builder/package/binaries.py``. The library needs a
# version of glibc that does not exist, a library that no package contains, and an executable stack.
# It also searches /opt/lib for libraries.
FOREIGN = """
echo 'GLIBC_2.99 { later; };' > later.map
echo 'void later(void) {}' > later.c
echo 'void nowhere(void) {}' > nowhere.c
echo 'void later(void); void nowhere(void); void f(void) { later(); nowhere(); }' > f.c
gcc -shared -nostdlib -o libc.so.6 -Wl,-soname,libc.so.6,--version-script,later.map later.c
gcc -shared -nostdlib -o libnowhere.so.1 -Wl,-soname,libnowhere.so.1 nowhere.c
gcc -shared -nostdlib -o "$PREFIX/lib/libf.so" -Wl,-z,execstack,-rpath,/opt/lib f.c libc.so.6 \\
    libnowhere.so.1
"""
VIOLATIONS = (
    r"lib/libf\.so needs GLIBC_2\.99 \(later\); packages must run on glibc \S+",
    r"lib/libf\.so needs libnowhere\.so\.1, which no dependency contains",
    r"lib/libf\.so searches '/opt/lib' for libraries, which is outside the prefix",
    r"lib/libf\.so needs an executable stack",
)


def test_a_binary_with_unmet_requirements_fails(project: Project, sources: Path) -> None:
    """Each violation fails the build, unless a pattern of `tolerated` matches the violation."""
    zlib = project.root / "recipes" / "zlib"
    with (zlib / "build.sh").open("a") as script:
        script.write(FOREIGN)
    recipe = zlib / "recipe.yaml"
    text = recipe.read_text().replace("strict: true", "strict: false")
    recipe.write_text(text.replace("overlinking_behavior: error", "binary_relocation: false", 1))
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == errors.BuildFailed.exit_code, output
    assert "recipe zlib failed: BuildFailed: zlib-1.2.13-" in output
    for violation in VIOLATIONS:
        assert re.search(violation, output), output
    with recipe.open("a") as file:
        file.write("  tolerated: [lib/lib*.so* *]\n")
    status, output = project.invoke(*BUILD)
    assert status == 0, output


@pytest.mark.thorough
def test_a_recipes_new_tests_run(project: Project, sources: Path) -> None:
    """A test that is added to a built recipe runs in the next build, and can fail this build."""
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == 0, output
    # Install the package: the installation unpacks the package, with the previous tests, into the
    # engine's cache.
    [built] = (project.root / "build" / "channel" / "linux-64").glob("zlib-*.conda")
    locations = {
        "prefix": str(project.root / "env"),
        "cache": str(project.cache / "rattler" / "pkgs"),
    }
    solver.call("install", files=[str(built)], **locations)
    recipe = project.root / "recipes" / "zlib" / "recipe.yaml"
    text = recipe.read_text()
    assert "tests:\n" in text
    recipe.write_text(text.replace("tests:\n", "tests:\n  - script: [exit 3]\n", 1))
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == errors.BuildFailed.exit_code, output


def test_no_network_is_a_clear_error(project: Project, no_network: tuple[str, ...]) -> None:
    status, output = project.invoke(*BUILD, wrap=no_network)
    assert status == errors.SourceUnavailable.exit_code, output
    assert "zlib_1.2.13.dfsg.orig.tar.bz2 cannot be downloaded" in output
    assert "--sources" in output
    assert project.list_partial_files() == []


def test_a_truncated_source_is_a_clear_error(project: Project, sources: Path) -> None:
    [archive] = sources.iterdir()
    archive.write_bytes(archive.read_bytes()[:-100])
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == errors.HashMismatch.exit_code, output
    assert str(archive) in output.replace("\n", "")
    assert project.list_partial_files() == []


def test_a_failing_recipe_shows_reason_and_log(project: Project, sources: Path) -> None:
    script = project.root / "recipes" / "zlib" / "build.sh"
    script.write_text("#!/bin/bash\necho the reason it fails >&2\nexit 1\n")
    status, output = project.invoke(*BUILD, f"--sources={sources}")
    assert status == errors.BuildFailed.exit_code, output
    assert "recipe zlib failed: the reason it fails" in output
    # The log ends with lines of the engine. The message omits them.
    assert "| Script failed" not in output
    assert "zlib.log" in output
    assert str(project.cache / "work" / "zlib") in output


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_stops_all_processes_and_is_resumed(
    project: Project, sources: Path, number: signal.Signals
) -> None:
    script = project.root / "recipes" / "zlib" / "build.sh"
    original = script.read_text()
    script.write_text("#!/bin/bash\necho it began\nsleep 600\n")
    process = project.start(*BUILD, f"--sources={sources}")
    wait_for_build(project, "zlib")
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert "interrupted: 6 of 8 recipes are built; run again to continue" in output
    for _ in range(100):
        if not list_builders(project):
            break
        time.sleep(0.1)
    assert list_builders(project) == []
    assert project.list_partial_files() == []
    script.write_text(original)
    status, output = project.invoke(*BUILD)
    assert status == 0, output
    assert "built    gcc-runtime" not in output
    assert "openblas: resuming: 6 of 8 recipes are built, 2 to build" in output


@pytest.mark.thorough
def test_without_a_terminal_the_output_is_plain_text(project: Project, sources: Path) -> None:
    arguments = (*BUILD, f"--sources={sources}", "--timings")
    status, output = project.invoke(*arguments, FORCE_COLOR="1")
    assert status == 0, output
    # The output has only newlines and printable ASCII: no cursor movements and no colours.
    assert re.sub(r"[\n\x20-\x7e]", "", output) == ""
    assert output.startswith("openblas: 2 of 8 recipes to build, about ")
    assert "\n1/2 fetch        1 file, 1 MB, 0:0" in output
    assert "\n2/2 packages     2 built, 0:" in output
    assert "\nzlib         * " in output
    assert re.search(r"\nopenblas: \d+ packages in build/channel\n$", output)
    status, output = project.invoke(*BUILD, "--quiet")
    assert (status, output.count("\n")) == (0, 1), output


@pytest.mark.thorough
def test_verbose_shows_the_logs(project: Project, sources: Path) -> None:
    status, output = project.invoke(*BUILD, f"--sources={sources}", "--verbose")
    assert status == 0, output
    assert "\nzlib | + make install\n" in output
    assert "\x1b" not in output


def test_on_a_terminal_the_progress_is_one_line_that_changes(
    project: Project, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = {"COLUMNS": "80", "LINES": "24"}
    arguments = (*BUILD, f"--sources={sources}", "--offline")
    status, output = project.invoke_on_terminal(monkeypatch, *arguments, NO_COLOR="1", **size)
    assert status == 0
    assert re.search(r"\r\x1b\[2K2/2 packages, \d+ s left: 0 of 2 built: zlib", output)
    assert not re.search(r"\x1b\[[0-9;]*m", output)
    assert "built    zlib" not in output
    # The terminal shows the part of a line after the last erasure.
    visible = [line.rpartition("\x1b[2K")[2] for line in output.replace("\r\n", "\n").splitlines()]
    assert max(map(len, visible)) <= 80 + len(str(sources)) + len(str(project.cache))


def test_lower_priority_raises_the_niceness_of_a_command(tmp_path: Path) -> None:
    """If the kernel has autogroups, lower_priority also raises the autogroup's niceness."""
    log = tmp_path / "log"
    process = processes.start(["sleep", "60"], env=dict(os.environ), cwd=tmp_path, log=log)
    try:
        processes.lower_priority(process.pid, 10)
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(niceness + 10, 19)
        group = Path("/proc", str(process.pid), "autogroup")
        if group.exists() and (text := group.read_text()) and "/autogroup-" in text:
            assert text.split()[-1] == str(min(niceness + 10, 19))
    finally:
        process.kill()
        process.communicate()


def test_an_interrupted_command_leaves_no_process(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            # run_logged must kill the shell's background job, because SIGINT does not end this job.
            command = ["sh", "-c", "echo $$; sleep 600 & wait"]
            processes.run_logged(command, env=dict(os.environ), log=tmp_path / "log")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # The shell leads its session, so its process ID is the session's ID.
    shell = (tmp_path / "log").read_text().strip()

    def list_living_processes() -> list[Path]:
        living_processes = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, _, session, *_ = file.read_text().rpartition(")")[2].split()
                living_processes += [file] if session == shell and state != "Z" else []
        return living_processes

    # Killed processes need a moment to end.
    deadline = time.monotonic() + processes.GRACE_SECONDS
    while list_living_processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list_living_processes() == []


@pytest.mark.thorough
def test_a_full_disk_is_reported_and_the_next_build_continues(
    project: Project, sources: Path
) -> None:
    require("mount", root=True)
    built = project.cache.rename(project.root / "built")
    project.cache.mkdir()
    size = sum(file.stat().st_size for file in built.rglob("*.conda")) + 10_000_000
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(project.cache)]
    subprocess.run(mount, check=True)
    try:
        shutil.copytree(built / "packages", project.cache / "packages")
        status, output = project.invoke(*BUILD, f"--sources={sources}")
        assert status == errors.DiskFull.exit_code, output
        assert project.list_partial_files() == []
        subprocess.run(["mount", "-o", "remount,size=2g", str(project.cache)], check=True)
        status, output = project.invoke(*BUILD)
        assert status == 0, output
    finally:
        subprocess.run(["umount", str(project.cache)], check=True)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("build", "--stack=openblass"), 2, "choose one of"),
        (("build", "--stack=openblas", "--engine=make"), 2, "rattler-build, conda-build"),
        (("build", "--stack=openblas", "--sources=/nowhere"), 2, "not a directory"),
        (("verify", "--stack=openblas"), 9, "invoke build --stack=openblas"),
        (("build", "--stak=openblas"), 2, "No idea what"),
        (("--offline", "build"), 2, "No idea what '--offline' is"),
        (("bulid",), 2, "./invoke --list"),
        (("build",), 2, "--stack=NAME is missing"),
    ],
)
def test_wrong_arguments_have_an_exit_status_and_a_hint(
    project: Project, arguments: tuple[str, ...], status: int, words: str
) -> None:
    code, output = project.invoke(*arguments)
    assert code == status, output
    assert words in output


@pytest.mark.thorough
def test_sources_are_collected_for_another_machine(project: Project, tmp_path: Path) -> None:
    status, output = project.invoke("fetch", "--stack=openblas", f"--to={tmp_path / 'sources'}")
    assert status == 0, output
    sources = {file.name for file in (tmp_path / "sources").iterdir()}
    # The directory contains the sources of the compilers' recipes too.
    assert {"zlib_1.2.13.dfsg.orig.tar.bz2", "gcc-10_10.2.1-6_amd64.deb"} <= sources
