"""Test the list of loaded libraries, and the search for BLAS and OpenMP libraries."""

import shutil
import sys
from pathlib import Path

import pytest
from theano_fast import libraries

# The format of /proc/<pid>/maps.
MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 11 /env/bin/python3.11
55d0c0001000-55d0c0002000 r-xp 00001000 08:01 11 /env/bin/python3.11
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7f0000001000-7f0000002000 r-xp 00000000 08:01 12 /env/lib/with a space/libopenblas.so.0
7f0000003000-7f0000004000 r--p 00000000 08:01 13 /usr/lib/locale/locale-archive
7f0000005000-7f0000006000 r-xp 00000000 08:01 14 /tmp/gone.so (deleted)
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]
"""


def test_parse_returns_files_with_executable_mappings():
    assert libraries.parse_maps(MAPS) == (
        "/env/bin/python3.11",
        "/env/lib/with a space/libopenblas.so.0",
        "/tmp/gone.so",
    )


@pytest.mark.parametrize("permissions", ["r--p", "r-xp"])
def test_elf_files_are_listed_if_the_interpreter_is_not_executable(
    monkeypatch, tmp_path, permissions
):
    library, fonts = tmp_path / "libopenblas.so", tmp_path / "fonts"
    other = tmp_path / "libcudnn.so"
    for copy in (library, other):
        shutil.copy(sys.executable, copy)
    fonts.write_bytes(b"fonts")
    lines = [
        f"4000000000-4000001000 {permission} 00000000 08:01 1 {file}"
        for file, permission in ((library, "r--p"), (other, permissions), (fonts, "r--p"))
    ]
    read_text = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path: "\n".join(lines) if "maps" in str(path) else read_text(path),
    )
    assert libraries.list_mapped() == (str(other), str(library))


class TestBlasInstances:
    def test_each_blas_family_is_recognized(self):
        files = [
            "/e/lib/libopenblasp-r0.3.29.so",
            "/w/numpy.libs/libscipy_openblas64_-6bb31eeb.so",
            "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0",
            "/usr/lib/libsatlas.so.3",
            "/usr/lib/libblis.so.4",
            "/usr/lib/liblapack.so.3",
        ]
        assert [family for family, _ in libraries.find_blas(files)] == [
            "atlas",
            "blis",
            "netlib",
            "openblas",
            "openblas",
        ]

    def test_the_libraries_of_mkl_in_a_directory_are_one_blas(self):
        files = ["/e/lib/libmkl_rt.so.2", "/e/lib/libmkl_core.so.2", "/other/libmkl_rt.so.2"]
        assert libraries.find_blas(files) == (("mkl", "/e/lib"), ("mkl", "/other"))


def test_openmp_runtimes_are_found_by_file_name():
    files = ["/e/lib/libgomp.so.1.0.0", "/e/lib/libiomp5.so", "/e/lib/libompose.so"]
    assert libraries.find_openmp(files) == ("/e/lib/libgomp.so.1.0.0", "/e/lib/libiomp5.so")


def test_foreign_files_are_neither_in_the_environment_nor_of_glibc():
    own = ["/env/lib/libz.so.1"]
    glibcs = [
        "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/x86_64-linux-gnu/libm-2.31.so",
        "/usr/lib/x86_64-linux-gnu/libmvec.so.1",
        "/usr/lib/x86_64-linux-gnu/libnss_files.so.2",
    ]
    hosts = [
        "/environment/lib/libz.so.1",
        "/usr/lib/libstdc++.so.6.0.30",
        "/usr/lib/x86_64-linux-gnu/libcrypt.so.1",
        "/usr/lib/x86_64-linux-gnu/libmount.so.1",
    ]
    assert list(libraries.find_foreign(own + glibcs + hosts, ["/env"])) == hosts
