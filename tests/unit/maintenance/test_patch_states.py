"""The selection of states of the patch series."""

from __future__ import annotations

import pytest

from builder.maintenance import patch_states, patches


@pytest.mark.parametrize(
    ("patch", "selected", "expected"),
    [
        ("port/tuple-index.patch", (), False),
        ("run/reuse-views.patch", (), True),
        ("run/reuse-views.patch", ("views", "kept"), True),
        ("run/reuse-views.patch", ("kept",), False),
        ("port/tuple-index.patch", ("tuple",), True),
    ],
)
def test_selection(patch: str, selected: tuple[str, ...], expected: bool) -> None:
    assert patch_states.is_selected(patch, selected) is expected


def test_the_port_comes_first() -> None:
    """All states after the first patch of another theme run on today's Python."""
    names = patches.list_patches(patches.paths.RECIPES / patch_states.RECIPE)
    themes = [name.startswith(patch_states.PORT) for name in names]
    assert themes == sorted(themes, reverse=True)
