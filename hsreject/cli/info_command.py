"""``hsreject info``: how hsreject understands a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import BandAxis, TrustVrt, check_there, print_lines, progress_on
from hsreject.progress import no_progress


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

    errors = Console(stderr=True)
    with progress_on(errors) as progress:
        description = describe(
            path,
            variable=variable,
            band_axis=band_axis,
            quick=quick,
            progress=progress if errors.is_terminal else no_progress,
        )
    lines = [f"{name}: {value}" for name, value in description.rows]
    lines += [f"Class {c.value}: {c.name}, {c.n_pixels} pixels" for c in description.classes]
    print_lines(Console(), *lines, *(f"Guess: {guess}" for guess in description.guesses))
