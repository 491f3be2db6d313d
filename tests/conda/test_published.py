"""Install and search packages in a channel that `./invoke publish` wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from commands import EXAMPLE, Conda, list_installed, read_page

from builder.environment import envs


def test_a_stack_is_installed_by_its_name(
    user: Conda, published: tuple[Path, str], tmp_path: Path, verify: Callable[[Path], None]
) -> None:
    directory, address = published
    create = read_page("Install")[1].replace(EXAMPLE, address)
    user.run(create, tmp_path)
    prefix = user.get_prefix("theano-openblas")
    assert list_installed(prefix) == {file.name for file in directory.glob("*/*.conda")}
    verify(prefix)


def test_a_published_lock_file_has_the_channels_address(
    user: Conda, published: tuple[Path, str], tmp_path: Path
) -> None:
    directory, address = published
    lock = directory / "envs" / "openblas" / envs.LOCK_NAME
    user.run(f"conda create --yes --name locked --file {lock}", tmp_path)
    urls = re.findall(r"^(\S+)/\w[\w-]+/\S+#sha256:", lock.read_text(), re.MULTILINE)
    assert set(urls) == {address}
    assert len(list_installed(user.get_prefix("locked"))) == len(urls)


def test_conda_search_describes_a_package(
    user: Conda, published: tuple[Path, str], tmp_path: Path
) -> None:
    """The description has the file name, the licence and the dependencies."""
    search = "conda search --info --override-channels --channel"
    output = user.run(f"{search} {published[1]} theano-stack", tmp_path)
    assert re.search(
        r"^file name +: theano-stack-1\.0\.5-\w+_openblas\.conda$", output, re.MULTILINE
    )
    assert re.search(r"^license +: MIT$", output, re.MULTILINE)
    assert re.search(r"^  - libblas \* \*_openblas$", output, re.MULTILINE)
