"""Write the prefix into an unpacked environment's files, once: ``theano-fast-unpack``.

In an archive, files contain a placeholder instead of the prefix. :data:`LIST` names these files.
"""

import json
import os
import py_compile
import shutil
import sys
from pathlib import Path

# JSON with the keys ``placeholder`` and ``files`` (the files that contain the placeholder). After
# unpacking, it also has the key ``prefix``.
LIST = Path("share", "theano-fast", "unpack.json")


class UnpackError(Exception):
    """An environment cannot be used at its path; the message has the reason and the next step."""


def unpack(prefix: Path) -> str:
    """Replace the placeholder by ``prefix`` in all files; return a message.

    After an interruption, the next call continues.

    Raises:
        UnpackError: the environment was unpacked at another prefix, or the prefix is too long.
        OSError: a file cannot be written.
    """
    state = json.loads((prefix / LIST).read_text())
    placeholder, path = state["placeholder"].encode(), os.fsencode(prefix)
    before = state.get("prefix")
    if before == str(prefix):
        return f"{prefix} is unpacked already"
    if before:
        raise UnpackError(
            f"{prefix} was unpacked at {before}: unpack the archive again at this path"
        )
    if len(path) > len(placeholder):
        raise UnpackError(
            f"{prefix} is longer than {len(placeholder)} bytes: unpack the archive into a directory"
            " with a shorter path"
        )
    for name in state["files"]:
        replace(prefix / name, placeholder, path)
    write(prefix / LIST, json.dumps({**state, "prefix": str(prefix)}, sort_keys=True).encode())
    return f"{prefix}: unpacked; to verify it, run {prefix}/bin/theano-fast verify"


def replace(file: Path, placeholder: bytes, path: bytes) -> None:
    """Replace the placeholder in a file with ``path``; pad strings of binary files with zeros."""
    content = file.read_bytes()
    if placeholder not in content:
        return
    if b"\0" in content:
        strings = content.split(b"\0")
        content = b"\0".join(
            string.replace(placeholder, path).ljust(len(string), b"\0") for string in strings
        )
    else:
        content = content.replace(placeholder, path)
    write(file, content)
    if file.suffix == ".py":
        # Compile the bytecode again, because it contains the placeholder.
        py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def write(file: Path, content: bytes) -> None:
    """Write a file atomically, and keep the mode of the existing file."""
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    shutil.copymode(file, part)
    part.replace(file)


def main() -> int:
    """Unpack the environment of this interpreter; return the exit code."""
    try:
        print(unpack(Path(sys.prefix)))
    except (UnpackError, OSError) as error:
        print(f"theano-fast-unpack: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
