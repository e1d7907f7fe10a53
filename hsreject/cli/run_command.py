"""``hsreject run``: a configuration from scene to report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hsreject.cli.console import plain_console, print_table, progress_on, saying_how_to_go_on
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
            overwrite=overwrite,
            progress=progress,
        )
    console = plain_console()
    for sentence in run_words(tree):
        console.print(sentence)
    if "summary" in tree:
        headings, rows, caption = curve_table(tree)
        print_table(headings, rows, title=str(tree.attrs["title"]))
        console.print(caption, style="dim")
    if "promise" in tree:
        typer.echo(tree.children["promise"].attrs["text"])
    typer.echo(f"The map: {folder / 'maps' / 'map.tif'}")
    for name in ("report", "explorer"):
        if (page := folder / f"{name}.html").exists():
            typer.echo(f"{name.capitalize()}: {page}")
