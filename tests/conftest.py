"""Select the thorough tests, which take long or repeat a check in other circumstances.

By default they do not run. --thorough adds all of them; --turn=N runs one part of them and nothing
else. A test that the command line names runs in any case.
"""

# Continuous integration runs one part per day.
PARTS = 7


def pytest_addoption(parser):
    """Add --thorough and --turn."""
    parser.addoption("--thorough", action="store_true", help="also run the thorough tests")
    parser.addoption("--turn", type=int, help=f"run only this part, modulo {PARTS}, of them")


def pytest_configure(config):
    """Register the marker."""
    config.addinivalue_line("markers", "thorough: runs only with --thorough, --turn or by name")


def pytest_collection_modifyitems(config, items):
    """Deselect thorough tests, or all tests but a part of them."""
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
