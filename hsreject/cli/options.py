"""Options that several commands take, and how commands open what is given."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hsreject.errors import FileError, InputError
from hsreject.files import hidden_folder, made_folder
from hsreject.io.remote import RemotePath, as_path

if TYPE_CHECKING:
    import xarray as xr

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


def open_label_map(path: Path, nodata: int | None) -> xr.DataArray:
    """Open a label map of any software with its class names; 0 in it means rejected."""
    from hsreject.errors import FileError
    from hsreject.files import existing
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band, open_map
    from hsreject.io.scene import Kind, file_kind
    from hsreject.schema import canonical_labels, nodata_values

    file, missing, dtype = existing(path), [nodata], None
    if file_kind(file) is Kind.RASTER:
        label = open_map(file)
        if label.dtype.kind != "f":  # it is canonical, but for `nodata`
            missing, dtype = [nodata, *nodata_values(label)], label.dtype
    else:
        label = open_band(file)
        if nodata is None:
            open_labels(file)  # asks about a value that may mean no data
    values = canonical_labels(
        label.values, nodata=missing, dtype=dtype, name=str(file), error=FileError
    )
    return label.copy(data=values)


class Inputs(NamedTuple):
    """A map and what is known of it before any label, as functions of promises name it."""

    label: xr.DataArray
    confidence: xr.DataArray | None  # one band, or one per level of groups
    exclude: xr.DataArray | None  # what is never sampled, on the grid of the map
    predicted: xr.DataArray | None  # the chance of each label to be wrong


def open_inputs(
    label: Path,
    nodata: int | None,
    confidence: Path | None,
    exclude: Path | None,
    attribute: str | None,
    predicted: Path | None,
) -> Inputs:
    """Open a map and what is given beside it; features exclude what they cover.

    Where the file of flags of a map lies beside its labels (`flag.tif`), unknown pixels are
    rejected: 0.
    """
    from hsreject.io.grid import Grid
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band, open_map
    from hsreject.io.scene import Kind, file_kind
    from hsreject.io.vectors.vector import covered_pixels
    from hsreject.rejection.ranking import UNKNOWN_FLAG
    from hsreject.schema import LEVEL_CONFIDENCE, REJECTED

    on_map, confidences, error = open_label_map(label, nodata), None, None
    flag = label.with_name(label.name.replace("label", "flag", 1))
    if flag != label and flag.exists():
        # of a map of hsreject: what is unknown is rejected, whatever its confidence
        is_unknown = open_map(flag).values == UNKNOWN_FLAG
        on_map = on_map.where(~is_unknown, on_map.dtype.type(REJECTED)).assign_attrs(on_map.attrs)
    excluded = None
    if exclude is not None and attribute is None and file_kind(exclude) is Kind.VECTOR:
        excluded = on_map.copy(data=covered_pixels(exclude, Grid.of(on_map))).drop_attrs()
    elif exclude is not None:
        excluded = open_labels(exclude, like=on_map, attribute=attribute)
    if confidence is not None:
        by_level = confidence.name.startswith(LEVEL_CONFIDENCE)
        confidences = open_map(confidence) if by_level else open_band(confidence)
        if predicted is not None:
            ranked = confidences[-1] if by_level else confidences  # by the coarsest answer
            error = _open_predicted(predicted, on_map, ranked)
    return Inputs(on_map, confidences, excluded, error)


def _open_predicted(path: Path, label: xr.DataArray, confidence: xr.DataArray) -> xr.DataArray:
    """Return the chance of each label to be wrong, as held-out pixels of a run or model say it.

    Those of a run are its test pixels or, where it has none, those of its cross-validation.
    """
    from hsreject.certification.planning import error_of_curve, predicted_error
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band

    if path.suffix == ".skops":
        from hsreject.mapping.map_scene import open_map_model

        model = open_map_model(path)
        if not model.calibration:
            raise InputError(
                f"{path} has no operating points to predict errors from: it was trained without "
                "test pixels. Leave out --predicted."
            )
        return error_of_curve(confidence, model.operating_points)
    if path.is_dir():
        test, path = path / "maps" / "test.tif", path / "maps" / "label_probability.tif"
        if test.exists():
            reference = open_labels(test, like=label).values
            used = (reference > 0) & (confidence.notnull().values)
            wrong = (label.values != reference)[used]
            return predicted_error(confidence, confidence.values[used], wrong)
        if not path.exists():
            raise InputError(
                f"{path.parent} has neither test.tif nor label_probability.tif to predict errors "
                "from. Give the folder of a run, or leave out --predicted."
            )
    return 1 - open_band(path)
