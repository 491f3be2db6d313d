"""Test the parser of Theano's textual profiles, with real files and with errors."""

import re
from pathlib import Path

import pytest
from theano_fast import profiles

FILES = Path(__file__).parent / "data"
# Profiles of users from 2014 and 2017. Six are from three runs of a Neural Turing Machine: for each
# run, the profiles of its training function and of a scan.
REAL = sorted(FILES.glob("theano-*.txt"))
MKL = FILES / "theano-0.8.2-ntm-mkl.train_fn.txt"
SCAN = FILES / "theano-0.8.2-ntm-openblas-numpy.grad_of_scan.txt"
MEMORY = FILES / "theano-0.7dev-add-memory-profile.txt"


def read(path: Path) -> profiles.Profile:
    """Parse a file that contains one profile."""
    (profile,) = profiles.parse(path.read_text())
    return profile


def test_there_are_seven_real_files():
    assert len(REAL) == 7


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_row_of_a_real_file_is_parsed(path):
    rows = [line for line in path.read_text().splitlines() if re.match(r" +[\d.]+% +[\d.]+%", line)]
    profile = read(path)
    parsed_rows = [row for table in profile.tables.values() for row in table.rows]
    assert len(parsed_rows) == len(rows) > 0
    for row, line in zip(parsed_rows, rows, strict=True):
        text = (
            f"{row.percent:.1f}% {row.seconds:.3f}s {row.kind} {row.calls} {row.nodes} {row.name}"
        )
        words = line.replace("<class '", "").replace("'>", "").split()
        # The parser ignores the columns 1 (sum of percents) and 3 (seconds per call) of a line,
        # because they follow from other columns.
        assert text.split() == [words[0], words[2], *words[4:]]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_the_percents_of_every_table_of_a_real_file_sum_to_100(path):
    profile = read(path)
    assert list(profile.tables) == list(profiles.TABLES)
    for table in profile.tables.values():
        percents = sum(row.percent for row in table.rows) + table.omitted_percent
        assert percents == pytest.approx(100, abs=0.05 * (len(table.rows) + 1))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_time_in_the_head_of_a_real_file_is_read(path):
    profile, text = read(path), path.read_text()
    head = text[: text.index("\nClass\n")]
    written_seconds = re.findall(r"[ :](\d+\.\d+(?:e[+-]\d+)?)s", head)
    seconds = {**profile.numbers, "": profile.seconds}
    assert {*map(float, written_seconds)} == {
        value for name, value in seconds.items() if name not in ("nodes", "steps")
    }


def test_the_profile_of_a_function_is_parsed():
    profile = read(MKL)
    assert profile.title == "Function profiling"
    assert (profile.calls, profile.seconds) == (100, 49.3949)
    assert profile.name == profile.message == "examples/run_tasks.py:376"
    assert profile.numbers == {
        "vm": 49.33104,
        "thunks": 48.9561,
        "compile": 1077.718,
        "nodes": 1288,
        "optimizer": 1013.889,
        "validate": 3.349193,
        "linker": 59.13572,
        "import": 0.7540491,
        "grad": 30.68751,
        "since_import": 1184.741,
    }
    assert profile.classes[0] == profiles.Row(
        name="theano.scan_module.scan_op.Scan",
        kind="Py",
        seconds=48.411,
        percent=98.9,
        calls=200,
        nodes=2,
    )
    apply = profile.tables["Apply"]
    assert (len(apply.rows), apply.omitted, apply.omitted_percent, apply.omitted_seconds) == (
        20,
        1268,
        0.75,
        0.37,
    )
    assert profile.tips[0].startswith("Try installing amdlibm")
    table = profile.to_json()["tables"]["Apply"]
    assert (table["omitted"], table["omitted_percent"], table["omitted_seconds"]) == (
        1268,
        0.75,
        0.37,
    )


def test_a_scan_profile_has_no_compile_time():
    profile = read(SCAN)
    assert profile.title == "Scan Op profiling ( grad_of_scan_fn&grad_of_scan_fn )"
    assert profile.name == "grad_of_scan_fn&grad_of_scan_fn"
    assert profile.is_scan
    assert (profile.calls, profile.seconds) == (100, 48.28692)
    assert profile.numbers == {"steps": 8671, "scan_vm": 45.62579, "scan_overhead": 2.661133}


