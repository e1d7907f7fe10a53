"""Examples run as a reader would run them; what Windows cannot do is not tested there."""

import sys

import pytest

needs_posix = pytest.mark.skip(reason="signals, links, pipes or limits that Windows does not have")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run an example of a docstring in an empty interpreter, not with the names of its module."""
    if sys.platform == "win32" and item.get_closest_marker("posix"):
        item.add_marker(needs_posix)
    if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
        item.dtest.globs = {"__name__": "__main__"}
