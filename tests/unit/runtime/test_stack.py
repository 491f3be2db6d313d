"""Test the parser of an environment's stack file, and the search for sibling environments."""

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import stack

TEXT = """\
stack = "openblas"

[axes]
blas = "openblas"
device = "cpu"
libm = "system"
python = "3.11"
"""


def test_a_stack_file_is_parsed():
    assert stack.parse(TEXT) == stack.Stack(
        "openblas", {"blas": "openblas", "device": "cpu", "libm": "system", "python": "3.11"}
    )


def test_a_stack_file_may_have_additional_axes():
    assert stack.parse(TEXT + 'theano = "1.0.5"\n').axes["theano"] == "1.0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "keys must be"),
        (TEXT + "[more]\n", "keys must be"),
        (TEXT.replace('libm = "system"\n', ""), r"\['libm'\] are missing"),
        (TEXT.replace('"3.11"', "3.11"), r"\['python'\] must be strings"),
        ("stack = 1\naxes = {}", "'stack' must be a string"),
        ("stack =", "Invalid"),
    ],
)
def test_the_error_of_an_invalid_stack_file_names_the_mistake(text, message):
    with pytest.raises(ValueError, match=message):
        stack.parse(text)


def test_the_error_of_a_missing_stack_file_suggests_a_virtual_environment(tmp_path):
    with pytest.raises(stack.StackError, match="make a virtual environment"):
        stack.load(tmp_path)


def test_the_error_of_an_invalid_stack_file_names_the_file(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "theano-fast.toml").write_text("stack = 1")
    with pytest.raises(stack.StackError, match=r"theano-fast\.toml cannot be read"):
        stack.load(tmp_path)


def test_a_stack_is_loaded_from_its_prefix(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "theano-fast.toml").write_text(TEXT)
    assert stack.load(tmp_path).name == "openblas"


def test_siblings_are_in_the_same_directory_and_have_the_same_python(tmp_path):
    python2 = TEXT.replace('python = "3.11"', 'python = "2.7"')
    assert python2 != TEXT
    for name, text in (("openblas", TEXT), ("mkl", TEXT), ("2017-mkl", python2)):
        (tmp_path / name / "etc").mkdir(parents=True)
        (tmp_path / name / "etc" / "theano-fast.toml").write_text(text)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in stack.find_siblings(tmp_path / "mkl")] == ["mkl", "openblas"]
