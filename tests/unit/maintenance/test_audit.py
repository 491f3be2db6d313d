"""Test the audit of pinned sources with fake answers of Debian's and PyPI's indexes."""

from __future__ import annotations

import io
import json
import tarfile
from datetime import date
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, SourceUnavailable
from builder.maintenance import audit
from builder.maintenance.audit import Finding
from builder.source import debian, sources
from builder.stack.recipes import Source

# 2023-02-07 11:00 UTC, in seconds since 1970.
TIME = 1675767600


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("numpy-1.26.4.tar.gz", ("numpy", (1, 26, 4))),
        ("MarkupSafe-2.1.5.tar.gz", ("markupsafe", (2, 1, 5))),
        ("meson_python-0.15.0-py3-none-any.whl", ("meson-python", (0, 15, 0))),
        ("python3.11_3.11.2.orig.tar.gz", ("python3.11", (3, 11, 2))),
        ("zlib_1.2.13.dfsg.orig.tar.bz2", ("zlib", (1, 2, 13))),
        ("openblas_0.3.29+ds.orig.tar.xz", ("openblas", (0, 3, 29))),
        ("openssl_3.0.20-1~deb12u2.debian.tar.xz", ("openssl", (3, 0, 20))),
        ("python3-pygpu_0.7.6-13+b1_amd64.deb", ("python3-pygpu", (0, 7, 6))),
        ("numpy-1.26.0rc1.tar.gz", ("numpy-1.26.0rc1.tar.gz", ())),
        ("openssl_3.5.0~beta1.orig.tar.gz", ("openssl_3.5.0~beta1.orig.tar.gz", ())),
        ("numpy-1.0.1.dev3460.win32-py2.4.exe", ("numpy-1.0.1.dev3460.win32-py2.4.exe", ())),
    ],
)
def test_project_and_version_are_parsed_from_file_names(
    file: str, expected: tuple[str, tuple[int, ...]]
) -> None:
    assert audit.parse_file_name(file) == expected


@pytest.mark.parametrize(
    ("offered", "newer"),
    [
        (["numpy-1.26.4.tar.gz"], None),
        (["numpy-1.26.10-cp311-cp311-linux_x86_64.whl", "numpy-1.26.9.tar.gz"], "1.26.10"),
        (["numpy-1.27.0.tar.gz", "numpy-2.0.0.tar.gz", "numpy-1.26.5rc1.tar.gz"], None),
        (["numpy-1.26.3.tar.gz", "scipy-1.26.5.tar.gz"], None),
        ([], None),
    ],
)
def test_only_a_final_release_of_the_same_series_is_newer(
    offered: list[str], newer: str | None
) -> None:
    assert audit.find_newer("numpy-1.26.4.tar.gz", audit.group_releases(offered)) == newer


