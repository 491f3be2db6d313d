"""Download files over HTTP; retry failed downloads, and resume them if the server permits it."""

from __future__ import annotations

import errno
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# A download fails after this number of successive attempts without new bytes. After the n-th such
# attempt, the download pauses for n seconds.
TRIES = 3
# Bytes that are read at once.
BLOCK = 1 << 20
# Seconds without data after which a server counts as unreachable.
TIMEOUT = 60


@dataclass(frozen=True)
class Answer:
    """A server's answer to the request for a file.

    Attributes:
        resumed: whether the answer starts at the requested offset. If not, it starts at the
            beginning of the file.
        size: the number of bytes in the answer; None if the server does not send it.
        blocks: the bytes in blocks, as an iterator.
    """

    resumed: bool
    size: int | None
    blocks: Iterator[bytes]


def write_with_retries(
    request: Callable[[int], AbstractContextManager[Answer]], destination: Path
) -> None:
    """Request a file and write it to ``destination``; repeat requests until the file is complete.

    Args:
        request: a function that requests the file from an offset in bytes, and returns a context
            manager for the answer.

    Raises:
        LookupError: the server does not have the file; ``request`` raises this error.
        OSError: TRIES attempts in a row failed without new bytes, or the file system is full.
    """
    most_bytes, failures = 0, 0
    with destination.open("wb") as output:
        while True:
            try:
                with request(output.tell()) as answer:
                    if not answer.resumed:
                        output.seek(0)
                        output.truncate()
                    end = None if answer.size is None else output.tell() + answer.size
                    for block in answer.blocks:
                        output.write(block)
                if end is None or output.tell() >= end:
                    return
                reason = f"broke off after {output.tell()} of {end} bytes"
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise
                reason = str(error) or type(error).__name__
            failures = 0 if output.tell() > most_bytes else failures + 1
            most_bytes = max(most_bytes, output.tell())
            if failures >= TRIES:
                raise OSError(reason)
            time.sleep(failures)


def download(address: str, destination: Path) -> None:
    """Download ``address`` to ``destination``; every error message contains the address.

    Raises:
        LookupError: the server does not have the file.
        OSError: the download failed; see :func:`write_with_retries`.
    """
    try:
        write_with_retries(partial(_request, address), destination)
    except OSError as error:
        raise OSError(error.errno, f"{address}: {error.strerror or error}") from error


@contextmanager
def _request(address: str, offset: int) -> Iterator[Answer]:
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            size = response.headers["Content-Length"]
            yield Answer(
                resumed=response.status == http.HTTPStatus.PARTIAL_CONTENT,
                size=int(size) if size else None,
                blocks=iter(partial(response.read, BLOCK), b""),
            )
    except urllib.error.HTTPError as error:
        if error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        # Join the lines: the reason of an endless redirection has several.
        reason = " ".join(str(error.reason).split())
        raise LookupError(f"{address}: HTTP status {error.code}, {reason}") from error
