"""Confidence classes: which third of a map a pixel belongs to, from the least to the most certain.

A confidence is often only a rank. Low, medium and high are what a reader of the map can use, with
the accuracy that was measured in each.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from hsreject.rejection.decision import threshold_for_fraction
from hsreject.rejection.ranking import UNKNOWN
from hsreject.schema import CONFIDENCE_CLASS, attach_classes, nodata_label
from hsreject.schema.classes import ClassTable

CONFIDENCE_CLASSES = ClassTable.from_names(
    ("low", "medium", "high"), colors=("#d8b365", "#c7eae5", "#01665e")
)
LOW = CONFIDENCE_CLASSES.values[0]


def confidence_classes(maps: xr.Dataset) -> xr.DataArray | None:
    """Return the confidence class of each pixel; None where all confidences are equal.

    The pixels with data are cut into thirds by their confidence. Labels do not influence the
    limits. Equal confidences stay together, in the third that the middle of their ranks lies in.

    Parameters
    ----------
    maps : Dataset (y, x)
        `confidence`, NaN where there is no data, and, as far as there is one, `unknown`: these
        pixels are low whatever their confidence.

    Returns
    -------
    DataArray of uint8 (y, x), or None
        Values of `CONFIDENCE_CLASSES`, 255 where there is no data.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject.evaluation.confidence_classes import confidence_classes
    >>> confidence = xr.DataArray([[0.9, 0.3, 0.5, 0.8, 0.3, 0.6]], dims=("y", "x"))
    >>> confidence_classes(confidence.to_dataset(name="confidence")).values
    array([[3, 1, 2, 3, 1, 2]], dtype=uint8)
    """
    confidence = maps["confidence"]
    has_data = confidence.notnull()
    unknown = maps.get(UNKNOWN, xr.zeros_like(has_data))
    if np.unique(confidence.values[(has_data & ~unknown).values]).size < 2:
        return None
    ranked = confidence.where(~unknown | ~has_data, -np.inf)  # unknown pixels come first
    lower, upper = (threshold_for_fraction(ranked, share).value for share in (1 / 3, 2 / 3))
    level = LOW + (ranked >= lower).astype(np.uint8) + (ranked >= upper).astype(np.uint8)
    missing = nodata_label(np.uint8)
    level = level.where(~unknown, LOW).where(has_data, missing).astype(np.uint8)
    attrs = {"long_name": "third of the map by confidence", "_FillValue": missing}
    level = level.drop_attrs(deep=False).assign_attrs(attrs).rename(CONFIDENCE_CLASS)
    return attach_classes(level, CONFIDENCE_CLASSES)
