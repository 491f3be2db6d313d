"""Test the origins and precedence of Theano's flags in files, programs and THEANO_FLAGS."""

from pathlib import Path

import pytest
from theano_fast import rc, settings
from theano_fast.porting import sources
from theano_fast.settings import Setting

RC = """[global]
floatX = float32
device: cpu

[blas]
# ldflags = -lother
ldflags =
[dnn.conv]
algo_fwd = time_once
"""


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Return an empty home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def group_by_flag(settings):
    """Map each flag to (value, origin)."""
    return {setting.flag: (setting.value, setting.origin) for setting in settings}


def test_the_origin_of_a_flag_in_a_file_has_its_line_number(home):
    (home / ".theanorc").write_text(RC)
    file = home / ".theanorc"
    assert group_by_flag(settings.read_users(environ={})) == {
        "floatX": ("float32", f"{file}:2"),
        "device": ("cpu", f"{file}:3"),
        "blas.ldflags": ("", f"{file}:7"),
        "dnn.conv.algo_fwd": ("time_once", f"{file}:9"),
    }


def test_the_last_setting_of_a_flag_is_effective(home):
    for name, value in (("a", "float16"), ("b", "float32")):
        (home / name).write_text(f"[global]\nfloatX = {value}\n")
    files = {"THEANORC": f"{home}/a:~/b:{home}/none"}
    assert group_by_flag(settings.read_users(environ=files)) == {
        "floatX": ("float32", f"{home}/b:2")
    }
    flags = {**files, "THEANO_FLAGS": "floatX=float64,floatX=float16"}
    assert group_by_flag(settings.read_users(environ=flags)) == {
        "floatX": ("float16", "THEANO_FLAGS")
    }


def test_values_of_flags_may_be_quoted_or_empty(home):
    flags = {"THEANO_FLAGS": "cxx=,gcc.cxxflags='-O3, -g',alone"}
    assert settings.read_users(environ=flags) == (
        Setting("cxx", "", "THEANO_FLAGS"),
        Setting("gcc.cxxflags", "-O3, -g", "THEANO_FLAGS"),
    )


def test_a_quote_that_is_not_closed_is_an_error(home):
    with pytest.raises(rc.RcError, match="THEANO_FLAGS cannot be read"):
        settings.read_users(environ={"THEANO_FLAGS": "cxx='g++"})


def test_settings_in_a_program_override_theano_flags(home, tmp_path):
    pytest.importorskip("lib2to3", reason="Debian's Python has no lib2to3")
    program = tmp_path / "train.py"
    program.write_text(
        "from theano import config\nconfig.floatX = 'float32'\n"
        "theano.config.blas.ldflags = ''\nconfig.mode = name()\nother.config.cxx = ''\n"
    )
    effective = settings.read_users(program, {"THEANO_FLAGS": "floatX=float64,cxx="})
    assert group_by_flag(effective) == {
        "floatX": ("float32", f"{program}:2"),
        "blas.ldflags": ("", f"{program}:3"),
        "cxx": ("", "THEANO_FLAGS"),
    }


def test_the_last_line_of_a_program_that_sets_a_flag_wins(home, tmp_path):
    pytest.importorskip("lib2to3", reason="Debian's Python has no lib2to3")
    program = tmp_path / "train.py"
    program.write_text(
        "from theano import config\nif gpu:\n    config.floatX = 'float16'\n"
        "config.floatX = 'float32'\n"
    )
    (setting,) = settings.read_users(program, {})
    assert setting == Setting("floatX", "float32", f"{program}:4")


def test_theano_flags_set_by_a_program_replace_the_shells_theano_flags(home, tmp_path):
    pytest.importorskip("lib2to3", reason="Debian's Python has no lib2to3")
    program = tmp_path / "train.py"
    program.write_text("import os\nos.environ['THEANO_FLAGS'] = 'floatX=float32'\n")
    (setting,) = settings.read_users(program, {"THEANO_FLAGS": "cxx="})
    assert setting == Setting("floatX", "float32", f"{program}:2, THEANO_FLAGS")


@pytest.mark.parametrize("text", ["x = (\n", None])
def test_a_missing_or_invalid_program_is_an_error(home, tmp_path, text):
    program = tmp_path / "train.py"
    if text:
        program.write_text(text)
    with pytest.raises(sources.SourceError, match=r"train\.py"):
        settings.read_users(program, {})


def test_without_files_and_flags_there_are_no_settings(home):
    assert settings.list_user_files({"THEANORC": ""}) == ()
    assert settings.list_user_files({}) == (Path.home() / ".theanorc",)
    assert settings.read_users(environ={}) == ()
