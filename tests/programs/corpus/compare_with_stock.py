"""Run programs on stock Theano and on a stack, with empty compiledirs; record the results.

From the root of the repository, after ``./invoke references`` and ``./invoke build``:

    python3 tests/programs/corpus/compare_with_stock.py [NAME...]

The script writes stock Theano's results to stock.json, and prints the seconds to the first result.
test_corpus.py compares a stack's results with stock.json.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import programs

ENVIRONMENTS = programs.FOLDER.parents[2] / "build" / "envs"
RECORD = programs.FOLDER / "stock.json"


def compute_digest(name):
    """Return the SHA-256 of a program's files."""
    files = [programs.FOLDER / f"{name}.py"]
    files += [file for file in programs.FOLDER.glob("*.c") if file.name in files[0].read_text()]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def read_records():
    """Map each program to its record: the digest and stock Theano's results."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def write_record(name, row):
    """Write the record of a program."""
    rows = {**read_records(), name: {"digest": compute_digest(name), **row}}
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(names):
    """Run programs; write the record of each program when the program ends."""
    for name in names:
        answers = {}
        for environment, options in (("stock", ["--old-names"]), ("openblas", [])):
            python = ENVIRONMENTS / environment / "bin" / "python"
            with tempfile.TemporaryDirectory() as compiledir:
                answers[environment] = programs.run(name, Path(compiledir), *options, python=python)
        stock, openblas = answers["stock"], answers["openblas"]
        write_record(name, {"results": stock["results"]})
        same = all(map(programs.agree, openblas["results"], stock["results"]))
        print(
            f"{name}: first result after {stock['seconds']:.1f} s on stock Theano, "
            f"{openblas['seconds']:.1f} s on openblas; {'the same' if same else 'OTHER'} results; "
            f"failed optimizers: {stock['failures']}, {openblas['failures']}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or programs.NAMES)
