"""Report the seconds to each program's first result."""

import pytest

SECONDS = {}


@pytest.fixture
def seconds_to_first_result():
    """Map programs to seconds from the start of the process, with an empty compiledir."""
    return SECONDS


def pytest_terminal_summary(terminalreporter):
    """Print a line for each program that ran."""
    for name, seconds in sorted(SECONDS.items()):
        terminalreporter.write_line(f"{name}: first result after {seconds:.1f} s")
