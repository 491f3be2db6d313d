"""Download a file: what breaks off or stalls is tried again, and continued where it can be."""

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

# How often in a row a download may bring nothing new; the pauses between grow by a second.
TRIES = 3
BLOCK = 1 << 20
# Seconds of silence after which a server is taken to be gone.
SILENCE = 60


@dataclass(frozen=True)
class Answer:
    """What a server sends.

    Attributes:
        continued: whether it starts where it was asked to, not at the file's begin.
        size: how many bytes there are to come, if it tells.
        blocks: the bytes.
    """

    continued: bool
    size: int | None
    blocks: Iterator[bytes]


def write(ask: Callable[[int], AbstractContextManager[Answer]], destination: Path) -> None:
    """Write what a server sends.

    Args:
        ask: asks it for the file from an offset on.

    Raises:
        LookupError: ``ask`` raised it: the server has no such file.
        OSError: the download broke off, more than TRIES times without anything new, or there is no
            room for the file.
    """
    farthest, failed = 0, 0
    with destination.open("wb") as output:
        while True:
            try:
                with ask(output.tell()) as answer:
                    if not answer.continued:
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
            failed = 0 if output.tell() > farthest else failed + 1
            farthest = max(farthest, output.tell())
            if failed >= TRIES:
                raise OSError(reason)
            time.sleep(failed)


def download(address: str, destination: Path) -> None:
    """Write what ``address`` has, as :func:`write` does; every error names the address.

    Raises:
        LookupError: it has no file.
        OSError: see there.
    """
    try:
        write(partial(_ask, address), destination)
    except OSError as error:
        raise OSError(error.errno, f"{address}: {error.strerror or error}") from error


@contextmanager
def _ask(address: str, offset: int) -> Iterator[Answer]:
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SILENCE) as response:
            size = response.headers["Content-Length"]
            yield Answer(
                continued=response.status == http.HTTPStatus.PARTIAL_CONTENT,
                size=int(size) if size else None,
                blocks=iter(partial(response.read, BLOCK), b""),
            )
    except urllib.error.HTTPError as error:
        if error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        # A redirection that goes on for ever too; its message has lines.
        reason = " ".join(str(error.reason).split())
        raise LookupError(f"{address}: HTTP status {error.code}, {reason}") from error
