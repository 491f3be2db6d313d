"""Tags of Variables and Apply nodes that the graph cache stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable

# A stack trace: the frames of the code that created a variable.
Trace = list[Any]

# The names of the tags that Theano reads. Users may set other tags for their own purposes.
TAGS = (
    "indestructible",
    "is_rng",
    "nan_guard_mode_check",
    "context_name",
    "target",
    "unique_value",
)
TAGS_SET = frozenset(TAGS)


def select_tags(owner: Variable | Apply) -> dict[str, Any]:
    """Return the values of a variable's or node's tags that are in TAGS.

    Returns:
        A dictionary that maps the names to the values, in the order of creation.
    """
    tags = owner.tag.__dict__
    if TAGS_SET.isdisjoint(tags):
        return {}
    return {name: value for name, value in tags.items() if name in TAGS_SET}


def get_traces(variable: Variable) -> list[Trace]:
    """Return the stack traces of a variable."""
    return getattr(variable.tag, "trace", None) or []
