"""This Theano has the public names, signatures and base classes of stock Theano.

references/stock-api.txt records stock Theano's names. conformance/public_api.py wrote this record.
The tests run the same program to record this Theano's names. references/api-differences.toml has a
reason for each difference.
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
    """A difference between the names of stock Theano and of this Theano.

    Attributes:
        kind: "new", "gone" or "changed".
        name: the full name, such as "theano.tensor.dot".
        stock: the description in stock Theano, such as "def(x)", or "" if the name is new.
        current: the description in this Theano, or "" if the name is gone.
    """

    kind: str
    name: str
    stock: str
    current: str


def parse(text):
    """Parse a record; return a dictionary from full names to descriptions.

    A line without indentation names a module. The indented lines after it name its members.
    """
    names, module = {}, ""
    for line in text.splitlines():
        if line.startswith(" "):
            name, _, description = line[1:].partition(" ")
            names[f"{module}.{name}"] = description
        else:
            module, _, description = line.partition(" ")
            names[module] = description or "module"
    return names


def find_differences(stock, current):
    """Return the differences between two parsed records, sorted by name.

    If a whole module differs, the list contains the module but not its members.
    """
    differences = []
    for name in sorted(stock.keys() | current.keys()):
        old, new = stock.get(name, ""), current.get(name, "")
        if old != new and not any(is_in_module(name, difference) for difference in differences):
            kind = "changed" if old and new else "gone" if old else "new"
            differences.append(Difference(kind, name, old, new))
    return differences


def is_in_module(name, difference):
    """Return whether a name belongs to a module that is missing or not importable in one record."""
    modules = "module", "cannot be imported"
    is_module = {difference.stock, difference.current} <= {"", *modules}
    return is_module and name.startswith(f"{difference.name}.")


@pytest.fixture(scope="module")
def current(tmp_path_factory):
    """Return this Theano's names, from a process with an empty compile cache.

    The cache is needed because some modules compile C code at import.
    """
    compiledir = tmp_path_factory.mktemp("compiledir")
    completed = subprocess.run(
        [sys.executable, ROOT / "conformance" / "public_api.py", STOCK],
        env={"PATH": "/usr/bin:/bin", "THEANO_FLAGS": f"base_compiledir={compiledir}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return parse(completed.stdout)


def test_each_difference_has_a_reason(current):
    rows = tomllib.loads(REASONS.read_text())["difference"]
    differences = find_differences(parse(STOCK.read_text()), current)

    def matches(row, difference):
        named = any(fnmatch.fnmatchcase(difference.name, pattern) for pattern in row["names"])
        return row["kind"] == difference.kind and named

    without_reason = [
        f"{difference.kind}: {difference.name}: {difference.stock} -> {difference.current}"
        for difference in differences
        if not any(matches(row, difference) for row in rows)
    ]
    assert without_reason == [], f"list these differences in {REASONS}, with a reason"
    without_difference = [
        pattern
        for row in rows
        if row["kind"] != "new"
        for pattern in row["names"]
        if not any(matches({**row, "names": [pattern]}, difference) for difference in differences)
    ]
    assert without_difference == [], f"no difference has these names; remove them from {REASONS}"


def test_a_changed_signature_base_or_name_is_a_difference():
    stock = parse("m\n A class(m.B)\n A.f def(self, x)\n f def(x)\n g def()\nn\n f def()\n")
    current = parse("m\n A class(m.C, m.B)\n A.f def(self)\n f def(x)\n h def()\no\n f def()\n")
    pairs = [(difference.kind, difference.name) for difference in find_differences(stock, current)]
    assert pairs == [
        ("changed", "m.A"),
        ("changed", "m.A.f"),
        ("gone", "m.g"),
        ("new", "m.h"),
        ("gone", "n"),
        ("new", "o"),
    ]
