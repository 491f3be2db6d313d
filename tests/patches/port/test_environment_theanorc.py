"""port/environment-files.patch reads the environment's flags from etc/theanorc in its prefix.

Without the patch, Theano does not read this file.
"""

import pytest

SHOW_FLOATX = """
import sys
sys.prefix = {prefix!r}
import theano
print(theano.config.floatX)
"""


@pytest.fixture
def prefix(tmp_path):
    """Return a prefix whose etc/theanorc sets floatX to float16."""
    theanorc = tmp_path / "prefix" / "etc" / "theanorc"
    theanorc.parent.mkdir(parents=True)
    theanorc.write_text("[global]\nfloatX = float16\n")
    return str(theanorc.parents[1])


def read_floatx(result):
    """Return the value of floatX that a process printed."""
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_environments_theanorc_is_read(run_python, prefix):
    assert read_floatx(run_python(SHOW_FLOATX.format(prefix=prefix))) == "float16"


def test_home_overrides_environment(run_python, prefix, tmp_path):
    (tmp_path / ".theanorc").write_text("[global]\nfloatX = float32\n")
    assert read_floatx(run_python(SHOW_FLOATX.format(prefix=prefix))) == "float32"


def test_theanorc_variable_overrides_environment(run_python, prefix, tmp_path):
    other = tmp_path / "other"
    other.write_text("[global]\nfloatX = float32\n")
    assert (
        read_floatx(run_python(SHOW_FLOATX.format(prefix=prefix), THEANORC=str(other))) == "float32"
    )


def test_theano_flags_override_all_files(run_python, prefix, tmp_path):
    (tmp_path / ".theanorc").write_text("[global]\nfloatX = float32\n")
    result = run_python(SHOW_FLOATX.format(prefix=prefix), flags="floatX=float64")
    assert read_floatx(result) == "float64"


def test_virtual_environment_reads_its_base(run_python, prefix):
    code = SHOW_FLOATX.format(prefix="/nonexistent").replace(
        "import theano", f"sys.base_prefix = {prefix!r}\nimport theano"
    )
    assert read_floatx(run_python(code)) == "float16"
