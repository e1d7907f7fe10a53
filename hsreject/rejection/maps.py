"""The maps of one rejection: label, confidence, rejected, and the label with rejection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from hsreject.schema import REJECTED, nodata_label

if TYPE_CHECKING:
    from collections.abc import Mapping


def rejection_maps(
    label: xr.DataArray,
    confidence: xr.DataArray,
    *,
    threshold: float,
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return the maps of the rejection of all pixels with a confidence below `threshold`.

    Parameters
    ----------
    label : DataArray of int (y, x)
        Labels, ``schema.nodata_label`` where there is no data.
    confidence : DataArray of float (y, x)
        NaN where there is no data.
    threshold : float
        The smallest confidence that is kept.
    attrs : mapping
        What is said of the rejection as a whole; `threshold`, `rejected_fraction` (of the pixels
        with data) and `n_pixels` are added.

    Returns
    -------
    Dataset
        `label`, `confidence`, `rejected` (False where there is no data) and `label_with_rejection`
        (0 where rejected, ``schema.nodata_label`` where there is no data), all (y, x).
    """
    nodata = nodata_label(label.dtype)
    has_data = label != nodata
    rejected = ((confidence < threshold) & has_data).rename("rejected")
    with_rejection = label.where(~rejected, label.dtype.type(REJECTED))
    n_pixels = int(has_data.sum())
    return xr.Dataset(
        {
            "label": label,
            "confidence": confidence,
            "rejected": rejected,
            "label_with_rejection": with_rejection.assign_attrs(label.attrs),
        },
        attrs={
            **attrs,
            "threshold": float(threshold),
            "rejected_fraction": int(rejected.sum()) / n_pixels if n_pixels else 0.0,
            "n_pixels": n_pixels,
        },
    )