@pytest.fixture
def indexes(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return the fake answers by index ("debian", "pip"). A test may change the answers.

    If an answer is an exception, the query raises it. The entry "pip_arguments" contains the
    arguments of the last call of pip.
    """
    answers: dict[str, object] = {
        "debian": {
            "python3.11_3.11.9.orig.tar.gz": frozenset({"trixie"}),
            "zlib_1.2.13.dfsg.orig.tar.bz2": frozenset({"bookworm"}),
        },
        "pip": json.dumps({"numpy-1.26.4.tar.gz": "2024-02-06", "numpy-1.26.5.tar.gz": None}),
    }

    def answer(index: str) -> object:
        if isinstance(answers[index], Exception):
            raise answers[index]
        return answers[index]

    def ask_pip(*arguments: str) -> object:
        answers["pip_arguments"] = arguments
        return answer("pip")

    monkeypatch.setattr(debian, "list_suites", lambda *_: answer("debian"))
    monkeypatch.setattr(sources, "run_pip_helper", ask_pip)
    return answers


def test_each_index_is_queried_for_its_own_files(indexes: dict[str, object]) -> None:
    offered, suites = audit.query_indexes(
        ["numpy-1.26.4.tar.gz", "python3.11_3.11.2.orig.tar.gz", "a.tgz"]
    )
    assert suites == indexes["debian"]
    assert offered == {
        "python3.11_3.11.9.orig.tar.gz": None,
        "zlib_1.2.13.dfsg.orig.tar.bz2": None,
        "numpy-1.26.4.tar.gz": "2024-02-06",
        "numpy-1.26.5.tar.gz": None,
    }
    assert indexes["pip_arguments"] == ("list", "numpy")


@pytest.mark.parametrize(
    ("index", "error"),
    [("debian", LookupError("no mirror")), ("pip", CommandFailed("pip: none answers"))],
)
def test_an_index_that_does_not_answer_is_an_error(
    indexes: dict[str, object], index: str, error: Exception
) -> None:
    indexes[index] = error
    with pytest.raises(SourceUnavailable, match=f"{error}\n.*check the network"):
        audit.query_indexes(["numpy-1.26.4.tar.gz"])


def test_a_tar_archive_is_dated_by_its_newest_member() -> None:
    source = Source("python3.11_3.11.2.orig.tar.gz", "0" * 64)
    assert audit.find_day(source) is None
    archive = sources.get_cached_path(source)
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as tar:
        for name, time in (("README", TIME), ("configure", TIME - 86400)):
            member = tarfile.TarInfo(name)
            member.mtime = time
            tar.addfile(member, io.BytesIO())
    assert audit.find_day(source) == "2023-02-07"


def test_a_debian_package_is_dated_by_its_first_member() -> None:
    source = Source("libgpuarray3_0.7.6-13+b1_amd64.deb", "0" * 64)
    archive = sources.get_cached_path(source)
    archive.parent.mkdir(parents=True)
    archive.write_bytes(f"!<arch>\n{'debian-binary':16}{TIME:<12}0     0     ".encode())
    assert audit.find_day(source) == "2023-02-07"


def test_a_row_has_the_age_in_years_and_a_newer_release() -> None:
    today = date(2026, 2, 7)
    assert audit.make_row(
        "zlib_1.2.13.dfsg.orig.tar.bz2", Finding("2023-02-07", True, None, ("bookworm",)), today
    ) == [*("zlib", "1.2.13", "2023-02-07", "3.0", "", "bookworm", "")]
    assert audit.make_row("numpy-1.26.4.tar.gz", Finding(None, False, "1.26.5"), today) == [
        *("numpy", "1.26.4", "-", "-", "1.26.5", "", "no longer offered")
    ]
    fixes = Finding(None, True, "3.0.20-1~deb12u3", ("bookworm",))
    assert audit.make_row("openssl_3.0.20-1~deb12u2.debian.tar.xz", fixes, today) == [
        *("openssl", "3.0.20-1~deb12u2", "-", "-", "3.0.20-1~deb12u3", "bookworm", "")
    ]


@pytest.mark.parametrize(
    ("suites", "lasting"),
    [
        ((), True),
        (("bookworm",), True),
        (("bookworm-security",), False),
        (("bookworm", "bookworm-security"), True),
        (("trixie",), False),
    ],
)
def test_only_the_suite_bookworm_keeps_its_files(suites: tuple[str, ...], lasting: bool) -> None:
    assert Finding(None, True, None, suites).lasting is lasting


def test_the_report_has_all_pinned_sources_and_their_suites(
    indexes: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    pinned = [Source(f, "0" * 64) for f in ("numpy-1.26.4.tar.gz", "python3.11_3.11.2.orig.tar.gz")]
    monkeypatch.setattr(audit, "list_recipes", lambda _: [])
    monkeypatch.setattr(audit, "list_pins", lambda _: pinned)
    indexes["debian"] = {pinned[1].file: frozenset({"bookworm-security"})}
    audit.audit("openblas")
    assert f"warning: Debian's suites may remove these files: {pinned[1].file}\n" in (
        capsys.readouterr().out
    )
    report = json.loads((tmp_path / "openblas-audit.json").read_text())
    assert report["sources"] == {
        "numpy-1.26.4.tar.gz": {
            "newer": "1.26.5",
            "offered": True,
            "released": "2024-02-06",
            "suites": [],
        },
        "python3.11_3.11.2.orig.tar.gz": {
            "newer": None,
            "offered": True,
            "released": None,
            "suites": ["bookworm-security"],
        },
    }
