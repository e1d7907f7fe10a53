"""Tables of results: a rule under the headings on a terminal, bare columns in a log."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table


def result_table(console: Console, *headings: str, title: str | None = None) -> Table:
    """Return an empty table for `console`: the first column names, the others hold numbers.

    Names and headings stay whole on a narrow terminal; cells with several words may break.
    """
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    gap = 1 if frame else 2
    table = Table(
        title=title, title_justify="left", box=frame, pad_edge=False, padding=(0, gap, 0, 0)
    )
    first, *others = headings
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", min_width=len(heading))
    return table
