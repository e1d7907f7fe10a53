"""``hsreject train``: learn on the scene of a configuration what it takes to map others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.options import Settings

if TYPE_CHECKING:
    from rich.console import Console

    from hsreject.mapping.map_model import MapModel


def train_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A TOML file, as for 'hsreject run'.")
    ],
    *,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="Where to write the model; .skops is usual.")
    ],
    settings: Settings = None,
    rejector: Annotated[
        str | None,
        typer.Option(
            help="Which rejector of CONFIG gives label and confidence; by default a sequential one."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is already there.")
    ] = False,
) -> None:
    """Train a map model: features, classifier, context, confidence and thresholds, in one file.

    The test pixels of the configuration tell which threshold a rejection cost or an accuracy asks
    for. The file runs no code when it is opened.
    """
    from rich.console import Console

    from hsreject.cli.progress import progress_on
    from hsreject.files import check_target
    from hsreject.mapping.model_file import save_map_model
    from hsreject.pipeline.training import train

    check_target(model, overwrite=overwrite)  # before the work, not after it
    with progress_on(Console(stderr=True)) as progress:
        trained = train(config, settings=settings or (), rejector=rejector, progress=progress)
    save_map_model(trained, model, overwrite=overwrite)
    console = Console(highlight=False)
    if trained.calibration:
        show_points(trained, console)
    else:
        console.print("No test pixels: 'hsreject map' can take --fraction and --threshold only.")
    console.print(f"wrote {model}", soft_wrap=True, markup=False)


def show_points(model: MapModel, console: Console) -> None:
    """Print the operating points that people ask for first."""
    from hsreject.cli.table import result_table
    from hsreject.measures.choosing import (
        cheapest_operating_point,
        point_for_fraction,
    )

    headings = ("test pixels", "rejected", "accuracy kept", "threshold")
    table = result_table(console, *headings, title=model.title)
    points = model.operating_points
    rows = {"nothing rejected": point_for_fraction(points, 0.0)}
    rows |= {f"--fraction {share}": point_for_fraction(points, share) for share in (0.1, 0.2)}
    rows |= {f"--cost {cost}": cheapest_operating_point(points, cost) for cost in (0.2, 0.3, 0.4)}
    for name, point in rows.items():
        table.add_row(
            name,
            f"{100 * float(point['rejected_fraction']):.1f} %",
            f"{100 * float(point['nonrejected_accuracy']):.1f} %",
            f"{float(point['threshold']):.4f}",
        )
    console.print(table)
    console.print(
        "Thresholds for a cost were chosen on these pixels: their accuracy is optimistic."
    )
