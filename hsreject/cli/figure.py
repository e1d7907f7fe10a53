"""``hsreject figure``: a figure of the paper, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def figure(
    number: Annotated[str, typer.Argument(help="Number of the figure in the paper, 2 to 5.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path(),
) -> None:
    """Draw a figure of the paper again: PNG, PDF and a text that says what differs and why."""
    from hsreject.experiments import FIGURES  # noqa: PLC0415 (see the package's docstring)

    made = FIGURES.create(number)
    for file in made.save(out):
        typer.echo(f"wrote {file}")
    typer.echo(f"\n{made.text()}", nl=False)
