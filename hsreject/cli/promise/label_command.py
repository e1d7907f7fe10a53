"""``hsreject label``: a page on which the points of a sample are labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import ReplaceFile, check_there, print_lines
from hsreject.cli.promise.promise_options import (
    Nodata,
    ShowLabel,
    open_label_map,
)


def label_command(
    sample: Annotated[Path, typer.Argument(metavar="POINTS", help="File of 'hsreject sample'.")],
    *,
    scene: Annotated[Path, typer.Option(help="Scene to show the points on.")],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="The label map that the points were drawn from; by default the scene's grid and "
            "the classes that a GeoPackage offers."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to make: .html.")],
    medians: Annotated[
        Path | None, typer.Option(help="Labels of training pixels: show class medians, too.")
    ] = None,
    show_label: ShowLabel = False,
    nodata: Nodata = None,
    overwrite: ReplaceFile = False,
) -> None:
    """Make a page on which the points of a sample are labelled, without a network.

    It saves a CSV file that 'hsreject certify' and 'hsreject assess' read, and continues from one.
    """
    check_there(sample, scene, labels, medians)
    from hsreject.errors import InputError
    from hsreject.files import check_target
    from hsreject.io.labels import open_labels
    from hsreject.io.scene import open_scene
    from hsreject.promise.label_page import offered_map, write_label_page
    from hsreject.promise.sample import open_sample

    check_target(out, overwrite=overwrite)
    cube = open_scene(scene)
    if labels is None and (show_label or medians is not None):
        raise InputError("--show-label and --medians need the map of the points: give --labels.")
    on_map = offered_map(sample, cube) if labels is None else open_label_map(labels, nodata)
    training = None if medians is None else open_labels(medians, like=on_map)
    points = open_sample(sample, on_map)
    write_label_page(
        points, cube, out, medians=training, show_label=show_label, overwrite=overwrite
    )
    print_lines(
        Console(highlight=False),
        f"wrote {out}: open it in a browser, label {len(points)} points, save the CSV file",
    )
