"""Tags of Variables and Apply nodes that the graph cache stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable

# A stack trace: the frames of the program that created a variable.
Trace = list[Any]

# The tags that Theano reads. Users set other tags for their own purposes.
TAGS = (
    "indestructible",
    "is_rng",
    "nan_guard_mode_check",
    "context_name",
    "target",
    "unique_value",
)


def take_tag(thing: Variable | Apply) -> dict[str, Any]:
    """Return the stored tags by name, in the order in which they were set."""
    return {name: value for name, value in thing.tag.__dict__.items() if name in TAGS}


def get_traces(variable: Variable) -> list[Trace]:
    """Return the stack traces of a variable."""
    return getattr(variable.tag, "trace", None) or []
