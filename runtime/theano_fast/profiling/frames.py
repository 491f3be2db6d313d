"""Where time went, as a tree: what a frame's children do not take, it takes itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from theano_fast import profiles


@dataclass(frozen=True)
class Frame:
    """Seconds spent at something; kind is C, Py, scan, compile or "", details are lines of text."""

    name: str
    seconds: float
    kind: str = ""
    details: tuple[str, ...] = ()
    children: tuple["Frame", ...] = ()

    def tree(self) -> dict[str, Any]:
        """Return the frame as JSON, as static/flame.js reads it."""
        return {
            "n": self.name,
            "s": self.seconds,
            "k": self.kind,
            "d": list(self.details),
            "c": [child.tree() for child in self.children],
        }


def speedscope(root: Frame) -> dict[str, Any]:
    """Return frames in speedscope's file format: a sample for what each frame takes itself."""
    names: dict[str, int] = {}
    samples: list[list[int]] = []
    weights: list[float] = []

    def walk(frame: Frame, above: list[int]) -> None:
        stack = [*above, names.setdefault(frame.name, len(names))]
        samples.append(stack)
        weights.append(max(0.0, frame.seconds - sum(child.seconds for child in frame.children)))
        for child in frame.children:
            walk(child, stack)

    walk(root, [])
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": [
            {
                "type": "sampled",
                "name": root.name,
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }


def together(name: str, children: Sequence[Frame], seconds: float = 0.0, kind: str = "") -> Frame:
    """Return a frame of others, the longest first; it takes at least what they take."""
    ordered = tuple(sorted(children, key=lambda child: child.seconds, reverse=True))
    return Frame(name, max(seconds, sum(each.seconds for each in ordered)), kind, children=ordered)


def of_profiles(title: str, read: Sequence[profiles.Profile]) -> Frame:
    """Return the frames of profiles that were read from Theano's text.

    A scan's profile stands where its op does in a function's; one without is beside the functions.
    """
    scans = {each.name: each for each in read if each.is_scan}
    functions, used = [], set[str]()
    for each in read:
        if not each.is_scan and not each.is_sum:
            functions.append(_compile(each))
            functions.append(_calls(each, scans, used))
    alone = [_calls(each, {}, used) for each in scans.values() if each.name not in used]
    return together(title, [each for each in (*functions, *alone) if each.seconds])


def _compile(profile: profiles.Profile) -> Frame:
    known = profile.numbers

    def frame(name: str, key: str, *children: Frame) -> Frame:
        return Frame(name, known.get(key, 0.0), "compile", children=_some(children))

    return frame(
        f"compile {profile.name}",
        "compile",
        frame("optimizer", "optimizer", frame("validate", "validate")),
        frame("linker", "linker", frame("import modules", "import")),
    )


def _some(children: Sequence[Frame]) -> tuple[Frame, ...]:
    return tuple(child for child in children if child.seconds)


def _calls(profile: profiles.Profile, scans: dict[str, profiles.Profile], used: set[str]) -> Frame:
    ops = [_op(row, profile, scans, used) for row in profile.ops]
    if left := profile.tables.get("Ops", profiles.Table()).left_seconds:
        count = profile.tables["Ops"].left
        ops.append(Frame(f"{count} other ops", left))
    name = f"{profile.calls} calls of {profile.name}"
    kind = "scan" if profile.is_scan else ""
    return together(name, ops, profile.seconds, kind)


def _op(
    row: profiles.Row,
    profile: profiles.Profile,
    scans: dict[str, profiles.Profile],
    used: set[str],
) -> Frame:
    details = (f"{row.kind}, {row.calls} calls of {row.nodes} Apply nodes",)
    inner = [name for name in scans if row.name.endswith(f",{name}}}")]
    if inner:
        used.add(inner[0])
        children: tuple[Frame, ...] = (_calls(scans[inner[0]], {}, used),)
        return Frame(row.name, row.seconds, "scan", details, children)
    applies = profile.tables.get("Apply", profiles.Table()).rows
    # An Apply's name is its op's, with the inputs.
    nodes = [each for each in applies if each.name.startswith(f"{row.name}(")]
    children = tuple(
        Frame(
            f"node {each.nodes}",
            each.seconds,
            row.kind,
            (f"{each.calls} calls", each.name, *each.notes),
        )
        for each in nodes
    )
    return together(row.name, children, row.seconds, row.kind)
