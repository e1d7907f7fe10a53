"""``hsreject figure``: a figure of the paper, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def figure(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="Which figure of the paper: 2 to 8.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path(),
) -> None:
    """Draw a figure of the paper again: PNG, PDF and a text that says what differs and why."""
    from rich.console import Console

    from hsreject.cli.progress import progress_on
    from hsreject.experiments import FIGURES
    from hsreject.files import check_folder

    check_folder(out, overwrite=True)  # before the work, not after it
    with progress_on(Console(stderr=True)) as progress:
        # figures that take long have an option `progress`
        options = {"progress": progress} if "progress" in FIGURES.options(number) else {}
        made = FIGURES.create(number, **options)
    for file in made.save(out):
        typer.echo(f"wrote {file}")
    typer.echo(f"\n{made.text()}", nl=False)
