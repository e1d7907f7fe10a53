"""``hsreject init``: a first configuration for a scene of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import BandAxis, check_there


def init_command(
    scene: Annotated[
        Path,
        typer.Argument(metavar="SCENE", help="A product, ENVI, GeoTIFF, Zarr, .mat, .npy or URL."),
    ],
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS", help="Reference: raster, .mat, .npy, polygons or points; 0 is none."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write; by default the name of SCENE, .toml."),
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(help="Of polygons or points: the attribute with the class.")
    ] = None,
    variable: Annotated[
        str | None, typer.Option(help="Of a .mat file: the array that is the scene.")
    ] = None,
    labels_variable: Annotated[
        str | None, typer.Option(help="Of LABELS: the array of a .mat file, or the layer.")
    ] = None,
    band_axis: BandAxis = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is already there.")
    ] = False,
) -> None:
    """Write a configuration for a scene and its labels, ready for 'hsreject run'."""
    check_there(scene, labels)
    from hsreject.files import check_target, replacing

    target = Path(f"{scene.stem}.toml") if out is None else out
    check_target(target, overwrite=overwrite)

    from hsreject.pipeline.drafting import draft_configuration

    draft = draft_configuration(
        scene,
        labels,
        variable=variable,
        labels_variable=labels_variable,
        attribute=attribute,
        band_axis=band_axis,
    )
    with replacing(target, overwrite=overwrite) as work:
        work.write_text(draft.text, encoding="utf-8")
    console = Console(highlight=False)
    say = [f"{scene.name}: {draft.summary}", *(f"- {note}" for note in draft.notes)]
    say += [f"wrote {target}; next: hsreject run {target}"]
    for line in say:
        console.print(line, soft_wrap=True, markup=False)
