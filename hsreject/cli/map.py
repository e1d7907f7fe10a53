"""``hsreject map``: map a scene of any size with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.options import BandAxis, Overwrite, Variable

if TYPE_CHECKING:
    from rich.console import Console

    from hsreject.mapping.summary import MapSummary


def map_command(  # noqa: PLR0913 (one argument an option)
    scene: Annotated[
        Path, typer.Argument(metavar="SCENE", help="ENVI, GeoTIFF, .mat or .npy; of any size.")
    ],
    *,
    model: Annotated[Path, typer.Option("--model", "-m", help="Made by 'hsreject train'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder for the maps.")],
    fraction: Annotated[
        float | None, typer.Option(help="Share of the pixels to reject, from 0 to 1.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Reject the pixels with a confidence below it.")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accuracy that the kept pixels should have, rejecting no more than that."
        ),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            help="Reject what makes the map cheapest if a rejected pixel costs this, and a "
            "wrong one 1."
        ),
    ] = None,
    match_bands: Annotated[
        str, typer.Option(help="Bands of another instrument: exact, nearest or interpolate.")
    ] = "exact",
    memory: Annotated[
        str, typer.Option(help="Bound of the memory of this process, such as 500MB.")
    ] = "2GB",
    block_size: Annotated[
        int | None,
        typer.Option(help="Side of a block in pixels; by default it follows from memory."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Blocks at a time; by default as many as cores and memory allow."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a dask cluster, such as tcp://127.0.0.1:8786."),
    ] = None,
    variable: Variable = None,
    band_axis: BandAxis = None,
    overwrite: Overwrite = False,
) -> None:
    """Map a scene with a trained model, rejecting the pixels that it is least sure of.

    Give one of --fraction, --threshold, --accuracy and --cost. The last two take the threshold
    that the test pixels of the training scene ask for. Scenes larger than memory are mapped in
    blocks.
    """
    from rich.console import Console

    from hsreject.cli.progress import progress_on
    from hsreject.mapping.map_scene import map_scene
    from hsreject.mapping.tasks import cluster

    with progress_on(Console(stderr=True)) as progress, cluster(scheduler):
        made = map_scene(
            scene,
            model,
            out=out,
            fraction=fraction,
            threshold=threshold,
            accuracy=accuracy,
            rejection_cost=cost,
            variable=variable,
            band_axis=band_axis,
            match_bands=match_bands,
            memory=memory,
            block_size=block_size,
            n_workers=workers,
            overwrite=overwrite,
            progress=progress,
        )
    console = Console(highlight=False)
    show_summary(made.summary, console)
    console.print(f"wrote {out}", soft_wrap=True, markup=False)


def show_summary(summary: MapSummary, console: Console) -> None:
    """Print what was rejected, why, and how much of each class is kept."""
    from hsreject.cli.table import result_table

    headings = ("class", "kept", "rejected", "rejected share", "hectares kept")
    table = result_table(console, *headings)
    for share in summary.classes:
        hectares = summary.hectares(share.n_kept)
        table.add_row(
            share.name,
            str(share.n_kept),
            str(share.n_rejected),
            f"{100 * share.n_rejected / share.n_pixels:.1f} %" if share.n_pixels else "",
            "" if hectares is None else f"{hectares:.1f}",
        )
    console.print(table)
    rejection = summary.rejection
    console.print(
        f"rejected {100 * summary.rejected_fraction:.2f} % of {summary.n_pixels} pixels with data: "
        f"confidence below {rejection.threshold:.6g}, {rejection.source}",
        soft_wrap=True,
        markup=False,
    )
