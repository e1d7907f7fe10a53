"""``hsreject info``: how hsreject understands a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hsreject.cli.console import BandAxis, TrustVrt, check_there, progress_on
from hsreject.progress import no_progress

if TYPE_CHECKING:
    from hsreject.io.describe import Description


def info_command(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A scene, a label map or a vector file.")
    ],
    *,
    variable: Annotated[
        str | None, typer.Option(help="Which array of a .mat file, or layer of a vector file.")
    ] = None,
    band_axis: BandAxis = None,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read the pixels.")] = False,
    trust_vrt: TrustVrt = False,  # its callback acts
) -> None:
    """Print how hsreject understands a file: size, place, bands, nodata, classes, guesses."""
    check_there(path)
    from hsreject.io.describe import describe

    screen = Console()
    with progress_on(Console(stderr=True)) as progress:
        description = describe(
            path,
            variable=variable,
            band_axis=band_axis,
            quick=quick,
            progress=progress if screen.is_terminal else no_progress,
        )
    if screen.is_terminal:
        _show_tables(description, screen)
    else:
        typer.echo(plain_text(description))


def plain_text(description: Description) -> str:
    """Return a description as lines that other programs can read."""
    lines = [f"{name}: {value}" for name, value in description.rows]
    lines += [f"Class {c.value}: {c.name}, {c.n_pixels} pixels" for c in description.classes]
    return "\n".join(lines + [f"Guess: {guess}" for guess in description.guesses])


def _show_tables(description: Description, screen: Console) -> None:
    grid = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in description.rows:
        grid.add_row(name, Text(value))
    screen.print(grid, highlight=False)
    if description.classes:
        table = Table("", "value", "class", "pixels", box=None, padding=(0, 2, 0, 0))
        table.columns[1].justify = table.columns[3].justify = "right"
        for entry in description.classes:
            swatch = Text("\u2588\u2588", style=entry.color)
            table.add_row(swatch, str(entry.value), Text(entry.name), str(entry.n_pixels))
        screen.print()
        screen.print(table, highlight=False)
    if description.guesses:
        screen.print("\n[bold]Guessed, because the file does not say it[/bold]")
        for guess in description.guesses:
            screen.print(Text(f"- {guess}"))
