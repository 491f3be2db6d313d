from __future__ import annotations

import pytest

from builder.timing import schedule

# A long chain, and beside it a recipe that many others wait for.
NEEDS = {
    "wanted": (),
    "compiler": (),
    "python": ("compiler",),
    "numpy": ("python",),
    **{f"light{number}": ("wanted",) for number in range(5)},
    "stack": ("numpy", *(f"light{number}" for number in range(5))),
}
SECONDS = {**dict.fromkeys(NEEDS, 1.0), "wanted": 5.0, "python": 50.0, "numpy": 100.0}


def test_the_longest_chain_counts_not_how_many_wait() -> None:
    chains = schedule.chains(NEEDS, SECONDS)
    assert chains["stack"] == 1
    assert chains["numpy"] == 101
    assert chains["compiler"] == 152
    assert chains["wanted"] == 7
    assert chains["light0"] == 2


def test_of_what_is_needed_only_what_is_to_be_built_counts() -> None:
    assert schedule.chains({"b": ("a",)}, {"b": 3.0}) == {"b": 3.0}
    assert schedule.duration({"b": ("a",)}, {"b": 3.0}, jobs=1, cpus=1) == pytest.approx(3)


def test_one_core_takes_as_long_as_all_recipes_together() -> None:
    assert schedule.duration(NEEDS, SECONDS, 1, 1) == pytest.approx(sum(SECONDS.values()))
    assert schedule.duration(NEEDS, SECONDS, 3, 1) == pytest.approx(sum(SECONDS.values()))


def test_what_is_beside_the_chain_fills_its_gaps() -> None:
    beside = {"chain": (), "other": ()}
    seconds = {"chain": 160.0, "other": 40.0}
    # Alone on 2 cores the chain uses 1.6 of them.
    assert schedule.duration({"chain": ()}, {"chain": 160.0}, 2, 2) == pytest.approx(100)
    assert schedule.duration(beside, seconds, 2, 2) == pytest.approx(100)
    assert schedule.duration(beside, seconds, 1, 2) == pytest.approx(125)


def test_more_cores_help_but_not_the_chain_without_end() -> None:
    two, eight, many = (schedule.duration(NEEDS, SECONDS, cpus, cpus) for cpus in (2, 8, 512))
    assert two > eight > many > 150 * schedule.SERIAL


def test_nothing_takes_no_time() -> None:
    assert schedule.duration({}, {}, 2, 2) == 0
    assert schedule.duration({"a": ()}, {"a": 0.0}, 2, 2) == 0
