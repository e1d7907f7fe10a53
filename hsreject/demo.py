"""A first look, run by ``make demo``: Indian Pines in numbers and in a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from hsreject import schema
from hsreject.datasets.indian_pines import load_indian_pines
from hsreject.plot.class_map import ClassMapDisplay
from hsreject.plot.false_color import FalseColorDisplay
from hsreject.plot.style import new_row, print_style, save_figure

FOLDER = Path("out", "demo")


def main(folder: Path = FOLDER) -> None:
    """Load Indian Pines, print what is in it and save a picture beside its reference."""
    cube, labels = load_indian_pines()
    console = Console()
    console.print(
        f"[bold]{cube.attrs['title']}[/bold]: {cube.sizes[schema.Y]} x {cube.sizes[schema.X]} "
        f"pixels, {cube.sizes[schema.BAND]} bands from {cube.wavelength.values.min():.0f} to "
        f"{cube.wavelength.values.max():.0f} nm",
        highlight=False,
    )
    console.print(_class_counts(labels))
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "indian_pines.png"
    _draw(cube, labels, picture)
    console.print(f"wrote {picture}", highlight=False, soft_wrap=True)


def _class_counts(labels: xr.DataArray) -> Table:
    table = Table("", "class", "labelled pixels")
    table.columns[0].justify = table.columns[2].justify = "right"
    classes = schema.class_table(labels)
    for value, name in zip(classes.values, classes.names, strict=True):
        table.add_row(str(value), name, str(np.count_nonzero(labels.values == value)))
    table.add_section()
    table.add_row("", "all", str(np.count_nonzero(labels.values)))
    return table


def _draw(cube: xr.DataArray, labels: xr.DataArray, path: Path) -> None:
    figure, (scene, reference) = new_row(2, height=2.8)
    with print_style():
        FalseColorDisplay.from_cube(cube).plot(scene).set_title("scene, natural colours")
        ClassMapDisplay.from_labels(labels).plot(reference).set_title("reference")
    save_figure(figure, path)


if __name__ == "__main__":
    main()
