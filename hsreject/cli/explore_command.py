"""``hsreject explore``: an interactive page of a map with rejection, from any software."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import BandAxis, check_there, progress_on


def explore_command(  # noqa: PLR0913 (one argument per option)
    *,
    labels: Annotated[
        list[Path],
        typer.Option(help="Assigned classes before rejection: raster. Again for another system."),
    ],
    confidence: Annotated[
        list[Path],
        typer.Option(help="Confidence of the labels, larger is surer: raster. One per --labels."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write, such as map.html.")],
    reference: Annotated[
        Path | None,
        typer.Option(help="True classes to measure on: raster (0 is none), polygons or points."),
    ] = None,
    scene: Annotated[
        Path | None, typer.Option(help="The image, for false color and spectra.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="What the page calls a system; one per --labels.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Share that is rejected when the page opens.")
    ] = None,
    rejection_cost: Annotated[
        float | None,
        typer.Option(help="Open where a rejection of this cost is cheapest, an error being 1."),
    ] = None,
    certified: Annotated[
        float | None, typer.Option(help="A certified threshold of the first system, to be marked.")
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(help="Attribute of polygons or points that holds the class.")
    ] = None,
    nodata: Annotated[int | None, typer.Option(help="One more label that means no data.")] = None,
    band_axis: BandAxis = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page that is already there.")
    ] = False,
) -> None:
    """Write one HTML file in which a reader rejects more or less and sees what that is worth.

    It needs no network: send it to a colleague. With --reference it shows how right the kept pixels
    are, with --scene what the ground looks like.
    """
    check_there(*labels, *confidence, reference, scene)
    from hsreject.files import check_target

    check_target(out, overwrite=overwrite)  # before the work, not after it
    import numpy as np

    from hsreject.errors import InputError
    from hsreject.io.maps import open_maps
    from hsreject.io.scene import open_scene
    from hsreject.progress import reporting_reads
    from hsreject.report.evaluation import as_dataset, training_warnings
    from hsreject.report.explorer import write_explorer

    names = name or [path.stem for path in labels]
    if not len(labels) == len(confidence) == len(set(names)):
        raise InputError(
            "Each system has one --labels, one --confidence and a name of its own (got "
            f"{len(labels)}, {len(confidence)} and {', '.join(names)}). Name them with --name."
        )
    systems = {}
    for system, label, sure in zip(names, labels, confidence, strict=True):
        given = {"label": label, "confidence": sure}
        if reference is not None:
            given["reference"] = reference
        maps = open_maps(given, nodata=nodata, attribute=attribute)
        if "reference" in maps:
            training_warnings(label, maps["label"], np.nonzero(maps["reference"].values))
        systems[system] = as_dataset(maps)
    with progress_on(Console(stderr=True)) as progress, reporting_reads(progress):
        page = write_explorer(
            systems,
            out,
            scene=None if scene is None else open_scene(scene, band_axis=band_axis),
            title=title,
            fraction=fraction,
            rejection_cost=rejection_cost,
            certified=certified,
            nodata=nodata,
            overwrite=overwrite,
            progress=progress,
        )
    Console(highlight=False).print(
        f"wrote {page} ({page.stat().st_size / 1e6:.1f} MB). Open it in a browser.",
        soft_wrap=True,
        markup=False,
    )
