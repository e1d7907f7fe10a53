"""Options that the commands about promises share, and how they open what is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    import xarray as xr

Nodata = Annotated[int | None, typer.Option(help="One more label that means no data, such as 0.")]
Confidence = Annotated[
    Path | None, typer.Option(help="Confidence of the labels, larger is more certain: raster.")
]
Exclude = Annotated[
    Path | None,
    typer.Option(
        help="Never sampled: training pixels, or places that nobody can label. Raster, polygons, "
        "points."
    ),
]
Attribute = Annotated[
    str | None,
    typer.Option(help="Attribute with the class, if --exclude holds polygons or points."),
]
Predicted = Annotated[
    Path | None,
    typer.Option(
        help="What errors to expect: the folder of a run, a model with test pixels (.skops), or "
        "a raster with the probability of each label."
    ),
]
Column = Annotated[str, typer.Option(help="Column of the sample with the true class.")]
AssumeRandom = Annotated[
    bool,
    typer.Option(
        "--assume-random",
        help="Take points of unknown origin for a simple random sample of this map.",
    ),
]
SampleFile = Annotated[
    Path, typer.Option("--sample", help="Labelled points: GeoPackage, GeoJSON, CSV.")
]
ShowLabel = Annotated[
    bool, typer.Option("--show-label", help="Show what the map says to the person who labels.")
]


def open_label_map(path: Path, nodata: int | None) -> xr.DataArray:
    """Open a label map of any software with its class names; 0 in it means rejected."""
    from hsreject.errors import FileError
    from hsreject.files import existing
    from hsreject.io.arrays import Kind
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band, open_map
    from hsreject.io.scene import file_kind
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
    """A map and what is known of it before any label."""

    label: xr.DataArray
    confidence: xr.DataArray | None  # one band, or one per level of groups
    excluded: xr.DataArray | None  # what is never sampled, on the grid of the map
    predicted: xr.DataArray | None  # the chance of each label to be wrong


def open_inputs(
    label: Path,
    nodata: int | None,
    confidence: Path | None,
    exclude: Path | None,
    attribute: str | None,
    predicted: Path | None,
) -> Inputs:
    """Open a map and what is given beside it."""
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band, open_map
    from hsreject.schema import LEVEL_CONFIDENCE

    on_map, confidences = open_label_map(label, nodata), None
    if confidence is not None:
        by_level = confidence.name.startswith(LEVEL_CONFIDENCE)
        confidences = open_map(confidence) if by_level else open_band(confidence)
    excluded = None if exclude is None else open_labels(exclude, like=on_map, attribute=attribute)
    error = None
    if predicted is not None and confidences is not None:
        error = _open_predicted(predicted, on_map, confidences)
    return Inputs(on_map, confidences, excluded, error)


def _open_predicted(path: Path, label: xr.DataArray, confidence: xr.DataArray) -> xr.DataArray:
    """Return the chance of each label to be wrong, as held-out pixels of a run or model say it.

    Those of a run are its test pixels or, where it has none, those of its cross-validation.
    """
    from hsreject.errors import InputError
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_band
    from hsreject.promise.design import error_of_curve, predicted_error

    if path.suffix == ".skops":
        from hsreject.mapping.model_file import load_model

        model = load_model(path)
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
