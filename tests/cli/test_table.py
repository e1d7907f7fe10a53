"""Tables of results keep every digit, however narrow the terminal."""

import io

import pytest
from rich.console import Console

from hsreject.cli.table import result_table

HEADINGS = ("unknown class", "pixels", "pixelwise", "+ novelty", "sequential", "novelty alone")
ROWS = (
    ("10, 11, 12, 13, 14, 15", "1234567", "0.912", "0.934", "0.956 +- 0.011", "0.978"),
    ("mean", "", "0.812", "0.834", "0.856 +- 0.022", "0.878"),
)


def lines(width: int, *, terminal: bool) -> list[str]:
    """Return what is shown of the table on a console of this width."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=terminal, width=width, color_system=None)
    table = result_table(console, *HEADINGS)
    for row in ROWS:
        table.add_row(*row)
    console.print(table)
    return shown.getvalue().splitlines()


@pytest.mark.parametrize("terminal", [False, True], ids=["log", "terminal"])
@pytest.mark.parametrize("width", [24, 40, 60, 70, 80, 90, 100, 200])
def test_no_character_is_lost_at_any_width(width: int, *, terminal: bool) -> None:
    found = lines(width, terminal=terminal)
    assert max(map(len, found)) <= width
    expected = "".join("".join(cells) for cells in (HEADINGS, *ROWS))
    assert sorted(c for line in found for c in line if c not in " ─") == sorted(
        expected.replace(" ", "")
    )


@pytest.mark.parametrize("terminal", [False, True], ids=["log", "terminal"])
def test_words_break_before_names_and_names_before_numbers(*, terminal: bool) -> None:
    wide, narrow, small = ("\n".join(lines(width, terminal=terminal)) for width in (110, 84, 72))
    assert "0.956 +- 0.011" in wide
    assert "0.956 +- 0.011" not in narrow
    assert all(whole in narrow for whole in (*HEADINGS, ROWS[0][0]))
    assert ROWS[0][0] not in small
    assert all(word in small for word in ("1234567", "0.956", "0.011", "sequential", "0.978"))
