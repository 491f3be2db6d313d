"""Test the order of builds, and the estimated duration on several CPUs."""

from __future__ import annotations

import pytest

from builder.timing import schedule

# The dependencies of each recipe: a long chain (compiler, python, numpy), and a recipe with many
# dependents (wanted).
NEEDS = {
    "wanted": (),
    "compiler": (),
    "python": ("compiler",),
    "numpy": ("python",),
    **{f"light{number}": ("wanted",) for number in range(5)},
    "stack": ("numpy", *(f"light{number}" for number in range(5))),
}
SECONDS = {**dict.fromkeys(NEEDS, 1.0), "wanted": 5.0, "python": 50.0, "numpy": 100.0}


def test_recipes_are_ordered_by_chain_length() -> None:
    chains = schedule.compute_longest_chains(NEEDS, SECONDS)
    assert chains["stack"] == 1
    assert chains["numpy"] == 101
    assert chains["compiler"] == 152
    assert chains["wanted"] == 7
    assert chains["light0"] == 2


def test_dependencies_without_a_build_are_ignored() -> None:
    assert schedule.compute_longest_chains({"b": ("a",)}, {"b": 3.0}) == {"b": 3.0}
    assert schedule.estimate_duration({"b": ("a",)}, {"b": 3.0}, jobs=1, cpus=1) == pytest.approx(3)


def test_one_cpu_takes_the_sum_of_all_cpu_seconds() -> None:
    assert schedule.estimate_duration(NEEDS, SECONDS, 1, 1) == pytest.approx(sum(SECONDS.values()))
    assert schedule.estimate_duration(NEEDS, SECONDS, 3, 1) == pytest.approx(sum(SECONDS.values()))


def test_a_concurrent_build_uses_the_idle_cpus() -> None:
    needs = {"chain": (), "other": ()}
    seconds = {"chain": 160.0, "other": 40.0}
    # On 2 CPUs, one build uses 1.6 CPUs: 160 CPU seconds take 100 s.
    assert schedule.estimate_duration({"chain": ()}, {"chain": 160.0}, 2, 2) == pytest.approx(100)
    assert schedule.estimate_duration(needs, seconds, 2, 2) == pytest.approx(100)
    assert schedule.estimate_duration(needs, seconds, 1, 2) == pytest.approx(125)


def test_the_serial_share_limits_the_speed_up_by_more_cpus() -> None:
    on_2, on_8, on_512 = (
        schedule.estimate_duration(NEEDS, SECONDS, cpus, cpus) for cpus in (2, 8, 512)
    )
    assert on_2 > on_8 > on_512 > 150 * schedule.SERIAL_SHARE


def test_an_empty_build_takes_no_time() -> None:
    assert schedule.estimate_duration({}, {}, 2, 2) == 0
    assert schedule.estimate_duration({"a": ()}, {"a": 0.0}, 2, 2) == 0
