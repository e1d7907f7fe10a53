"""``hsreject train``: learn on one scene what it takes to map others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import plain_console, print_table, progress_on
from hsreject.cli.options import ConfigFile, Plugins, Overwrite, Settings, read_configuration

if TYPE_CHECKING:
    from hsreject.mapping.map_model import MapModel


def train_command(
    config: ConfigFile,
    *,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="Where to write the model; .skops is usual.")
    ],
    settings: Settings = None,
    plugin: Plugins = None,
    rejector: Annotated[
        str | None,
        typer.Option(
            help="Which rejector of CONFIG gives label and confidence; by default a sequential one."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a map model: features, classifier, context, confidence and thresholds, in one file.

    The test pixels of the configuration tell which threshold a rejection cost or an accuracy asks
    for. The file runs no code when it is opened.
    """
    document = read_configuration(config, plugin)
    from hsreject.files import check_target
    from hsreject.handover.provenance import Provenance, write_model_item
    from hsreject.mapping.model_file import save_model
    from hsreject.pipeline.config import scene_name
    from hsreject.pipeline.training import train

    check_target(model, overwrite=overwrite)  # before the work, not after it
    with progress_on() as progress:
        trained = train(document, settings=settings or (), rejector=rejector, progress=progress)
    save_model(trained, model, overwrite=overwrite)
    source = Provenance(
        scene_name(document),
        trained.title,
        "a threshold",
        "A model of land cover with rejection, trained by hsreject.",
    )
    write_model_item(
        model,
        trained.tree or trained.classes,
        trained.classifier.band_requirements_.count,
        source,
        architecture=type(trained.classifier).__name__,
    )
    if trained.calibration:
        _show_points(trained)
    else:
        typer.echo("No test pixels: 'hsreject map' can take --fraction and --threshold only.")
    typer.echo(f"wrote {model}")


def _show_points(model: MapModel) -> None:
    """Print the operating points that people ask for first."""
    from hsreject.mapping.map_model import KEPT_AS_CLASS
    from hsreject.measures.choosing import Goal

    points = model.operating_points
    goals = {"nothing rejected": Goal(fraction=0.0)}
    goals |= {f"--fraction {share}": Goal(fraction=share) for share in (0.1, 0.2)}
    goals |= {f"--rejection-cost {cost}": Goal(rejection_cost=cost) for cost in (0.2, 0.3, 0.4)}
    columns = {
        "rejected": "rejected_fraction",
        **({"kept as class": KEPT_AS_CLASS} if KEPT_AS_CLASS in points else {}),
        "accuracy kept": "nonrejected_accuracy",
    }
    rows = []
    for name, goal in goals.items():
        place = model.rejector.chosen_point(points, goal)
        shares = [f"{100 * points[column].values[place]:.1f} %" for column in columns.values()]
        rows.append((name, *shares, f"{points['threshold'].values[place]:.4f}"))
    headings = ("test pixels", *columns, "threshold")
    print_table(headings, rows, title=model.title)
    plain_console().print(
        "Thresholds for a cost were chosen on these pixels: their accuracy is optimistic. On "
        "another scene all of these figures are unknown."
    )
