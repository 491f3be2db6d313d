"""Build and run images in a real Docker daemon. If no daemon runs, the tests start a daemon."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from python_on_whales import DockerClient
from python_on_whales.exceptions import DockerException
from support import require, start_daemon
from test_environment import TRAIN

from builder import image_pipeline, report
from builder.common import errors, paths
from builder.environment import archives
from builder.environment.envs import Lock
from builder.image import base, build_context, images
from builder.image.images import Image
from builder.options import Options
from builder.package.channel import Package

# The fixture builds an image and verifies it, which takes minutes.
pytestmark = pytest.mark.thorough

# Docker's options for an ordinary user without an account, and a read-only root file system.
STRICT = {"user": "1234:1234", "read_only": True, "tmpfs": [Path("/tmp")]}


@pytest.fixture
def run(docker: DockerClient, image: Image) -> Callable[..., str]:
    """Return a function that runs a command in a container of the image and returns its output.

    The container has no network, unless ``networks`` names a network.
    """

    def run_in_container(*command: str, **options: object) -> str:
        options = {"networks": ["none"], **options}
        return docker.run(image.reference, command, remove=True, **options)  # type: ignore[call-overload, no-any-return]

    return run_in_container


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a directory to mount at /work, with a program; all users may write to it."""
    directory = tmp_path / "work"
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "train.py").write_text(TRAIN)
    return directory


def test_the_image_was_verified(image: Image) -> None:
    document = report.read(report.get_image_file("openblas"))
    assert document["id"] == image.id
    assert document["verify"]["verified"]
    assert document["verify"]["counts"]["failed"] == 0
    assert document["verify"]["counts"]["passed"] >= 7
    assert document["verify"]["facts"]["prefix"] == str(build_context.PREFIX)
    assert sum(image.layers.values()) == image.size < 600e6


def test_the_default_command_prints_and_verifies(run: Callable[..., str], tmp_path: Path) -> None:
    """The command runs `theano-fast info` and `theano-fast verify`, and returns verify's status."""
    stub = tmp_path / "theano-fast"
    stub.write_text('#!/bin/sh\necho "it was $*"\n[ "$*" = info ] || exit 7\n')
    stub.chmod(0o755)
    with pytest.raises(DockerException) as caught:
        run(volumes=[(stub, build_context.PREFIX / "bin" / "theano-fast", "ro")])
    assert caught.value.stdout == "it was info\nit was verify\n"
    assert caught.value.return_code == 7


def test_a_program_runs_as_any_user_and_read_only(run: Callable[..., str], work: Path) -> None:
    output = run("python", "train.py", volumes=[(work, "/work")], **STRICT)
    report = json.loads(output.splitlines()[-1])
    assert report["learns"]
    assert report["ldflags"] == f'"-L{build_context.PREFIX}/lib" -lopenblas'
    assert report["compiledir"].startswith("/home/theano/.theano/openblas/")
    assert "Dot22" in str(report["ops"]) or "Gemm" in str(report["ops"])


def test_the_compiledir_can_be_a_volume(
    docker: DockerClient, run: Callable[..., str], work: Path
) -> None:
    """The second container with the volume compiles no modules."""
    count_modules = "find /home/theano -name '*.so' | wc -l"
    with docker.volume.create() as volume:
        # Fix the order of sets: with a different order, Theano may compile different modules.
        options = {"envs": {"PYTHONHASHSEED": "0"}, **STRICT}
        options["volumes"] = [(work, "/work"), (volume, "/home/theano")]
        run("python", "train.py", **options)
        before = int(run("sh", "-c", count_modules, **options))
        run("python", "train.py", **options)
        assert int(run("sh", "-c", count_modules, **options)) == before > 0


def test_a_failed_check_is_the_containers_status(run: Callable[..., str]) -> None:
    check = ["theano-fast", "verify", "--check", "blas"]
    with pytest.raises(DockerException) as caught:
        run(*check, envs={"THEANO_FLAGS": "blas.ldflags="}, **STRICT)
    assert caught.value.return_code == 1
    assert "1 failed" in str(caught.value.stdout)


def test_the_environment_is_active_without_a_login_shell(run: Callable[..., str]) -> None:
    output = run("sh", "-c", "which python pip theano-fast; echo $CONDA_PREFIX; pwd")
    prefix = build_context.PREFIX
    assert output.splitlines() == [
        *(f"{prefix}/bin/{name}" for name in ("python", "pip", "theano-fast")),
        str(prefix),
        "/work",
    ]


