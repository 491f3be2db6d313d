from pathlib import Path

import pytest
from theano_fast import elf, libraries


@pytest.fixture
def libc() -> str:
    return next(file for file in libraries.mapped() if Path(file).name.startswith("libc.so"))


def test_reads_a_real_library(libc):
    read = elf.read(libc)
    assert read.soname == "libc.so.6"
    assert any(name.startswith("ld-linux") for name in read.needed)


def test_find_dependents(libc):
    users = libraries.find_dependents(libc, [libc])
    assert users == ()


@pytest.mark.parametrize("length", [0, 5, 20, 70, 3000])
def test_refuses_what_is_no_whole_elf_file(tmp_path, libc, length):
    cut = tmp_path / "cut.so"
    cut.write_bytes(Path(libc).read_bytes()[:length])
    for function in (elf.read, elf.undefined):
        with pytest.raises(elf.ElfError, match="ELF file"):
            function(cut)


def test_refuses_another_kind_of_file(tmp_path):
    script = tmp_path / "libblas.so"
    script.write_text("GROUP ( libopenblas.so.0 )")
    with pytest.raises(elf.ElfError, match="not a 64-bit"):
        elf.read(script)


def test_undefined_symbols_are_those_of_other_libraries(libc):
    names = elf.undefined(libc)
    assert "__tls_get_addr" in names
    assert "malloc" not in names
