"""What is kept of the tags of Variables and Apply nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable

# A place in a program: the frames that were on the stack.
Trace = list[Any]

# The tags that Theano reads. Others are their users', for the graphs that these build.
TAGS = (
    "indestructible",
    "is_rng",
    "nan_guard_mode_check",
    "context_name",
    "target",
    "unique_value",
)


def take_tag(thing: Variable | Apply) -> dict[str, Any]:
    """Return the tags that are kept, by name, in the order in which they were set."""
    return {name: value for name, value in thing.tag.__dict__.items() if name in TAGS}


def get_traces(variable: Variable) -> list[Trace]:
    """Return where a variable was created."""
    return getattr(variable.tag, "trace", None) or []
