"""``hsreject run`` and ``train``: a configuration makes a report, or a model for other scenes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import (
    distinct,
    plain_console,
    print_line,
    print_table,
    progress_on,
    saying_how_to_go_on,
)
from hsreject.cli.options import (
    ConfigFile,
    Flat,
    Goals,
    Overwrite,
    Plugins,
    Probabilities,
    Settings,
    check_there,
    goal_table,
    new_folder,
    read_configuration,
)
from hsreject.errors import shown

if TYPE_CHECKING:
    from hsreject.mapping.map_model import MapModel


def run_command(  # noqa: PLR0913 (one argument per option)
    config: ConfigFile,
    out: Annotated[
        Path | None, new_folder("Folder of the results; by default out/ and the name of CONFIG.")
    ] = None,
    goal: Goals = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            help="Labelled points of 'hsreject next': train on them, too, but never test. "
            "Repeatable: all rounds so far."
        ),
    ] = None,
    new_class: Annotated[
        list[str] | None,
        typer.Option(help="A class name in --add that the labels do not have yet. Repeatable."),
    ] = None,
    settings: Settings = None,
    plugin: Plugins = None,
    *,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m", help="Keep the model for 'hsreject map', too; .skops is usual."
        ),
    ] = None,
    probabilities: Probabilities = False,
    flat: Flat = False,
    overwrite: Overwrite = False,
) -> None:
    """Run a configuration: maps, measures, pictures and a report.

    Started again, it continues from the stages that are finished and unchanged. --goal and --set
    replace what CONFIG says; 'hsreject config list' shows what it may name.
    """
    document = read_configuration(config, plugin)
    check_there(*(add or ()))
    if add:
        document["add"] = {"path": [str(path) for path in add], "new_classes": new_class or []}
    goals = goal_table(goal)

    from hsreject.pipeline.run import run
    from hsreject.pipeline.run_report import curve_table, run_words

    folder = Path("out") / config.stem if out is None else out
    with saying_how_to_go_on(), progress_on() as progress:
        tree = run(
            document,
            out=folder,
            goal=goals,
            settings=settings or (),
            flat=flat,
            probabilities=probabilities,
            model=model,
            overwrite=overwrite,
            progress=progress,
        )
    console = plain_console()
    for sentence in run_words(tree):
        console.print(shown(sentence))
    if "summary" in tree:
        headings, rows, caption = curve_table(tree)
        print_table(headings, rows, title=str(tree.attrs["title"]))
        console.print(shown(caption), style="dim")
    if "promise" in tree:
        print_line(tree.children["promise"].attrs["text"])
    print_line(f"The map: {folder / 'maps' / 'map.tif'}")
    for name in ("report", "explorer"):
        if (page := folder / f"{name}.html").exists():
            print_line(f"{name.capitalize()}: {page}")
    if model is not None:
        print_line(f"The model: {model}")


def train_command(
    config: ConfigFile,
    *,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="Where to write the model; .skops is usual.")
    ],
    out: Annotated[
        Path | None,
        new_folder(
            "Folder of a run, whose finished stages are used; by default out/ and the name of "
            "CONFIG, where that is one."
        ),
    ] = None,
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
    from hsreject.mapping.model_file import save_model
    from hsreject.pipeline.stages import STAGES
    from hsreject.pipeline.training import train

    check_target(model, overwrite=overwrite)  # before the work, not after it
    usual = Path("out") / config.stem
    folder = usual if out is None and (usual / STAGES).is_dir() else out
    with progress_on() as progress:
        trained = train(
            document, out=folder, settings=settings or (), rejector=rejector, progress=progress
        )
    save_model(trained, model, overwrite=overwrite)
    if trained.calibration:
        _show_points(trained)
    else:
        print_line("No test pixels: 'hsreject map' can take --fraction and --threshold only.")
    print_line(f"wrote {model}")


def _show_points(model: MapModel) -> None:
    """Print the operating points that people ask for first."""
    from hsreject.mapping.map_model import KEPT_AS_CLASS
    from hsreject.measures.choosing import Goal, choose_point

    points = model.operating_points
    goals = {"nothing rejected": Goal(fraction=0.0)}
    goals |= {f"--fraction {share}": Goal(fraction=share) for share in (0.1, 0.2)}
    goals |= {f"--rejection-cost {cost}": Goal(rejection_cost=cost) for cost in (0.2, 0.3, 0.4)}
    columns = {
        "rejected": "rejected_fraction",
        **({"kept as class": KEPT_AS_CLASS} if KEPT_AS_CLASS in points else {}),
        "accuracy kept": "nonrejected_accuracy",
    }
    cost = model.rejector.coarse_cost
    places = {
        name: choose_point(points, **{goal.kind: goal.value}, coarse_cost=cost).index
        for name, goal in goals.items()
    }
    thresholds = distinct(points["threshold"].values[list(places.values())])
    rows = []
    for (name, place), threshold in zip(places.items(), thresholds, strict=True):
        shares = [f"{100 * points[column].values[place]:.1f} %" for column in columns.values()]
        rows.append((name, *shares, threshold))
    headings = ("test pixels", *columns, "threshold")
    print_table(headings, rows, title=model.title)
    plain_console().print(
        "Thresholds for a cost were chosen on these pixels: their accuracy is optimistic. On "
        "another scene all of these figures are unknown."
    )
