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
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def group_by_flag(settings):
    return {setting.flag: (setting.value, setting.origin) for setting in settings}


def test_each_flag_of_a_file_has_its_line(home):
    (home / ".theanorc").write_text(RC)
    file = home / ".theanorc"
    assert group_by_flag(settings.read_users(environ={})) == {
        "floatX": ("float32", f"{file}:2"),
        "device": ("cpu", f"{file}:3"),
        "blas.ldflags": ("", f"{file}:7"),
        "dnn.conv.algo_fwd": ("time_once", f"{file}:9"),
    }


def test_the_later_setting_holds(home):
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


def test_flags_have_quotes_and_empty_values(home):
    flags = {"THEANO_FLAGS": "cxx=,gcc.cxxflags='-O3, -g',alone"}
    assert settings.read_users(environ=flags) == (
        Setting("cxx", "", "THEANO_FLAGS"),
        Setting("gcc.cxxflags", "-O3, -g", "THEANO_FLAGS"),
    )


def test_a_quote_that_is_not_closed_is_an_error(home):
    with pytest.raises(rc.RcError, match="THEANO_FLAGS cannot be read"):
        settings.read_users(environ={"THEANO_FLAGS": "cxx='g++"})


def test_a_program_comes_last(home, tmp_path):
    pytest.importorskip("lib2to3", reason="a stack's Python has lib2to3, Debian's lacks it")
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


def test_a_programs_flags_replace_those_of_the_shell(home, tmp_path):
    pytest.importorskip("lib2to3", reason="a stack's Python has lib2to3, Debian's lacks it")
    program = tmp_path / "train.py"
    program.write_text("import os\nos.environ['THEANO_FLAGS'] = 'floatX=float32'\n")
    (setting,) = settings.read_users(program, {"THEANO_FLAGS": "cxx="})
    assert setting == Setting("floatX", "float32", f"{program}:2, THEANO_FLAGS")


@pytest.mark.parametrize("text", ["x = (\n", None])
def test_a_file_that_is_no_program_is_an_error(home, tmp_path, text):
    program = tmp_path / "train.py"
    if text:
        program.write_text(text)
    with pytest.raises(sources.SourceError, match=r"train\.py"):
        settings.read_users(program, {})


def test_no_file_sets_nothing(home):
    assert settings.list_user_files({"THEANORC": ""}) == ()
    assert settings.list_user_files({}) == (Path.home() / ".theanorc",)
    assert settings.read_users(environ={}) == ()
