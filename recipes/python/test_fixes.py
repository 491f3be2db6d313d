"""Test some of the fixes that the file `fixes` lists; check that pyexpat uses the package libexpat."""

import http.cookies
import io
import os
import tarfile
import urllib.parse
import webbrowser
import zipfile
from pathlib import Path
from xml.parsers import expat

# CPython's copy of expat has no security fixes; the package libexpat has them.
assert "/libexpat.so." in Path("/proc/self/maps").read_text()

# CVE-2023-24329
assert urllib.parse.urlsplit(" https://a.example/").scheme == "https"
# CVE-2023-41105
assert os.path.normpath("/a\0b") == "/a\0b"


def raises(error, call, *arguments):
    """Return whether a call raises an error."""
    try:
        call(*arguments)
    except error:
        return True
    return False


# CVE-2024-11168
assert raises(ValueError, urllib.parse.urlsplit, "https://[v.a]/")
# CVE-2026-0672
assert raises(http.cookies.CookieError, http.cookies.SimpleCookie().__setitem__, "a", "b\r\nc: d")
# CVE-2026-4519
assert raises(ValueError, webbrowser.GenericBrowser("true").open, "--option")

# CVE-2026-4224: a deeply nested declaration overflowed the stack.
parser = expat.ParserCreate()
parser.ElementDeclHandler = lambda *_: None
nested = b"(a, " * 500_000 + b"a" + b")" * 500_000
assert raises(RecursionError, parser.Parse, b"<!DOCTYPE a [<!ELEMENT a " + nested + b">]><a/>")

# CVE-2024-0450: zipfile accepted two entries at the same position of the archive.
stream = io.BytesIO()
with zipfile.ZipFile(stream, "w") as archive:
    archive.writestr("a", bytes(100))
    archive.writestr("b", bytes(100))
    first, second = archive.infolist()
    second.header_offset = first.header_offset
    second.filename = second.orig_filename = "a"
with zipfile.ZipFile(stream) as archive:
    assert raises(zipfile.BadZipFile, archive.read, archive.infolist()[1])

# CVE-2025-8194: a member with a negative size caused an endless loop.
header = tarfile.TarInfo("a")
header.size = -512
block = header.tobuf(tarfile.GNU_FORMAT)
assert raises(tarfile.ReadError, tarfile.open, None, "r", io.BytesIO(block + bytes(1024)))
