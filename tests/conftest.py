"""Select thorough tests: slow tests, and tests that repeat a check under other conditions.

By default, pytest deselects the thorough tests.

- ``--thorough`` runs all tests.
- ``--turn=N`` runs only one seventh of the thorough tests: part N modulo 7.
- A command line with a test's name (FILE::TEST) deselects nothing.
"""

# The number of parts of the thorough tests. Continuous integration runs one part per day.
PARTS = 7


def pytest_addoption(parser):
    """Add the options --thorough and --turn."""
    parser.addoption("--thorough", action="store_true", help="also run the thorough tests")
    parser.addoption(
        "--turn", type=int, help=f"run only part N modulo {PARTS} of the thorough tests"
    )


def pytest_configure(config):
    """Register the marker ``thorough``."""
    config.addinivalue_line("markers", "thorough: runs only with --thorough, --turn or by name")


def pytest_collection_modifyitems(config, items):
    """Deselect the thorough tests; with --turn, select only a part of the thorough tests."""
    thorough = [item for item in items if item.get_closest_marker("thorough")]
    turn = config.option.turn
    if turn is not None:
        selected = thorough[turn % PARTS :: PARTS]
    elif config.option.thorough or any("::" in name for name in config.invocation_params.args):
        return
    else:
        selected = [item for item in items if item not in thorough]
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = selected
