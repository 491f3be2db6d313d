"""Test the search for names that a program imports and the environment lacks."""

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")
pytest.importorskip("lib2to3", reason="Debian's Python and Python 3.13 have no lib2to3")

from theano_fast.porting import imports, sources


@pytest.fixture
def imported(monkeypatch):
    """Replace imports: sklearn.lda and names with "gone" are missing. Return the imported names."""
    imported = []

    def import_names(names):
        imported.extend(names)
        return {name: "No module" for name in names if "gone" in name or name == "sklearn.lda"}

    monkeypatch.setattr(imports, "import_names", import_names)
    monkeypatch.delenv("THEANO_FAST_OLD_NAMES", raising=False)
    return imported


def examine(folder, **files):
    """Write modules into a folder; map the missing names of main.py to their descriptions."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return {missing.name: missing for missing in imports.examine(folder / "main.py")}


def test_missing_names_of_the_program_and_of_its_own_modules_are_found(imported, tmp_path):
    missing = examine(
        tmp_path,
        main="from helper import run\nimport numpy as np\nnp.bool\n",
        helper="import sklearn.lda\nimport gone_package.inner\n",
    )
    assert missing["sklearn.lda"].fix == "write sklearn.discriminant_analysis"
    assert missing["sklearn.lda"].location.endswith("helper.py:1")
    assert missing["gone_package"].fix.endswith("pip install gone_package")
    assert missing["numpy.bool"].fix == "export THEANO_FAST_OLD_NAMES=1"
    assert "helper.run" not in imported


def test_an_optional_import_is_not_required(imported, tmp_path):
    missing = examine(
        tmp_path, main="try:\n    import gone\nexcept ImportError:\n    gone = None\n"
    )
    assert not missing["gone"].required


def test_a_python_2_program_is_parsed_and_reported(imported, tmp_path):
    missing = examine(tmp_path, main="import cPickle, gone\nprint 1\n")
    assert missing["Python 2"].fix == f"theano-fast port {tmp_path / 'main.py'}"
    assert missing["gone"].required
    assert "cPickle" not in missing


def test_a_directory_that_the_program_adds_to_sys_path_is_searched(imported, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "gone.py").touch()
    assert not examine(tmp_path, main="import sys\nsys.path.append('lib')\nimport gone\n")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(sources.SourceError, match="No such file"):
        imports.examine(tmp_path / "no.py")


def test_an_attribute_or_package_that_does_not_exist_has_an_error():
    assert imports.find_error("os.path.join") == imports.find_error("json") == ""
    assert "gone" in imports.find_error("os.gone")
    assert "no_such_package" in imports.find_error("no_such_package.name")
