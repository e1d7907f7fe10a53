"""``hsreject info``: how hsreject understands a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hsreject.cli.console import print_line, progress_on
from hsreject.cli.options import BandAxis, TrustVrt, check_there


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

    with progress_on(log=False) as progress:
        description = describe(
            path, variable=variable, band_axis=band_axis, quick=quick, progress=progress
        )
    for name, value in description.rows:
        print_line(f"{name}: {value}")
    for one in description.classes:
        print_line(f"Class {one.value}: {one.name}, {one.n_pixels} pixels")
    for guess in description.guesses:
        print_line(f"Guess: {guess}")
