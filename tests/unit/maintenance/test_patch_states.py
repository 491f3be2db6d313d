"""Test the selection of states of Theano's patch series, and the search for missing returns."""

from __future__ import annotations

import pytest

from builder.maintenance import patch_states, patches


@pytest.mark.parametrize(
    ("patch", "selected", "expected"),
    [
        ("port/current-numpy.patch", (), False),
        ("run/reuse-views.patch", (), True),
        ("run/reuse-views.patch", ("views", "kept"), True),
        ("run/reuse-views.patch", ("kept",), False),
        ("port/current-numpy.patch", ("numpy",), True),
    ],
)
def test_a_patch_is_selected_by_a_part_of_its_name(
    patch: str, selected: tuple[str, ...], expected: bool
) -> None:
    """Without a selection, all patches except the port's are selected."""
    assert patch_states.is_selected(patch, selected) is expected


def test_a_turn_selects_changed_patches_and_a_part_of_the_others() -> None:
    names = [f"run/{number:02}.patch" for number in range(40)]
    turns = [patch_states.select_turn(names, ["run/07.patch"], turn) for turn in range(1, 41)]
    assert all("run/07.patch" in selected for selected in turns)
    assert max(map(len, turns)) <= patch_states.STATES_PER_TURN + 1
    assert {name for selected in turns for name in selected} == set(names)
    assert all(selected == sorted(selected) for selected in turns)
    turns_if_all_changed = [patch_states.select_turn(names, names, turn) for turn in range(1, 41)]
    assert max(map(len, turns_if_all_changed)) <= patch_states.MOST_STATES_PER_TURN
    assert {name for selected in turns_if_all_changed for name in selected} == set(names)


def test_a_function_without_its_return_is_found() -> None:
    code = """
def whole():
    \"""Return a number.\"""
    return 1

def half():
    \"""Return a number.\"""
    number = 1

def abstract():
    \"""Return a number.\"""
    raise NotImplementedError

def other():
    \"""Set a number.\"""
    number = 1
"""
    functions = [function.name for function in patch_states.find_missing_returns(code)]
    assert functions == ["half"]


def test_the_patches_of_the_port_come_first() -> None:
    """Theano runs on the stack's Python only in states with all patches of the port."""
    names = patches.list_patches(patches.paths.RECIPES / patch_states.RECIPE)
    themes = [name.startswith(patch_states.PORT) for name in names]
    assert themes == sorted(themes, reverse=True)
