"""build/trusted-compiledir.patch ignores files that other users could have written.

Without the patch, Theano loads modules and graphs from a compiledir to which everyone may write. If
this user may not write to the compiledir, theano cannot be imported.
"""

import ctypes
import grp
import json
import logging
import os
import pwd
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from recording import COMPILED
from theano import config
from theano.gof import cmodule, module_files
from theano.misc import compiledirs, trust

# Prints the number of compiled modules, the compiledir and a result.
PROGRAM = (
    COMPILED
    + """
import json
x = tt.dvector()
function = [tt.exp, tt.cos][{number} - 1]
result = theano.function([x], function(x) + {number})([0.0]).tolist()
print(json.dumps([len(compiled), theano.config.compiledir, result]))
"""
)
NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a file")


def obey_modes():
    """Make file modes apply to root too."""
    libc = ctypes.CDLL(None)
    pr_capbset_drop = 24
    # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    for capability in (1, 2, 3):
        libc.prctl(pr_capbset_drop, capability, 0, 0, 0)


@pytest.fixture
def new_base():
    """Return a base_compiledir that does not exist yet, below a directory that others may enter."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory, "new_base", "base")


@pytest.fixture
def run(base_environ, new_base):
    """Return a function that runs PROGRAM in a process that obeys file modes.

    It returns the number of compiled modules, the process's compiledir, and the log.
    """

    def run(number=1, flags="", umask=0o022, **options):
        environ = {
            **base_environ,
            "THEANO_FLAGS": f"base_compiledir={new_base},cmodule.shipped=,{flags}",
        }
        completed = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(number=number)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            umask=umask,
            preexec_fn=obey_modes,
            **options,
        )
        assert completed.returncode == 0, completed.stderr
        compiled, compiledir, result = json.loads(completed.stdout)
        assert result == [1.0 + number]
        return compiled, Path(compiledir), completed.stderr

    return run


def find_file(pattern, directory):
    """Return the only file of a directory that matches a pattern."""
    (file,) = directory.glob(pattern)
    return file


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_own_modules_are_loaded_for_any_umask(run, new_base, umask):
    compiled, first, log = run(umask=umask)
    assert (compiled, log) == (1, "")
    assert run(umask=umask) == (0, first, "")
    assert first.is_relative_to(new_base)
    for file in [new_base, *new_base.rglob("*")]:
        # Theano loads no files of the lock's directory, so their modes do not matter.
        if "lock_dir" not in file.parts[:-1] and not file.is_symlink():
            assert not file.stat().st_mode & 0o022, file


def check_refused(run, first, *words):
    """Check that nothing in the compiledir is loaded, and that one warning has the words."""
    before = sorted(first.rglob("*"))
    compiled, used, log = run()
    assert compiled == 1
    assert used != first
    # The process used a private directory, and removed it at its end.
    assert not used.exists()
    assert log.count("WARNING") == 1
    for word in (*words, "chmod go-w", "cmodule.trusted", "base_compiledir"):
        assert word in log
    assert sorted(first.rglob("*")) == before


def test_compiledir_writable_by_everyone_is_not_used(run):
    _, first, _ = run()
    first.chmod(0o777)
    check_refused(run, first, f"everyone may write to {first}")
    first.chmod(0o755)
    assert run() == (0, first, "")


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o1777, True), (0o775, True)])
def test_a_base_compiledir_that_everyone_may_write_to_is_not_used(run, new_base, mode, used):
    """The sticky bit (0o1777), or write permission only for a group (0o775), is accepted."""
    _, first, _ = run()
    # Theano does not check the parent of base_compiledir.
    new_base.parent.chmod(0o777)
    new_base.chmod(mode)
    if used:
        assert run() == (0, first, "")
    else:
        check_refused(run, first, f"everyone may write to {new_base}")


def test_an_own_compiledir_below_a_public_directory_is_used(run, new_base):
    new_base.parent.mkdir(0o755)
    new_base.parent.chmod(0o777)
    other = new_base.parent / "other"
    assert run(flags=f"compiledir={other}") == (1, other, "")


@root
def test_a_sticky_base_compiledir_of_another_user_is_not_used(run, new_base):
    _, first, _ = run()
    new_base.chmod(0o1777)
    os.chown(new_base, NOBODY, NOBODY)
    check_refused(run, first, f"everyone may write to {new_base}")


@root
def test_compiledir_of_a_group_is_used_only_if_named(run):
    _, first, _ = run()
    os.chown(first, -1, NOBODY)
    first.chmod(0o775)
    check_refused(run, first, f"may write to {first}", grp.getgrgid(NOBODY).gr_name)
    assert run(flags=f"cmodule.trusted=@{NOBODY}") == (0, first, "")
    assert run(flags=f"cmodule.trusted=missing:@{grp.getgrgid(NOBODY).gr_name}") == (0, first, "")


@root
def test_compiledir_of_another_user_is_used_only_if_named(run):
    _, first, _ = run()
    for file in [first, *first.rglob("*")]:
        os.chown(file, NOBODY, NOBODY)
    check_refused(run, first, "belongs to nobody")
    for name in ("nobody", NOBODY):
        assert run(flags=f"cmodule.trusted={name}") == (0, first, "")
    first.chmod(0o777)
    compiled, used, _ = run(flags="cmodule.trusted=nobody")
    assert (compiled, used == first) == (1, False)


@pytest.mark.parametrize("pattern", ["tmp*", "tmp*/key.pkl", "tmp*/*.so", "optimized_graphs"])
def test_a_file_that_others_could_have_written_is_ignored(run, pattern):
    _, first, _ = run()
    file = find_file(pattern, first)
    file.chmod(0o777)
    compiled, used, log = run()
    assert (compiled, used) == (1 if "tmp" in pattern else 0, first)
    assert log.count("WARNING") == 1
    assert f"everyone may write to {file}" in log


def test_writable_files_in_a_private_directory_are_loaded(run):
    """Others cannot write to a file whose directory they may not enter."""
    _, first, _ = run()
    find_file("tmp*", first).chmod(0o700)
    for file in first.glob("tmp*/*"):
        file.chmod(0o777)
    assert run() == (0, first, "")


@root
@pytest.mark.parametrize("pattern", ["tmp*/key.pkl", "tmp*/*.so", "optimized_graphs/*"])
def test_a_file_of_another_user_is_ignored(run, pattern):
    _, first, _ = run()
    os.chown(find_file(pattern, first), NOBODY, NOBODY)
    compiled, _, log = run()
    assert compiled == (1 if "tmp" in pattern else 0)
    assert log.count("WARNING") == 1
    assert "belongs to nobody" in log


def test_a_group_whose_only_member_is_the_user_is_trusted(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o664)
    status = (tmp_path / "file").stat()
    user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)

    def find_risk(name, members, number=status.st_gid):
        """Return the risk of a file whose group has a name and members.

        `number` is the user's primary group.
        """
        owner = pwd.struct_passwd((user.pw_name, "x", status.st_uid, number, "", "/", "/bin/sh"))
        group = grp.struct_group((name, "x", status.st_gid, members))
        monkeypatch.setattr(trust.pwd, "getpwuid", lambda _: owner)
        monkeypatch.setattr(trust.grp, "getgrgid", lambda _: group)
        trust._is_own_group.cache_clear()
        return trust.find_risk("file", status)

    own = user.pw_name
    assert find_risk(own, []) is None
    assert find_risk(own, [own]) is None
    assert find_risk(own, [own, "other"]) == f"the group {own} may write to file"
    assert find_risk("users", []) == "the group users may write to file"
    assert find_risk(own, [], status.st_gid + 1) is not None
    monkeypatch.setattr(trust.os, "listxattr", lambda _: ["system.posix_acl_access"])
    assert find_risk(own, []) is not None
    monkeypatch.undo()
    trust._is_own_group.cache_clear()
    assert group == grp.getgrgid(status.st_gid)


def make_read_only(directory):
    """Remove write permission from a directory and all its contents."""
    for file in [directory, *directory.rglob("*")]:
        file.chmod(file.stat().st_mode & ~0o222)


def make_writable(directory):
    """Give the user write permission for a directory and all its contents."""
    for file in [directory, *directory.rglob("*")]:
        file.chmod(file.stat().st_mode | 0o200)


def test_a_read_only_compiledir_serves_its_modules(run):
    _, first, _ = run()
    make_read_only(first)
    before = sorted(first.rglob("*"))
    assert run() == (0, first, "")
    compiled, used, log = run(number=2)
    assert (compiled, used) == (1, first)
    assert log.count("WARNING") == 1
    assert f"{first} takes no more modules" in log
    assert "Traceback" not in log
    assert sorted(first.rglob("*")) == before
    make_writable(first)
    assert run(number=2) == (1, first, "")


def test_unreadable_files_are_ignored(run):
    _, first, _ = run()
    (first / "tmpother").mkdir(0)
    (first / "optimized_graphs").chmod(0)
    assert run() == (0, first, "")
    find_file("tmp*/key.pkl", first).chmod(0)
    assert run() == (1, first, "")
    assert run() == (0, first, "")
    for directory in ("tmpother", "optimized_graphs"):
        (first / directory).chmod(0o700)


def test_a_private_directory_replaces_a_compiledir_that_cannot_be_created(run, new_base):
    new_base.parent.mkdir()
    new_base.parent.chmod(0o555)
    compiled, used, log = run()
    assert compiled == 1
    assert not used.is_relative_to(new_base)
    assert not used.exists()
    assert log.count("WARNING") == 1
    assert "Permission denied" in log
    assert "base_compiledir" in log
    new_base.parent.chmod(0o755)


@root
def test_a_compiledir_of_root_serves_other_users(run):
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if not all(parent.stat().st_mode & 0o001 for parent in Path(sys.executable).resolve().parents):
        pytest.skip("other users may not enter the directory of this environment")
    _, first, _ = run()
    assert run(**nobody) == (0, first, "")
    compiled, used, log = run(number=2, **nobody)
    assert (compiled, used) == (1, first)
    assert log.count("WARNING") == 1


@pytest.fixture
def seed(run, new_base):
    """Return a seed cache: a read-only compiledir with the modules of one function."""
    run()
    base = new_base.with_name("seed")
    new_base.rename(base)
    (directory,) = base.iterdir()
    make_read_only(directory)
    yield directory
    make_writable(directory)


def read_files(directory):
    """Return a dictionary from the files below a directory to their contents."""
    return {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_a_seed_is_used_and_not_changed(run, new_base, seed):
    before = read_files(seed)
    flags = f"cmodule.seeds=/missing:{seed.parent}"
    compiled, used, log = run(flags=flags)
    assert (compiled, used.parent, log) == (0, new_base, "")
    assert run(number=2, flags=flags) == (1, used, "")
    assert read_files(seed) == before
    # The process's own cache contains the second graph, but not the seed's graph.
    assert len(list(used.glob("optimized_graphs/*"))) == 1


def test_a_seeds_module_serves_another_graph(run, new_base, seed):
    before = read_files(seed)
    flags = f"cmodule.seeds={seed.parent}"
    compiled, used, _ = run(flags=f"{flags},cache_optimizations=False")
    assert (compiled, list(used.glob("tmp*")), read_files(seed)) == (0, [], before)


def test_key_files_of_a_seed_are_not_written(monkeypatch, tmp_path):
    monkeypatch.setattr(compiledirs, "list_seeds", lambda: (tmp_path,))
    path = str(tmp_path / "key.pkl")
    cmodule.KeyData(set(), "hash", path, f"{path}.so").save_pkl()
    assert path in module_files.unsaved
    assert not list(tmp_path.iterdir())


def test_a_seed_that_others_could_have_written_is_ignored(run, new_base, seed):
    seed.chmod(0o777)
    compiled, used, log = run(flags=f"cmodule.seeds={seed.parent}")
    assert (compiled, used.parent) == (1, new_base)
    assert log.count("WARNING") == 1
    assert f"{seed} is ignored: everyone may write to {seed}" in log


def test_damaged_modules_of_a_seed_are_compiled_again(run, new_base, seed):
    make_writable(seed)
    find_file("tmp*/*.so", seed).write_bytes(b"\x7fELF")
    before = read_files(seed)
    compiled, used, log = run(flags=f"cmodule.seeds={seed.parent}")
    assert (compiled, used.parent, log) == (1, new_base, "")
    assert read_files(seed) == before


def test_full_cache_loses_its_least_used_modules(run):
    _, first, _ = run()
    old = [find_file("tmp*/*.so", first), find_file("optimized_graphs/*", first)]
    for file in old:
        os.utime(file, (0, time.time() - 2 * 24 * 60 * 60))
    os.utime(old[0], (time.time() - 2 * 24 * 60 * 60, 0))
    large = first / "optimized_graphs" / "large"
    large.write_bytes(bytes(2 * 10**6))
    run(number=2, flags="cmodule.max_size=3")
    assert [file.exists() for file in old] == [True, True]
    run(number=2, flags="cmodule.max_size=1")
    assert [file.exists() for file in old] == [False, False]
    assert large.exists()
    assert run(number=2)[0] == 0


def test_loading_updates_access_times(monkeypatch, tmp_path):
    library = tmp_path / "module.so"
    library.touch()
    os.utime(library, (0, 0))
    monkeypatch.setattr(trust, "read_trusted", lambda _: b"")
    module_files.check_library(str(library), None)
    assert time.time() - library.stat().st_atime < 60 * 60


def test_nobody_is_trusted_by_default():
    assert config.cmodule.trusted == ""


def test_a_kernel_cache_that_others_could_have_written_is_refused(run_python, tmp_path):
    kernels = tmp_path / "above" / "kernels"
    code = """
import pathlib
from theano.gpuarray import driver
kernels = pathlib.Path({kernels!r})
assert driver.may_keep(str(kernels))
kernels.chmod(0o777)
assert not driver.may_keep(str(kernels))
assert not driver.may_keep("/proc/missing")
"""
    completed = run_python(code.format(kernels=str(kernels)))
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr.count(f"everyone may write to {kernels}") == 1


def test_a_message_is_a_warning_the_first_time(monkeypatch, caplog):
    monkeypatch.setattr(trust, "warned", set())
    logger = logging.getLogger("theano.misc.trust")
    caplog.set_level(logging.DEBUG, logger.name)
    for message, argument in (("%s is not loaded", "a"), ("%s is not loaded", "b"), ("%s", "c")):
        trust.warn_first(logger, message, argument)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "a is not loaded"),
        ("DEBUG", "b is not loaded"),
        ("WARNING", "c"),
    ]
