"""Tell an environment where it is, once, after its archive was unpacked: ``theano-fast-unpack``.

Files that hold an absolute path have a placeholder instead, by which :data:`LIST` knows them.
"""

import json
import os
import py_compile
import shutil
import sys
from pathlib import Path

# In the environment: the placeholder, the files that have it, and then where it was unpacked.
LIST = Path("share", "theano-fast", "unpack.json")


class UnpackError(Exception):
    """An environment cannot be used where it is; the message says why, and what next."""


def unpack(prefix: Path) -> str:
    """Put ``prefix`` in place of the placeholder; says what was done.

    What was interrupted goes on where it was.

    Raises:
        UnpackError: it was unpacked for another place, or the path is too long.
        OSError: a file cannot be written.
    """
    listed = json.loads((prefix / LIST).read_text())
    placeholder, place = listed["placeholder"].encode(), os.fsencode(prefix)
    before = listed.get("prefix")
    if before == str(prefix):
        return f"{prefix}: was unpacked before"
    if before:
        raise UnpackError(f"{prefix} was unpacked for {before}: unpack the archive again, here")
    if len(place) > len(placeholder):
        raise UnpackError(f"{prefix} is longer than {len(placeholder)} bytes: unpack elsewhere")
    for name in listed["files"]:
        replace(prefix / name, placeholder, place)
    write(prefix / LIST, json.dumps({**listed, "prefix": str(prefix)}, sort_keys=True).encode())
    return f"{prefix}: unpacked; {prefix}/bin/theano-fast verify proves it"


def replace(file: Path, placeholder: bytes, place: bytes) -> None:
    """Put ``place`` into a file; in one that is no text, strings keep their length by zeros."""
    content = file.read_bytes()
    if placeholder not in content:
        return
    if b"\0" in content:
        strings = content.split(b"\0")
        content = b"\0".join(
            string.replace(placeholder, place).ljust(len(string), b"\0") for string in strings
        )
    else:
        content = content.replace(placeholder, place)
    write(file, content)
    if file.suffix == ".py":
        # Its bytecode is of the text that it was.
        py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def write(file: Path, content: bytes) -> None:
    """Replace a file, whole or not at all, and keep its mode."""
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    shutil.copymode(file, part)
    part.replace(file)


def main() -> int:
    """Unpack the environment of this interpreter; the exit status."""
    try:
        print(unpack(Path(sys.prefix)))
    except (UnpackError, OSError) as error:
        print(f"theano-fast-unpack: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
