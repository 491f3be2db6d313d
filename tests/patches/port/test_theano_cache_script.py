"""port/no-distutils.patch moves the scripts into the package theano.

Without the patch, they are in a top-level package called bin, and theano-nose cannot be imported
without nose.
"""

from importlib.metadata import distribution


def scripts():
    entry_points = distribution("Theano").entry_points
    return {script.name: script.value for script in entry_points.select(group="console_scripts")}


def test_theano_cache_is_the_only_script():
    assert scripts() == {"theano-cache": "theano.bin.theano_cache:main"}


def test_no_top_level_package_is_called_bin():
    files = distribution("Theano").files
    assert files
    assert not [file for file in files if file.parts[0] == "bin"]


def test_commands_of_theano_cache(run_python, tmp_path):
    flags = f"base_compiledir={tmp_path}"
    command = "import sys; from theano.bin.theano_cache import main; sys.argv[1:] = {!r}; main()"
    build = "import theano; x = theano.tensor.dvector(); theano.function([x], x + 1)"
    assert run_python(build, flags=flags).returncode == 0
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
    required = distribution("Theano").requires
    # Releases of setuptools differ in the spaces that they write.
    specifiers = [line.split(";")[0].replace(" ", "") for line in required if "extra" not in line]
    assert set(specifiers) == {"numpy<1.27,>=1.26.4", "scipy<1.12,>=1.11", "six>=1.9.0"}
