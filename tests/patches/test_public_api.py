"""Compare the public names of Theano, their signatures and bases with stock Theano's.

references/stock-api.txt records stock Theano's names. conformance/public_api.py wrote it, and lists
this Theano's names here. references/api-differences.toml has a reason for each difference.
"""

import fnmatch
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
STOCK = ROOT / "references" / "stock-api.txt"
REASONS = ROOT / "references" / "api-differences.toml"


@dataclass(frozen=True)
class Difference:
    """A name that is "new", "gone" or "changed"; a missing description is empty."""

    kind: str
    name: str
    stock: str
    here: str


def parse(text):
    """Return the description of each name in a record, the module before the name."""
    names, module = {}, ""
    for line in text.splitlines():
        if line.startswith(" "):
            name, _, description = line[1:].partition(" ")
            names[f"{module}.{name}"] = description
        else:
            module, _, description = line.partition(" ")
            names[module] = description or "module"
    return names


def differences(stock, here):
    """Return the differences of two records; for a module in only one of them, just the module."""
    differences_ = []
    for name in sorted(stock.keys() | here.keys()):
        old, new = stock.get(name, ""), here.get(name, "")
        if old != new:
            parent = next(
                (seen.name for seen in reversed(differences_) if is_in_module(name, seen)), None
            )
            if parent is None:
                kind = "changed" if old and new else "gone" if old else "new"
                differences_.append(Difference(kind, name, old, new))
    return differences_


def is_in_module(name, difference):
    """Return whether a name is in a module that one of the records lacks."""
    modules = "module", "cannot be imported"
    whole = {difference.stock, difference.here} <= {"", *modules}
    return whole and name.startswith(f"{difference.name}.")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return the record of this Theano; some modules compile something when they are imported."""
    compiledir = tmp_path_factory.mktemp("compiledir")
    done = subprocess.run(
        [sys.executable, ROOT / "conformance" / "public_api.py", STOCK],
        env={"PATH": "/usr/bin:/bin", "THEANO_FLAGS": f"base_compiledir={compiledir}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def test_each_difference_has_a_reason(here):
    rows = tomllib.loads(REASONS.read_text())["difference"]
    differing = differences(parse(STOCK.read_text()), here)

    def matches(row, difference):
        named = any(fnmatch.fnmatchcase(difference.name, pattern) for pattern in row["names"])
        return row["kind"] == difference.kind and named

    without_reason = [
        f"{difference.kind}: {difference.name}: {difference.stock} -> {difference.here}"
        for difference in differing
        if not any(matches(row, difference) for row in rows)
    ]
    assert without_reason == [], f"list them in {REASONS}"
    needless = [
        pattern
        for row in rows
        if row["kind"] != "new"
        for pattern in row["names"]
        if not any(matches({**row, "names": [pattern]}, difference) for difference in differing)
    ]
    assert needless == [], "no difference has these names"


def test_a_changed_signature_base_or_name_is_a_difference():
    stock = parse("m\n A class(m.B)\n A.f def(self, x)\n f def(x)\n g def()\nn\n f def()\n")
    here = parse("m\n A class(m.C, m.B)\n A.f def(self)\n f def(x)\n h def()\no\n f def()\n")
    pairs = [(difference.kind, difference.name) for difference in differences(stock, here)]
    assert pairs == [
        ("changed", "m.A"),
        ("changed", "m.A.f"),
        ("gone", "m.g"),
        ("new", "m.h"),
        ("gone", "n"),
        ("new", "o"),
    ]