@pytest.mark.parametrize(("options", "threads"), [({"cpus": 1}, "1"), ({"cpuset_cpus": [0]}, "1")])
def test_threads_follow_the_cpus_of_the_container(
    run: Callable[..., str], options: dict[str, object], threads: str
) -> None:
    """OMP_NUM_THREADS is the number of CPUs that Docker's options grant to the container."""
    show = ["python", "-c", "import os; print(os.environ['OMP_NUM_THREADS'])"]
    assert run(*show, **options) == threads
    assert run(*show) == str(len(os.sched_getaffinity(0)))


WAIT = "import time; print('ready', flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    "command", [("python", "-c", WAIT), ("sh", "-c", f'python -c "{WAIT}"; exit $?')]
)
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_signals_reach_the_program(
    docker: DockerClient, image: Image, command: tuple[str, ...], name: str, status: int
) -> None:
    """A signal to the container ends a program, and a program that a shell started."""
    with docker.run(image.reference, command, detach=True, networks=["none"]) as container:
        for _ in range(100):
            if "ready" in container.logs():
                break
            time.sleep(0.1)
        container.kill(signal=name)
        assert docker.wait(container) == status
        assert ("KeyboardInterrupt" in container.logs()) == (name == "SIGINT")


def test_labels_have_version_stack_and_lock_file(docker: DockerClient, image: Image) -> None:
    """No label contains a path of the checkout."""
    labels = docker.image.inspect(image.reference).config.labels
    assert labels is not None
    assert labels["theano-fast.stack"] == "openblas"
    lock = report.read(report.get_image_file("openblas"))["lock"]
    assert labels["theano-fast.lock"] == f"sha256:{lock}"
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert not [value for value in labels.values() if str(paths.ROOT) in value]


def test_the_image_has_no_files_of_the_build(run: Callable[..., str]) -> None:
    tools = "for tool in make cmake git gfortran pip python3; do which -a $tool; done"
    find_leftovers = "find /var/lib/apt/lists /var/cache/apt /var/log /tmp /root -type f -size +0"
    assert run("sh", "-c", f"{tools}; {find_leftovers}; true").splitlines() == [
        f"{build_context.PREFIX}/bin/pip",
        f"{build_context.PREFIX}/bin/python3",
        "/root/.bashrc",
        "/root/.profile",
    ]
    # No file is newer than the fixed time, and all users may read all files. Otherwise Python would
    # compile modules at each start.
    search = "find /opt/theano-fast -newermt 2020-07-29 -o -not -perm -o=r"
    assert run("sh", "-c", f"python -c 'import theano'; {search}") == ""


def test_a_saved_image_is_an_oci_archive_that_docker_loads(
    docker: DockerClient, image: Image, tmp_path: Path
) -> None:
    file = tmp_path / "openblas.tar"
    images.save_image(docker, image, file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["openblas.tar"]
    with tarfile.open(file) as tar:
        assert {"oci-layout", "index.json"} <= set(tar.getnames())
    with start_daemon(tmp_path) as new_daemon:
        new_daemon.load(file)
        loaded, built = (client.image.inspect(image.reference) for client in (new_daemon, docker))
        # Do not compare the times: the archive has a fixed time instead of the time of the build.
        assert tuple(loaded.root_fs.layers) == image.diff_ids
        for field in ("env", "entrypoint", "cmd", "volumes", "working_dir", "labels"):
            assert getattr(loaded.config, field) == getattr(built.config, field)
        version = ["theano-fast", "--version"]
        output = new_daemon.run(image.reference, version, networks=["none"], remove=True)
        assert output == "theano-fast 0.1.0"


def test_another_build_has_the_same_manifest(image: Image) -> None:
    image_pipeline.rebuild_image("openblas", Options())


# The tests below use a daemon with a small disk, a base image with a shell and two more programs,
# and a small context instead of an environment.

LOCK = Lock("openblas", "x", (Package(Path("/c/theano-fast-0.1.0-py_0.conda"), "noarch", "", 5),))


@pytest.fixture(scope="module")
def small_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerClient]:
    """Start a daemon with 100 MB of disk space; yield its client."""
    directory = tmp_path_factory.mktemp("small")
    require("dockerd", "mount", root=True)
    (directory / "data").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(directory / "data")]
    subprocess.run(mount, check=True)
    try:
        with start_daemon(directory) as client:
            yield client
    finally:
        subprocess.run(["umount", str(directory / "data")], check=True)


