"""Test the conversion of Python 2 programs, its backups and its errors."""

import os
import stat

import pytest

pytest.importorskip("lib2to3", reason="Debian's Python and Python 3.13 have no lib2to3")

from theano_fast.porting import port, sources

OLD = "import cPickle\nfor i in xrange(3):\n    print i, raw_input()\n"


@pytest.fixture
def program(tmp_path):
    """Write an executable Python 2 program; return its path."""
    file = tmp_path / "train.py"
    file.write_text(OLD)
    file.chmod(0o755)
    return file


def run(*paths, dry=False):
    """Convert files and directories; return the printed lines."""
    return [line for line, _ in port.run(paths, dry)]


def test_a_program_is_converted_once_and_has_a_backup(program):
    assert run(program)[-1] == "1 files converted, 0 lines to check by hand"
    converted = program.read_text()
    assert converted == "import pickle\nfor i in range(3):\n    print(i, input())\n"
    assert program.with_name("train.py.bak").read_text() == OLD
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert run(program) == ["0 files converted, 0 lines to check by hand"]
    assert program.read_text() == converted


def test_a_dry_run_writes_nothing(program):
    lines = run(program, dry=True)
    assert "+    print(i, input())" in lines
    assert program.read_text() == OLD
    assert [file.name for file in program.parent.iterdir()] == ["train.py"]


def test_a_python_3_program_is_not_changed(tmp_path):
    file = tmp_path / "new.py"
    file.write_text("a = input()\nb = dict(a=1).items()\nprint(zip(b, b))\n")
    assert run(file) == ["0 files converted, 0 lines to check by hand"]


def test_imports_of_sibling_modules_are_not_changed_in_a_package(program, tmp_path):
    (tmp_path / "__init__.py").touch()
    (tmp_path / "utils.py").touch()
    program.write_text("from utils import x\nprint x\n")
    run(program)
    assert program.read_text() == "from utils import x\nprint(x)\n"


def test_the_future_import_of_division_is_kept(program):
    program.write_text("from __future__ import division\nprint range(7 / x)\n")
    run(program)
    assert program.read_text().startswith("from __future__ import division\n")


def test_tabs_of_indentation_become_8_columns_and_tabs_in_strings_are_kept(program):
    program.write_text('if 1:\n        a = """\n\tb"""\n\tprint a\n')
    run(program)
    assert program.read_text() == 'if 1:\n        a = """\n\tb"""\n        print(a)\n'


@pytest.mark.parametrize("source", ["def f(:\n    print 1\n", "print 'a\n", "x = (1\n", "a\0b\n"])
def test_a_file_that_is_not_python_is_reported_and_not_changed(program, source):
    program.write_text(source)
    (line, failed), _ = port.run([program], False)
    assert failed
    assert line.startswith(f"{program}:")
    assert "\n" not in line
    assert program.read_text() == source
    assert len(list(program.parent.iterdir())) == 1


def test_a_missing_path_is_an_error(tmp_path):
    with pytest.raises(sources.SourceError, match=r"no\.py does not exist"):
        run(tmp_path / "no.py")
    with pytest.raises(sources.SourceError, match="has no Python file"):
        run(tmp_path)


def test_a_read_only_directory_is_an_error(program):
    program.parent.chmod(0o555)
    try:
        if os.access(program.parent, os.W_OK):
            pytest.skip("this user may write into read-only directories")
        (line, failed), _ = port.run([program], False)
    finally:
        program.parent.chmod(0o755)
    assert failed
    assert line.endswith("cannot be ported: Permission denied")


@pytest.mark.parametrize("step", ["shutil.copy2", "tempfile.mkstemp", "shutil.copymode"])
def test_a_failed_write_keeps_the_program_and_leaves_no_file(step, program, monkeypatch):
    module, name = step.split(".")

    def fail(*arguments, **_):
        if name == "copy2":
            arguments[1].write_text(OLD[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(getattr(port, module), name, fail)
    (line, failed), _ = port.run([program], False)
    assert failed
    assert "No space left" in line
    assert program.read_text() == OLD
    assert [file.name for file in program.parent.iterdir()] == ["train.py"]
