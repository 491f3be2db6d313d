"""Test the comparison of profiles by phase and class of op, with files of 2017."""

from pathlib import Path

import pytest
from theano_fast.profiling import profile_comparison

from tests.unit.runtime.profiling.conftest import STACKS


def map_seconds(lines):
    """Map the name of each line to its seconds, one for each file."""
    return {line.name: line.seconds for line in lines}


def test_profiles_of_2017_are_compared_by_phase_and_class(read):
    (train,) = profile_comparison.compare(read("train_fn"))
    assert train.calls == (100, 100, 100)
    numbers = map_seconds(train.numbers)
    assert numbers["calls"] == (55.91766, 49.3949, 48.98488)
    assert numbers["compile"] == (934.346, 1077.718, 991.8714)
    assert numbers["optimizer"] == (883.4189, 1013.889, 934.045)
    assert train.numbers[0].ratios == pytest.approx((1, 0.883, 0.876), abs=5e-4)
    (scan,) = profile_comparison.compare(read("grad_of_scan"))
    assert map_seconds(scan.numbers)["calls"] == (48.28692, 43.61261, 43.26865)
    classes = map_seconds(scan.classes)
    assert classes["Elemwise"] == (8.227, 9.692, 9.022)
    assert classes["Dot22"] == (5.229, 2.925, 2.958)
    assert classes["Split"] == (4.985, 5.517, 5.757)
    # The tables of two files omit this class: its seconds are unknown, not 0.
    assert classes["ConvOp"] == (5.25, None, None)
    assert classes[profile_comparison.OTHERS] == (0.93, 1.48, 1.33)


def test_a_class_has_its_implementation_in_each_file(read):
    (scan,) = profile_comparison.compare(read("grad_of_scan"))
    kinds = {line.name: line.kinds for line in scan.classes}
    assert kinds["Dot22"] == ("Py", "C", "C")
    assert kinds["Split"] == ("Py", "Py", "Py")


def test_profiles_of_two_files_are_paired_by_name(read):
    trains, scans = read("train_fn"), read("grad_of_scan")
    comparisons = profile_comparison.compare([(*trains[0], *scans[0]), (*scans[1], *trains[1])])
    assert [comparison.name for comparison in comparisons] == [
        "examples/run_tasks.py:376",
        "grad_of_scan_fn&grad_of_scan_fn",
    ]
    assert map_seconds(comparisons[1].numbers)["calls"] == (48.28692, 43.61261)


def test_files_without_a_common_profile_are_refused(read):
    with pytest.raises(
        profile_comparison.ComparisonError, match=r"run_tasks\.py:376; grad_of_scan_fn"
    ):
        profile_comparison.compare([read("train_fn")[0], read("grad_of_scan")[0]])


def test_a_label_has_the_words_of_a_file_name_that_the_other_names_lack(files):
    assert profile_comparison.make_labels(files("train_fn")) == STACKS
    assert profile_comparison.make_labels([Path("a/x.txt"), Path("b/x.txt")]) == ("x", "x")


def test_the_table_has_a_column_for_each_file(read):
    (train,) = profile_comparison.compare(read("train_fn"))
    lines = list(profile_comparison.make_table(train, STACKS))
    assert lines[1].split() == ["seconds", *STACKS]
    assert lines[2].split() == ["calls", "55.918", "1.00x", "49.395", "0.88x", "48.985", "0.88x"]
    assert next(line for line in lines if line.startswith("DeepCopyOp")).split() == [
        "DeepCopyOp",
        "C",
        "-",
        "0.001",
        "0.001",
    ]