def test_names_of_ops_may_contain_spaces_and_commas():
    names = [row.name for row in read(SCAN).ops]
    assert "AdvancedIncSubtensor{inplace=False,  set_instead_of_inc=False}" in names
    assert any(name.startswith("ConvOp{('imshp', (4, 1, 255)),") for name in names)


def test_class_names_in_angle_brackets_and_shapes_of_theano_0_7_are_parsed():
    profile = read(MEMORY)
    assert [row.name for row in profile.classes] == ["theano.tensor.elemwise.Elemwise"]
    (node,) = profile.tables["Apply"].rows
    assert (node.name, node.nodes) == ("Elemwise{add,no_inplace}(x, y)", 0)
    assert node.notes[2] == "output 0: dtype=float64, shape=(), strides=c"
    assert len(node.notes) == 3


def test_blas_ops_that_ran_in_python_are_found():
    names = {row.name for row in profiles.find_python_blas(read(SCAN))}
    assert names == {
        f"theano.tensor.blas.{name}"
        for name in ("BatchedDot", "Dot22", "Dot22Scalar", "Gemm", "Gemv")
    }
    assert profiles.find_python_blas(read(MKL)) == ()
    assert [row.name for row in profiles.find_blas(read(MKL))] == [
        "theano.tensor.blas.Dot22",
        "theano.tensor.blas.Gemm",
    ]


@pytest.mark.parametrize("kind", ["Py", "C Py", "PyC"])
def test_a_class_that_ran_partly_in_python_counts_as_python(kind):
    pattern = r"C( +\d+ +\d+ +theano\.tensor\.blas\.Dot22)"
    (profile,) = profiles.parse(re.sub(pattern, rf"{kind}\1", MKL.read_text()))
    assert [row.kind for row in profiles.find_python_blas(profile)] == [kind]


def test_all_profiles_in_a_programs_output_are_parsed():
    text = "epoch 1\n" + "".join(f"{path.read_text()}\nepoch\n" for path in REAL)
    seconds = [profile.seconds for profile in profiles.parse(text)]
    assert seconds == [read(path).seconds for path in REAL]


def test_an_indented_profile_is_parsed():
    text = "".join(f"    {line}\n" for line in MKL.read_text().splitlines())
    (profile,) = profiles.parse(text)
    assert profile.tables == read(MKL).tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: .* no 'Function profiling'"),
        ("Class\n---\n", "line 1: .* no 'Function profiling'"),
        ("a\nFunction profiling\n======\n", "line 3: .* no line with the number of calls"),
        ("\nProfileMode.print_summary()\n----\n", "line 2: .* mode=ProfileMode"),
    ],
)
def test_the_error_of_a_text_without_a_profile_has_line_and_reason(text, message):
    with pytest.raises(profiles.ProfileError, match=message):
        profiles.parse(text)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_truncated_file_is_refused_with_the_number_of_its_last_line(path):
    lines = path.read_text().splitlines()
    calls = next(number for number, line in enumerate(lines) if "calls" in line)
    end = max(number for number, line in enumerate(lines) if "Apply instances account" in line)
    first = next(number for number, line in enumerate(lines) if line == "Class")
    for cut in [*range(1, calls + 1), *range(first + 2, end + 1)]:
        with pytest.raises(profiles.ProfileError, match=f"^line {cut}: "):
            profiles.parse("\n".join([*lines[:cut], ""]))
    profiles.parse("\n".join(lines[: end + 1]))


def test_a_broken_row_is_reported_with_its_line():
    lines = MKL.read_text().splitlines()
    lines[20] = lines[20][:30]
    with pytest.raises(profiles.ProfileError, match=r"line 21: .* table Class"):
        profiles.parse("\n".join(lines))


def test_render_shows_the_largest_rows_and_counts_the_omitted_rows():
    lines = list(profiles.render(read(SCAN), rows=2))
    assert len(lines) == 9
    assert max(map(len, lines)) <= 100
    assert lines[4].strip() == "(18 more)"
    assert lines[2].split() == [
        "20.5",
        "8.227",
        "C",
        "3390361",
        "391",
        "theano.tensor.elemwise.Elemwise",
    ]
