"""A map of any software as functions of guarantees take it, with what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import xarray as xr

from hsreject.certification.planning import error_of_curve, predicted_error
from hsreject.errors import InputError
from hsreject.io.grid import PixelGrid
from hsreject.io.labels import open_labels
from hsreject.io.maps import open_band, open_label_map, open_map
from hsreject.io.scene import Kind, file_kind
from hsreject.io.vectors.vector import covered_pixels
from hsreject.rejection.ranking import FLAGS, UNKNOWN_FLAG
from hsreject.schema import LEVEL_CONFIDENCE, REJECTED, class_table


class MapInputs(NamedTuple):
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
) -> MapInputs:
    """Open a map and what is given beside it; features exclude what they cover.

    Where the file of flags of a map lies beside its labels (`flag.tif`), unknown pixels are
    rejected: 0.
    """
    on_map, confidences, error = open_label_map(label, nodata), None, None
    flags = label.with_name("flag.tif")
    if label.name.startswith("label") and flags.exists():
        why = open_map(flags)
        if FLAGS.names[:3] == class_table(why).names[:3] and why.shape == on_map.shape:
            # of a map of hsreject: what is unknown is rejected, whatever its confidence
            known = on_map.where(why.values != UNKNOWN_FLAG, on_map.dtype.type(REJECTED))
            on_map = known.assign_attrs(on_map.attrs)
    excluded = None
    if exclude is not None and attribute is None and file_kind(exclude) is Kind.VECTOR:
        excluded = on_map.copy(data=covered_pixels(exclude, PixelGrid.of(on_map))).drop_attrs()
    elif exclude is not None:
        excluded = open_labels(exclude, like=on_map, attribute=attribute)
    if confidence is not None:
        by_level = confidence.name.startswith(LEVEL_CONFIDENCE)
        confidences = open_map(confidence) if by_level else open_band(confidence)
        if predicted is not None:
            ranked = confidences[-1] if by_level else confidences  # by the coarsest answer
            error = _open_predicted(predicted, on_map, ranked)
    return MapInputs(on_map, confidences, excluded, error)


def _open_predicted(path: Path, label: xr.DataArray, confidence: xr.DataArray) -> xr.DataArray:
    """Return the chance of each label to be wrong, as held-out pixels of a run or model say it.

    Those of a run are its test pixels or, where it has none, those of its cross-validation.
    """
    if path.suffix == ".skops":
        from hsreject.mapping.map_scene import open_map_model  # noqa: PLC0415 (of few calls)

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
