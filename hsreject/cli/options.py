"""Options that several commands have, worded once."""

from __future__ import annotations

from typing import Annotated

import typer

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the configuration, such as context.weight=4. Repeatable.",
    ),
]
Variable = Annotated[
    str | None, typer.Option(help="Which array of a .mat file is the scene, if it has several.")
]
BandAxis = Annotated[
    int | None,
    typer.Option(help="Which axis of a .mat or .npy array holds the bands: 0, 1 or 2."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")
]
