"""Test two fixes that the file `fixes` lists. The host's Python runs this test."""

import ctypes
import os
import subprocess
import sys

sqlite = ctypes.CDLL(os.environ["PREFIX"] + "/lib/libsqlite3.so")
LIMIT_COLUMN, UTF8 = 2, 1


def run(statement: str) -> str:
    """Execute SQL in a new database with at most 10 columns; return the error message, or ""."""
    database, message = ctypes.c_void_p(), ctypes.c_char_p()
    assert sqlite.sqlite3_open(b":memory:", ctypes.byref(database)) == 0
    sqlite.sqlite3_limit(database, LIMIT_COLUMN, 10)
    ignore = ctypes.CFUNCTYPE(None)(lambda: None)
    # Define an aggregate function that is not a window function.
    sqlite.sqlite3_create_function(database, b"total_of", 1, UTF8, None, None, ignore, ignore)
    sqlite.sqlite3_exec(database, statement.encode(), None, None, ctypes.byref(message))
    return (message.value or b"").decode()


if len(sys.argv) == 1:
    # CVE-2025-6965: the number of aggregate terms could overflow a 16-bit integer.
    terms = "+".join(f"sum(a+{term})" for term in range(20))
    assert run(f"CREATE TABLE t(a); SELECT {terms} FROM t") == "more than 10 aggregate terms"
    # Without the fix, a window whose definition uses the window itself overflows the stack. Test this
    # case in another process.
    subprocess.run([sys.executable, __file__, "window"], check=True)
else:
    window = "WINDOW w AS (PARTITION BY total_of(x) OVER w)"
    error = run(f"CREATE TABLE t(x); SELECT min(x) OVER w FROM t {window}")
    assert error == "total_of() may not be used as a window function"