def make_base(docker: DockerClient, directory: Path, **scripts: str) -> base.Base:
    """Import a base image with this host's shell, getconf and sleep; ``scripts`` replace files.

    A keyword is the name of a file in /bin, and its value is the text of a shell script.
    """
    root = directory / "root"
    for program in ("/bin/sh", "/usr/bin/getconf", "/bin/sleep"):
        listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        libraries = [word for word in listing.stdout.split() if word.startswith("/")]
        for file in (program, *libraries):
            target = root / file.lstrip("/").removeprefix("usr/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(file).resolve(), target)
    for name, text in scripts.items():
        (root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / "bin" / name).chmod(0o755)
    tarball = directory / "tiny.tar"
    with tarfile.open(tarball, "w") as tar:
        tar.add(root, ".")
    docker.import_(tarball, tag="tiny:1")
    return base.find_base(docker, "tiny:1")


def write_context(directory: Path, size: int) -> Path:
    """Write a build context whose first layer contains ``size`` random bytes."""
    (directory / "context").mkdir()
    for name, content in (("dependencies", os.urandom(size)), ("stack", b"stack")):
        (directory / name).write_bytes(content)
        with (directory / "context" / f"{name}.tar").open("wb") as stream:
            archives.write_tar(stream, directory, [directory / name], build_context.PREFIX)
    return directory / "context"


def test_a_build_leaves_no_container_and_no_tag(small_daemon: DockerClient, tmp_path: Path) -> None:
    base_image = make_base(small_daemon, tmp_path)
    built = images.build_image(small_daemon, LOCK, base_image, write_context(tmp_path, 1000))
    assert built.layers["dependencies"] == 1000
    assert small_daemon.container.list(all=True) == []
    assert not small_daemon.image.exists(built.reference)


def test_a_moved_tag_leaves_no_untagged_image(small_daemon: DockerClient, tmp_path: Path) -> None:
    """If a second image gets the tag of the first image, the first image is removed."""
    base_image = make_base(small_daemon, tmp_path)
    for size in (1000, 2000):
        (tmp_path / str(size)).mkdir()
        context = write_context(tmp_path / str(size), size)
        built = images.build_image(small_daemon, LOCK, base_image, context)
        images.tag_image(small_daemon, built)
    label = ("label", "theano-fast.stack=openblas")
    assert [image.id for image in small_daemon.image.list(filters=[label])] == [built.id]
    small_daemon.image.remove(built.reference)


def test_a_full_disk_is_reported(small_daemon: DockerClient, tmp_path: Path) -> None:
    base_image = make_base(small_daemon, tmp_path)
    context = write_context(tmp_path, 120_000_000)
    with pytest.raises(errors.DiskFull, match="no space left on device"):
        images.build_image(small_daemon, LOCK, base_image, context)
    assert small_daemon.container.list(all=True) == []
    assert not small_daemon.image.exists(images.format_reference("openblas"))


def test_a_tag_of_another_project_is_not_moved(small_daemon: DockerClient, tmp_path: Path) -> None:
    """If theano-fast:openblas is an image of another project, the command fails."""
    make_base(small_daemon, tmp_path)
    images.require_free_tag(small_daemon, "openblas")
    small_daemon.tag("tiny:1", images.format_reference("openblas"))
    try:
        with pytest.raises(errors.UsageError, match="another project"):
            images.require_free_tag(small_daemon, "openblas")
    finally:
        small_daemon.image.remove(images.format_reference("openblas"))


def test_a_base_without_glibc_is_reported(small_daemon: DockerClient, tmp_path: Path) -> None:
    """A base image whose `getconf` fails has no glibc."""
    with pytest.raises(errors.ImageFailed, match="has no glibc"):
        make_base(small_daemon, tmp_path, getconf="exit 1")


def test_a_base_that_cannot_be_pulled_is_reported(small_daemon: DockerClient) -> None:
    with pytest.raises(errors.ImageFailed, match="base image nowhere:1 cannot be used"):
        base.find_base(small_daemon, "nowhere:1")
    with pytest.raises(errors.ImageFailed, match="nowhere:1 is absent, and --offline"):
        base.find_base(small_daemon, "nowhere:1", offline=True)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("image", "--stack=openblass"), 2, "choose one of"),
        (("image", "--stack=openblas", "--save=/nowhere/file.tar"), 2, "not a directory"),
        (("image", "--stack=openblas"), 6, "start the daemon"),
        (("base-image",), 6, "start the daemon"),
    ],
)
def test_wrong_arguments_and_a_missing_daemon_are_errors(
    arguments: tuple[str, ...], status: int, words: str
) -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not on PATH; as root: apt-get install docker.io")
    done = subprocess.run(
        [sys.executable, "-m", "invoke", *arguments],
        cwd=paths.ROOT,
        env={**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert words in done.stderr


def test_a_forbidden_socket_is_reported(small_daemon: DockerClient) -> None:
    """The error explains how a user gets the permission to open the daemon's socket."""
    program = f"import os; os.environ['DOCKER_HOST'] = {str(small_daemon.client_config.host)!r}\n"
    program += "from builder.image import daemon; daemon.connect()"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*nobody, sys.executable, "-c", program],
        cwd=paths.ROOT,
        env={**os.environ, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "HostToolMissing" in done.stderr
    assert "adduser USER docker" in done.stderr
