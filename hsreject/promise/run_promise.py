"""The promise of a run: half of the test pixels certifies a rejection, the other half evaluates it.

The certifying half is a simple random sample of the test pixels, so the promise is about all of
them. Whether it holds is measured on the other half, which chose nothing, and on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from hsreject.class_tree import ClassTree
from hsreject.promise.certificate import Certificate
from hsreject.promise.certifying import certify
from hsreject.promise.frame import percent
from hsreject.rejection.rejector import UNKNOWN
from hsreject.schema import (
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    REJECTED,
    nodata_label,
)


def certified_place(
    max_error: float, swept: xr.Dataset, test: xr.DataArray, sample: xr.DataArray
) -> tuple[Certificate, float | None]:
    """Return what can be promised after the pixels of `sample`, and the map that it is about.

    That is a threshold on the confidence, or the number of an operating point where labels change
    from one to the next; None where nothing can be promised. The promise is about test pixels: the
    reference of a benchmark is not a random sample of its scene.
    """
    label, order = swept["label"], None
    rejected = xr.zeros_like(label, dtype=bool)
    if UNKNOWN in swept:  # rejected whatever is promised
        rejected = rejected | swept[UNKNOWN]
    if OPERATING_POINT in label.dims:
        # by what they keep of the whole scene: where two maps are equal on the test pixels, their
        # order must not come from their labels
        order = np.argsort(-swept["rejected"].values.sum(axis=(1, 2)), kind="stable")
        rejected = rejected | swept["rejected"]
    label = label.where(~rejected, label.dtype.type(REJECTED))
    label = label.where(test.values != NO_REFERENCE, nodata_label(label.dtype))
    certificate = certify(
        label if order is None else label.isel({OPERATING_POINT: order}),
        swept.get(LEVEL_CONFIDENCE, swept["confidence"]) if order is None else None,
        sample,
        max_error=max_error,
    )
    place = certificate.threshold
    if place is not None and order is not None:
        place = float(order[int(place)])
    drawn = "a random half of the test pixels"  # there are no more of them
    return replace(certificate, drawn=drawn, n_needed=None), place


def promise_figures(
    certificate: Certificate,
    with_rejection: xr.DataArray,
    test: xr.DataArray,
    sample: xr.DataArray,
) -> xr.Dataset:
    """Return what was promised, and how it turned out on the other half and on all test pixels."""
    share, error, error_of_all = 0.0, np.nan, np.nan
    if certificate.threshold is not None:
        tested = (test != NO_REFERENCE).values
        tested &= (with_rejection != nodata_label(with_rejection.dtype)).values
        others = tested & (sample == NO_REFERENCE).values
        kept_pixels = tested & (with_rejection != REJECTED).values
        tree = ClassTree.from_attrs(with_rejection.attrs)
        wrong = with_rejection.values != test.values
        if tree is not None:
            wrong = ~tree.holds(with_rejection.values, test.values)
        share = (kept_pixels & others).sum() / others.sum()
        error = wrong[kept_pixels & others].mean() if (kept_pixels & others).any() else np.nan
        error_of_all = wrong[kept_pixels].mean()
    return xr.Dataset(
        {
            "coverage": certificate.coverage,
            "upper_bound": certificate.upper_bound,
            "n_sampled": certificate.n_points,
            "n_kept": certificate.n_kept,
            "n_wrong": certificate.n_errors,
            "kept_share": share,
            "kept_error": error,
            "error_of_all": error_of_all,
            "held": not error_of_all > certificate.max_error,  # nothing promised, nothing broken
        }
    )


def promise_words(certificate: Certificate, one: xr.Dataset) -> dict[str, str]:
    """Return what is promised of the delivered map, and how it turned out."""
    if certificate.threshold is None:
        return {"statement": certificate.statement}
    share, error, error_of_all = (
        percent(float(one[name]), 1) for name in ("kept_share", "kept_error", "error_of_all")
    )
    outcome = "held" if one["held"] else "did not hold"
    evaluation = (
        f"On the other half of the test pixels {share} are kept and {error} of these are wrong; of "
        f"all test pixels that are kept {error_of_all} are wrong: the promise {outcome}."
    )
    return {"statement": certificate.statement, "evaluation": evaluation}


def promise_text(words: Mapping[Any, Any]) -> str:
    """Return what :func:`promise_words` says as one text, and which pixels it is about."""
    if "evaluation" not in words:
        return str(words["statement"])
    return (
        f"{words['statement']} {words['evaluation']} The promise is about pixels like the "
        "reference pixels, not about the unlabelled scene: for that, label a random sample of the "
        "map (hsreject sample, hsreject certify)."
    )
