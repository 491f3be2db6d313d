import re
from pathlib import Path

import pytest
from theano_fast import profiles

FILES = Path(__file__).parent / "data"


def read(name: str) -> profiles.Profile:
    (profile,) = profiles.parse((FILES / name).read_text())
    return profile


def test_a_function_profile():
    profile = read("function-c-blas.txt")
    assert profile.title == "Function profiling"
    assert (profile.calls, profile.seconds) == (100, 49.3949)
    assert profile.numbers == {
        "compile": 1077.718,
        "optimizer": 1013.889,
        "linker": 59.13572,
        "nodes": 1288,
    }
    assert len(profile.classes) == len(profile.ops) == 8
    assert profile.classes[0] == profiles.Row(
        name="theano.scan_module.scan_op.Scan",
        kind="Py",
        seconds=48.411,
        percent=98.9,
        calls=200,
        nodes=2,
    )


def test_a_scan_profile_says_nothing_of_its_compilation():
    profile = read("scan-python-blas.txt")
    assert profile.title == "Scan Op profiling ( grad_of_scan_fn&grad_of_scan_fn )"
    assert (profile.calls, profile.seconds, profile.numbers) == (100, 48.28692, {})


def test_an_op_keeps_its_whole_name():
    names = [row.name for row in read("scan-python-blas.txt").ops]
    assert "AdvancedIncSubtensor{inplace=False,  set_instead_of_inc=False}" in names
    assert any(name.startswith("ConvOp{('imshp', (4, 1, 255)),") for name in names)


def test_theano_0_7_wrote_classes_in_angle_brackets():
    (row,) = read("function-theano-0.7.txt").classes
    assert row.name == "theano.tensor.elemwise.Elemwise"


def test_python_blas_is_found_and_c_blas_is_not():
    names = {row.name for row in profiles.python_blas(read("scan-python-blas.txt"))}
    assert names == {
        f"theano.tensor.blas.{name}"
        for name in ("BatchedDot", "Dot22", "Dot22Scalar", "Gemm", "Gemv")
    }
    good = read("function-c-blas.txt")
    assert profiles.python_blas(good) == ()
    assert [row.name for row in profiles.blas(good)] == [
        "theano.tensor.blas.Dot22",
        "theano.tensor.blas.Gemm",
    ]


@pytest.mark.parametrize("kind", ["Py", "C Py", "PyC"])
def test_a_class_that_is_partly_python_is_not_c(kind):
    text = (FILES / "function-c-blas.txt").read_text()
    pattern = r"C( +\d+ +\d+ +theano\.tensor\.blas\.Dot22)"
    (profile,) = profiles.parse(re.sub(pattern, rf"{kind}\1", text))
    assert [row.kind for row in profiles.python_blas(profile)] == [kind]


def test_several_profiles_in_one_text():
    text = "".join(path.read_text() + "\n" for path in sorted(FILES.glob("*.txt")))
    assert len(profiles.parse(text)) == 3


@pytest.mark.parametrize("text", ["", "Class\n---\n", "Function profiling\n======\n"])
def test_other_text_is_refused(text):
    with pytest.raises(profiles.ProfileError):
        profiles.parse(text)


def test_render_is_short_and_says_what_is_left_out():
    lines = profiles.render(read("scan-python-blas.txt"), rows=2)
    assert len(lines) == 9
    assert max(map(len, lines)) <= 100
    assert lines[4].strip() == "(10 more)"
    assert lines[2].split() == [
        "20.5",
        "8.227",
        "C",
        "3390361",
        "391",
        "theano.tensor.elemwise.Elemwise",
    ]
