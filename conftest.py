"""Examples of docstrings run as a reader would run them: copied into an empty interpreter."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Take away the names of the module in which an example stands."""
    if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
        item.dtest.globs = {"__name__": "__main__"}
