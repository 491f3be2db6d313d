"""Format the report of ``theano-fast verify`` as sorted JSON and as a table."""

import dataclasses
import json
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from theano_fast import __version__
from theano_fast.checks.result import Record
from theano_fast.stack import Stack

SCHEMA_VERSION = 1
# The maximum width of a line, and the indent of a wrapped message in the table, in characters.
WIDTH = 100
INDENT = 30


def make_document(
    stack: Stack, facts: dict[str, Any], records: Sequence[Record], full: bool, verified: bool
) -> dict[str, Any]:
    """Return the report as a JSON object; its layout changes only with SCHEMA_VERSION."""
    return {
        "schema_version": SCHEMA_VERSION,
        "theano_fast": __version__,
        "stack": stack.name,
        "axes": dict(stack.axes),
        "full": full,
        "verified": verified,
        "facts": facts,
        "checks": [dataclasses.asdict(record) for record in records],
        "counts": {
            status: sum(record.status == status for record in records)
            for status in ("passed", "failed", "skipped")
        },
    }


def print_progress(done: int, total: int, started: float, step: str, failure: str = "") -> None:
    """Print the progress of a long task, and the estimated remaining time, on stderr.

    Args:
        done: the number of completed steps.
        total: the number of all steps.
        started: the time of time.monotonic at the start of the task.
        step: the name of the last completed step.
        failure: a message to print instead of the remaining time.
    """
    remaining = (time.monotonic() - started) / done * (total - done)
    end = failure or f"about {remaining:.0f} s left"
    print(f"{done} of {total}, {step}: {end}", file=sys.stderr, flush=True)


def to_json(tree: dict[str, Any]) -> str:
    """Return a JSON object as text: sorted keys, an indent of two spaces, a final newline."""
    return json.dumps(tree, indent=2, sort_keys=True) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file atomically; raises OSError."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def format_header() -> str:
    """Return the header of the table."""
    return f"{'check':<12}{'status':<10}{'seconds':>7} result"


def format_row(record: Record) -> str:
    """Return the lines of a check in the table; wrap the message at WIDTH."""
    start = f"{record.name:<12}{record.status:<10}{record.seconds:6.1f}  "
    return textwrap.fill(
        record.message,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def format_summary(stack: Stack, records: Sequence[Record], verified: bool) -> str:
    """Return the verdict and the number of checks with each status, in one line."""
    counts = Counter(record.status for record in records)
    text = ", ".join(f"{counts[status]} {status}" for status in ("passed", "failed", "skipped"))
    return f"{stack.name}: {'verified' if verified else 'NOT verified'} ({text})"


def format_node(node: str, summary: str, records: Sequence[Record]) -> str:
    """Return the lines for one node of a cluster: its summary, and its failed checks with details.

    Each line begins with the node's name.
    """
    lines = [summary]
    for record in records:
        if record.status == "failed":
            lines += [f"{record.name} failed: {record.message}", *record.details]
    return "\n".join(f"{node}: {line}" for line in lines)


def render_facts(facts: dict[str, Any], indent: str = "") -> str:
    """Format a JSON object as indented lines with sorted keys."""
    lines = []
    for key in sorted(facts):
        value = facts[key]
        if isinstance(value, dict):
            lines.append(f"{indent}{key}:")
            lines.append(render_facts(value, indent + "  "))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{indent}{key}:\n" + render_facts(item, indent + "  ") for item in value]
        elif isinstance(value, list) and value:
            words = ", ".join(map(str, value))
            lines.append(
                textwrap.fill(
                    words,
                    WIDTH,
                    initial_indent=f"{indent}{key}: ",
                    subsequent_indent=f"{indent}  ",
                    break_on_hyphens=False,
                    break_long_words=False,
                )
            )
        else:
            lines.append(f"{indent}{key}: {value}")
    return "\n".join(lines)
