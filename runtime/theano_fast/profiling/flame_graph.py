"""Build the tree of a flame graph from profiles, and convert it to speedscope's format.

A frame's own time is its seconds minus the seconds of its children.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from theano_fast import profiles


@dataclass(frozen=True)
class Frame:
    """An operation, its time in seconds, and its parts (``children``).

    ``kind`` selects the colour: C, Py, scan, compile or "". ``details`` are lines of text.
    """

    name: str
    seconds: float
    kind: str = ""
    details: tuple[str, ...] = ()
    children: tuple["Frame", ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the frame as a JSON object for static/flame.js."""
        return {
            "n": self.name,
            "s": self.seconds,
            "k": self.kind,
            "d": list(self.details),
            "c": [child.to_json() for child in self.children],
        }


def to_speedscope(root: Frame) -> dict[str, Any]:
    """Return a tree of frames in speedscope's file format: a sample for each frame's own time."""
    names: dict[str, int] = {}
    samples: list[list[int]] = []
    weights: list[float] = []

    def walk(frame: Frame, ancestors: list[int]) -> None:
        stack = [*ancestors, names.setdefault(frame.name, len(names))]
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


def group_frames(
    name: str, children: Sequence[Frame], seconds: float = 0.0, kind: str = ""
) -> Frame:
    """Return a frame with these children, longest first.

    Its time is the maximum of ``seconds`` and the sum of the children's times.
    """
    ordered = tuple(sorted(children, key=lambda child: child.seconds, reverse=True))
    return Frame(
        name, max(seconds, sum(child.seconds for child in ordered)), kind, children=ordered
    )


def build_frames(title: str, parsed: Sequence[profiles.Profile]) -> Frame:
    """Return the tree of parsed profiles.

    The frame of a scan's profile is a child of the scan's op in a function's profile. It is a child
    of the root if no function's profile contains the op.
    """
    scans = {profile.name: profile for profile in parsed if profile.is_scan}
    functions, used = [], set[str]()
    for profile in parsed:
        if not profile.is_scan and not profile.is_sum:
            functions.append(_build_compile_frame(profile))
            functions.append(_build_calls_frame(profile, scans, used))
    unused_scans = [
        _build_calls_frame(profile, {}, used)
        for profile in scans.values()
        if profile.name not in used
    ]
    return group_frames(title, [frame for frame in (*functions, *unused_scans) if frame.seconds])


def _build_compile_frame(profile: profiles.Profile) -> Frame:
    def make_frame(name: str, key: str, *children: Frame) -> Frame:
        timed = tuple(child for child in children if child.seconds)
        return Frame(name, profile.numbers.get(key, 0.0), "compile", children=timed)

    return make_frame(
        f"compile {profile.name}",
        "compile",
        make_frame("optimizer", "optimizer", make_frame("validate", "validate")),
        make_frame("linker", "linker", make_frame("import modules", "import")),
    )


def _build_calls_frame(
    profile: profiles.Profile, scans: dict[str, profiles.Profile], used: set[str]
) -> Frame:
    """Build the frame of a profile's calls, with a frame for each op.

    Args:
        profile: the profile of a function or scan.
        scans: the profiles of scans, by name.
        used: the names of the scans in the tree; this function adds names.
    """
    ops = [_build_op_frame(row, profile, scans, used) for row in profile.ops]
    table = profile.tables.get("Ops", profiles.Table())
    if table.omitted_seconds:
        ops.append(Frame(f"{table.omitted} other ops", table.omitted_seconds))
    name = f"{profile.calls} calls of {profile.name}"
    kind = "scan" if profile.is_scan else ""
    return group_frames(name, ops, profile.seconds, kind)


def _build_op_frame(
    row: profiles.Row,
    profile: profiles.Profile,
    scans: dict[str, profiles.Profile],
    used: set[str],
) -> Frame:
    details = (f"{row.kind}, {row.calls} calls of {row.nodes} Apply nodes",)
    inner = [name for name in scans if row.name.endswith(f",{name}}}")]
    if inner:
        used.add(inner[0])
        children: tuple[Frame, ...] = (_build_calls_frame(scans[inner[0]], {}, used),)
        return Frame(row.name, row.seconds, "scan", details, children)
    applies = profile.tables.get("Apply", profiles.Table()).rows
    # The name of an Apply node is the op's name and the inputs in parentheses.
    nodes = [node for node in applies if node.name.startswith(f"{row.name}(")]
    children = tuple(
        Frame(
            f"node {node.nodes}",
            node.seconds,
            row.kind,
            (f"{node.calls} calls", node.name, *node.notes),
        )
        for node in nodes
    )
    return group_frames(row.name, children, row.seconds, row.kind)
