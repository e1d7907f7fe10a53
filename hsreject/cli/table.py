"""Tables of results: a rule under the headings on a terminal, bare columns in a log."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table


class ResultTable(Table):
    """A table that breaks cells where the terminal is narrow and never cuts one off.

    Cells of several words break first, then names and headings between their words, and last of all
    words and numbers.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Set the widths of the columns for this console, then draw the table."""
        frame = len(self.columns) + 1 if self.box else 0
        room = options.max_width - frame - len(self.columns) * self.padding[1]
        first, *others = (_texts(column) for column in self.columns)
        words = [_longest_word(texts) for texts in (first, *others)]
        whole = [max(map(cell_len, first))]
        whole += [max(cell_len(texts[0]), _longest_word(texts)) for texts in others]
        natural = [max(map(cell_len, texts)) for texts in (first, *others)]
        for column, width in zip(self.columns, _widths(natural, whole, words, room), strict=True):
            column.width = width
        yield from super().__rich_console__(console, options)


def result_table(console: Console, *headings: str, title: str | None = None) -> ResultTable:
    """Return an empty table for `console`: the first column names, the others hold numbers.

    Names and headings stay whole on a terminal of 80 columns; cells with several words may break.
    """
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    gap = 1 if frame else 2
    table = ResultTable(
        title=title, title_justify="left", box=frame, pad_edge=False, padding=(0, gap, 0, 0)
    )
    first, *others = headings
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _texts(column: Column) -> list[str]:
    return [str(column.header), *map(str, column.cells)]


def _longest_word(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=1)


def _widths(
    natural: Sequence[int], whole: Sequence[int], words: Sequence[int], room: int
) -> list[int]:
    """Return widths that fit into `room`, the widest column shrinking first.

    All columns reach their width in `whole` before one falls below it, and so with `words`.
    """
    widths = list(natural)
    for floor in (whole, words, [1] * len(widths)):
        excess = sum(widths) - room
        while excess > 0 and widths != list(floor):
            shrinkable = [i for i, width in enumerate(widths) if width > floor[i]]
            widths[max(shrinkable, key=lambda i: widths[i])] -= 1
            excess -= 1
    return widths
