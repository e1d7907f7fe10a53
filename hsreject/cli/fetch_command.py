"""``hsreject fetch``: well-known scenes, downloaded and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hsreject.cli.console import print_line, print_table, progress_on


def fetch_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Scenes to fetch; without one, list them."),
    ] = None,
    *,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to keep them; by default $HSREJECT_DATA, or the user's cache."),
    ] = None,
) -> None:
    """Download scenes with reference labels, checked by SHA-256, for `load_scene` in Python."""
    from hsreject.datasets.scenes import data_folder, fetch_scene, scenes

    if names:
        with progress_on() as progress:
            fetched = [fetch_scene(name, folder=folder, progress=progress) for name in names]
        for files in fetched:
            for file in files:
                print_line(file)
        return
    place = data_folder(folder)
    rows = []
    for name, scene in scenes().items():
        there = all((place / file.name).exists() for file in (scene.cube, scene.labels))
        size = (scene.cube.size + scene.labels.size) / 1e6
        rows.append((name, scene.title, f"{size:.1f}", "yes" if there else "no"))
    print_table(("name", "scene", "MB", "downloaded"), rows, justify="left")
    print_line(f"Files are kept in {place}")
