"""port/no-distutils.patch moves the scripts into the package theano.

Without the patch, the scripts are in a top-level package called bin. One of them, theano-nose,
cannot be imported without nose.
"""

from importlib.metadata import distribution


def list_scripts():
    """Return a dictionary from the names of Theano's console scripts to their functions."""
    entry_points = distribution("Theano").entry_points
    return {script.name: script.value for script in entry_points.select(group="console_scripts")}


def test_theano_cache_is_the_only_script():
    assert list_scripts() == {"theano-cache": "theano.bin.theano_cache:main"}


def test_no_top_level_package_is_called_bin():
    files = distribution("Theano").files
    assert files
    assert not [file for file in files if file.parts[0] == "bin"]


def test_each_command_of_theano_cache_succeeds(run_python, tmp_path):
    flags = f"base_compiledir={tmp_path}"
    command = "import sys; from theano.bin.theano_cache import main; sys.argv[1:] = {!r}; main()"
    fill_cache = "import theano; x = theano.tensor.dvector(); theano.function([x], x + 1)"
    assert run_python(fill_cache, flags=flags).returncode == 0
    for arguments in (
        [],
        ["list"],
        ["cleanup"],
        ["unlock"],
        ["clear"],
        ["purge"],
        ["basecompiledir", "list"],
        ["help"],
    ):
        result = run_python(command.format(arguments), flags=flags)
        assert result.returncode == 0, (arguments, result.stderr)
        assert "Traceback" not in result.stderr
    assert not list(tmp_path.glob("*/tmp*"))


def test_setup_requires_supported_versions():
    requirements = distribution("Theano").requires
    # Releases of setuptools write different spaces.
    specifiers = [
        line.split(";")[0].replace(" ", "") for line in requirements if "extra" not in line
    ]
    assert set(specifiers) == {"numpy<1.27,>=1.26.4", "scipy<1.12,>=1.11", "six>=1.9.0"}
