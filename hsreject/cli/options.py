"""Options that several commands take."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from hsreject.errors import FileError, InputError
from hsreject.files import hidden_folder, made_folder
from hsreject.io.remote import RemotePath, as_path

# What is written.


def _cache_inside(context: typer.Context, out: Path | None) -> Path | None:
    """Let Matplotlib keep its cache in `out` until the command ends, if nowhere else is writable.

    Where home and temporary folders are read-only, Matplotlib refuses to be imported.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if out is not None and "MPLCONFIGDIR" not in os.environ:
            context.with_resource(made_folder(out))
            os.environ["MPLCONFIGDIR"] = str(context.with_resource(hidden_folder(out, "cache")))
    return out


def new_folder(text: str) -> Any:
    """Return the option --out of a command that writes a folder."""
    return typer.Option("--out", "-o", callback=_cache_inside, help=text)


def new_file(text: str) -> Any:
    """Return the option --out of a command that writes a file."""
    return typer.Option("--out", "-o", help=text)


Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Write over a file, or into a folder, that is already there."),
]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Write probabilities.tif, too: a band per class.")
]
Flat = Annotated[
    bool, typer.Option("--flat", help="Where there are groups: reject what is not one class.")
]

# Configurations.

ConfigFile = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A TOML file of 'hsreject init', or such as configs/indian_pines.toml.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the configuration, such as context.weight=4. Repeatable.",
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", help="A Python file, or an installed plugin, with parts to name. Repeatable."
    ),
]
Goals = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND=VALUE",
        help="How much to reject: accuracy=0.95, max_error=0.05, rejection_cost=0.3 or "
        "fraction=0.1 (of the scene).",
    ),
]


def read_configuration(path: Path, plugins: list[str] | None) -> dict[str, Any]:
    """Return a configuration with the plugins of the command line beside its own.

    Commands read it before their long imports, to report a mistake at once.
    """
    from hsreject.pipeline.config import read_document

    document = read_document(path)
    if plugins:
        document["plugins"] = [*document.get("plugins", ()), *plugins]
    return document


def goal_table(goals: list[str] | None) -> dict[str, object] | None:
    """Return what --goal asks for, as a configuration has it; None if it is not given."""
    from hsreject.pipeline.config import named_value

    if not goals:
        return None
    if len(goals) > 1:
        raise InputError(f"Give exactly one --goal (got {' and '.join(goals)}).")
    expected = (
        "--goal needs a kind and its value: accuracy=0.95, max_error=0.05, rejection_cost=0.3 or "
        "fraction=0.1"
    )
    return dict([named_value(goals[0], expected)])


# Scenes.

BandAxis = Annotated[
    int | None,
    typer.Option(help="Which axis of a .mat or .npy array holds the bands: 0, 1 or 2."),
]
Variable = Annotated[
    str | None, typer.Option(help="Which array of a .mat file is the scene, if it has several.")
]


def _trust_vrt(context: typer.Context, value: bool) -> bool:  # noqa: FBT001
    if value:  # else nothing need be imported yet
        from hsreject.io.rasters.raster import trusting_vrt

        context.with_resource(trusting_vrt(value))
    return value


TrustVrt = Annotated[
    bool,
    typer.Option(
        "--trust-vrt",
        callback=_trust_vrt,
        help="Let virtual rasters (.vrt) name files outside of their folder, and URLs.",
    ),
]

# Maps, and what is known of them.

LabelMap = Annotated[
    Path,
    typer.Argument(
        metavar="MAP",
        help="Label map of any software: raster, .mat, .npy; 0 is rejected, unless --nodata.",
    ),
]
Nodata = Annotated[
    int | None, typer.Option(help="One more label that means no data, such as 255 or 0.")
]
Confidence = Annotated[
    Path | None, typer.Option(help="Confidence of the labels, larger is more certain: raster.")
]
Attribute = Annotated[
    str | None, typer.Option(help="Of polygons or points: the attribute that holds the class.")
]
Exclude = Annotated[
    Path | None,
    typer.Option(
        help="Never sampled: training pixels, or places that nobody can label. Raster, polygons, "
        "points."
    ),
]
Predicted = Annotated[
    Path | None,
    typer.Option(
        help="What errors to expect: the folder of a run, a model with test pixels (.skops), or "
        "a raster with the probability of each label."
    ),
]
SampleFile = Annotated[
    Path, typer.Option("--sample", help="Labelled points: GeoPackage, GeoJSON, CSV.")
]
Column = Annotated[str, typer.Option(help="Column of the sample with the true class.")]
AssumeRandom = Annotated[
    bool,
    typer.Option(
        "--assume-random",
        help="Take points of unknown origin for a simple random sample of this map.",
    ),
]
ShowLabel = Annotated[
    bool, typer.Option("--show-label", help="Show what the map says to the person who labels.")
]


def check_there(*paths: Path | None) -> None:
    """Raise unless the given files exist; commands call this before their long imports."""
    for path in map(as_path, filter(None, paths)):
        if isinstance(path, RemotePath):
            continue
        try:
            path.stat()
        except FileNotFoundError:
            raise FileError(f"{path} does not exist. Check the path.") from None
        except OSError:
            continue  # opening the file will say what else is wrong with it
