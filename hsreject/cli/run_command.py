"""``hsreject run``: a configuration from scene to report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import (
    Overwrite,
    Plugins,
    Settings,
    cache_inside,
    check_there,
    goal_table,
    print_lines,
    progress_on,
    result_table,
    saying_how_to_go_on,
    with_plugins,
)


def run_command(  # noqa: PLR0913 (one argument per option)
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", help="A TOML file, such as configs/indian_pines.toml."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=cache_inside,
            help="Folder of the results; by default out/ and the name of CONFIG.",
        ),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=VALUE",
            help="How much to reject: accuracy=0.95, max_error=0.05, rejection_cost=0.3 or "
            "fraction=0.1 (of the scene), instead of the goal in CONFIG.",
        ),
    ] = None,
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
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write maps/probabilities.tif: a band per class."),
    ] = False,
    flat: Annotated[
        bool,
        typer.Option("--flat", help="Write map.tif without groups: classes, or rejected."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Run a configuration: maps, measures, pictures and a report.

    Started again, it continues from the stages that are finished and unchanged. 'hsreject config
    list' shows what a configuration may name.
    """
    from hsreject.pipeline.config import read_document

    document = read_document(config)  # before the long imports, to report a mistake at once
    check_there(*(add or ()))
    if add:
        answers = {"path": [str(path) for path in add], "new_classes": new_class or []}
        document = {**document, "add": answers}
    goals = goal_table(goal)

    from hsreject.pipeline.run import run
    from hsreject.pipeline.run_report import curve_table, run_words

    console = Console()
    folder = Path("out") / config.stem if out is None else out
    with saying_how_to_go_on(), progress_on(Console(stderr=True)) as progress:
        tree = run(
            with_plugins(document, plugin),
            out=folder,
            goal=goals,
            settings=settings or (),
            flat=flat,
            probabilities=probabilities,
            overwrite=overwrite,
            progress=progress,
        )
    for sentence in run_words(tree):
        console.print(sentence, highlight=False, markup=False)
    if "summary" in tree:
        headings, rows, caption = curve_table(tree)
        title = str(tree.attrs["title"])
        console.print(result_table(console, headings, rows, title=title))
        console.print(caption, style="dim", highlight=False, markup=False)
    if "promise" in tree:
        print_lines(console, tree.children["promise"].attrs["text"])
    print_lines(console, f"The map: {folder / 'maps' / 'map.tif'}")
    for name in ("report", "explorer"):
        if (page := folder / f"{name}.html").exists():
            print_lines(console, f"{name.capitalize()}: {page}")
