"""Run programs on stock Theano and on a stack, from empty compile directories; record the results.

From the root of the repository, after ``./invoke references`` and ``./invoke build``:

    python3 tests/programs/corpus/compare_with_stock.py [NAME...]

The program writes the results of stock Theano to stock.json and prints the seconds to the first
result. test_corpus.py compares with stock.json.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import programs

ENVIRONMENTS = programs.FOLDER.parents[2] / "build" / "envs"
RECORD = programs.FOLDER / "stock.json"


def digest(name):
    """Return the SHA-256 of a program's files."""
    files = [programs.FOLDER / f"{name}.py"]
    files += [file for file in programs.FOLDER.glob("*.c") if file.name in files[0].read_text()]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def record():
    """Return the record by program: its digest and stock Theano's results."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def write(name, row):
    """Write a program's row of the record."""
    rows = {**record(), name: {"digest": digest(name), **row}}
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(names):
    """Run programs, and write the record after each."""
    for name in names:
        answers = {}
        for environment, options in (("stock", ["--old-names"]), ("openblas", [])):
            python = ENVIRONMENTS / environment / "bin" / "python"
            with tempfile.TemporaryDirectory() as compiledir:
                answers[environment] = programs.run(name, Path(compiledir), *options, python=python)
        stock, here = answers["stock"], answers["openblas"]
        write(name, {"results": stock["results"]})
        same = all(map(programs.agree, here["results"], stock["results"]))
        print(
            f"{name}: first result after {stock['seconds']:.1f} s on stock Theano, "
            f"{here['seconds']:.1f} s on openblas; {'the same' if same else 'OTHER'} results; "
            f"failed optimizers: {stock['failures']}, {here['failures']}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or programs.NAMES)
