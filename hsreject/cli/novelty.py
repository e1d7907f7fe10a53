"""``hsreject novelty``: how well classes that were never trained on are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.options import BandAxis, Variable

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console


def novelty(  # noqa: PLR0913 (one argument an option)
    *,
    scene: Annotated[
        Path | None, typer.Option(help="The scene; by default Indian Pines, offline.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Its reference labels.")] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Classes that are unknown together, such as 10,11. Repeatable; by default every "
            "class by itself, on Indian Pines six sets."
        ),
    ] = None,
    variable: Variable = None,
    band_axis: BandAxis = None,
    per_class: Annotated[int, typer.Option(help="Training pixels a class.")] = 10,
    seeds: Annotated[int, typer.Option(help="Draws of the training pixels.")] = 5,
    components: Annotated[int, typer.Option(help="MNF components.")] = 30,
    smoothing: Annotated[float, typer.Option(help="Gaussian smoothing of them, in pixels.")] = 2.0,
    weight: Annotated[float, typer.Option(help="Weight of the context, vector TV.")] = 2.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the table to this file, .nc.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a table that is already there.")
    ] = False,
) -> None:
    """Hold classes out of the training; report how early their pixels are rejected, and the cost.

    AUROC is the probability that a pixel of an unknown class is rejected before one of a known
    class: 0.5 is chance, 1 perfect.
    """
    from rich.console import Console

    from hsreject.cli.progress import progress_on
    from hsreject.context.priors import VectorTV
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.experiments.novelty import (
        INDIAN_PINES_HOLD_OUTS,
        NoveltyExperiment,
    )
    from hsreject.features.components import MNF
    from hsreject.features.spatial import Smooth
    from hsreject.io.netcdf import check_dataset_path, write_dataset

    if out is not None:
        check_dataset_path(out, overwrite=overwrite)  # before the work, not after it
    hold_outs = tuple(_classes(text) for text in hold_out or ())
    usual = INDIAN_PINES_HOLD_OUTS if scene is None else None
    experiment = NoveltyExperiment(
        hold_outs or usual,
        n_per_class=per_class,
        n_seeds=seeds,
        features=(MNF(components), Smooth(smoothing)),
        context=SegSALSA(VectorTV(weight)),
    )
    cube, reference = _input(scene, labels, variable=variable, band_axis=band_axis)
    with progress_on(Console(stderr=True)) as progress:
        result = experiment.run(cube, reference, progress=progress)
    show_novelty(result, Console(highlight=False))
    if out is not None:
        write_dataset(result, out, overwrite=overwrite)


def _input(
    scene: Path | None, labels: Path | None, *, variable: str | None, band_axis: int | None
) -> tuple[xr.DataArray, xr.DataArray]:
    from hsreject.datasets.indian_pines import load_indian_pines
    from hsreject.errors import InputError
    from hsreject.io.labels import open_labels
    from hsreject.io.scene import open_scene

    if (scene is None) != (labels is None):
        raise InputError("Give --scene and --labels together, or neither for Indian Pines.")
    if scene is None or labels is None:
        return load_indian_pines()
    cube = open_scene(scene, variable=variable, band_axis=band_axis)
    return cube, open_labels(labels, like=cube)


def _classes(text: str) -> tuple[int, ...]:
    from hsreject.errors import InputError

    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--hold-out takes label values with commas between them, such as 10,11 (got '{text}')."
        ) from None


def show_novelty(result: xr.Dataset, console: Console) -> None:
    """Print the AUROC of every hold-out and the accuracy with nothing unknown."""
    from hsreject.cli.table import result_table

    headings = ["pixels", "pixelwise", "+ novelty", "sequential", "+ novelty", "novelty alone"]
    table = result_table(console, "unknown", *headings)
    auroc = result["auroc"].mean("seed").stack(column=("rejector", "with_novelty"))
    alone = result["novelty_auroc"].mean("seed")
    for name, pixels, row, own in zip(
        result["hold_out"].values,
        result["n_unknown"].values,
        auroc.values,
        alone.values,
        strict=True,
    ):
        table.add_row(str(name), str(pixels), *(f"{value:.3f}" for value in (*row, own)))
    mean = (*auroc.mean("hold_out").values, alone.mean().item())
    table.add_row("mean", "", *(f"{value:.3f}" for value in mean))
    console.print("AUROC of unknown against known pixels")
    console.print(table)
    fraction = result.attrs["rejected_fraction"]
    console.print(f"\nAccuracy of the kept pixels, {fraction:.0%} rejected, nothing unknown")
    for rejector in result["rejector"].values:
        without, with_novelty = 100 * result["accuracy"].sel(rejector=rejector).mean("seed").values
        console.print(
            f"{rejector:<11} {without:.2f} %, with novelty {with_novelty:.2f} % "
            f"({with_novelty - without:+.2f})"
        )
