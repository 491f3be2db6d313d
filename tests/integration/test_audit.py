"""Query the configured pip and apt indexes for the releases of two sources."""

from __future__ import annotations

from support import Project

from builder.common import errors
from builder.maintenance import audit

NUMPY, ZLIB = "numpy-1.26.4.tar.gz", "zlib_1.2.13.dfsg.orig.tar.bz2"


def test_the_configured_indexes_answer() -> None:
    offered, suites = audit.query_indexes([NUMPY, ZLIB])
    assert "bookworm" in suites[ZLIB]
    assert {NUMPY, ZLIB} <= set(offered)
    # Use outdated names of archives, for which every index has a newer release. Unit tests check
    # the comparison of versions.
    releases = audit.group_releases(offered)
    assert audit.find_newer("numpy-1.26.3.tar.gz", releases)
    assert audit.find_newer(ZLIB.replace("2.13", "2.11"), releases)


def test_without_a_network_the_audit_is_an_error(
    project: Project, no_network: tuple[str, ...]
) -> None:
    status, output = project.invoke("stacks", "--audit", wrap=no_network)
    assert status == errors.SourceUnavailable.exit_code, output
    assert "the indexes cannot be queried" in output
    assert "Traceback" not in output
