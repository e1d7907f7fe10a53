"""The promise of a run: half of the test pixels certifies a rejection, the other half evaluates it.

The certifying half is a simple random sample of the test pixels, so the promise is about all of
them. Whether it holds is measured on the other half, which chose nothing, and on all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from hsreject.certification.certificate import Certificate
from hsreject.certification.certify import certify
from hsreject.certification.sentences import sentence
from hsreject.rejection.ranking import UNKNOWN
from hsreject.schema import (
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    REJECTED,
    nodata_label,
)
from hsreject.schema.class_tree import ClassTree


def certified_place(
    max_error: float, sweep: xr.Dataset, test: xr.DataArray, sample: xr.DataArray
) -> tuple[Certificate, float | None]:
    """Return what can be promised after the pixels of `sample`, and the map that it is about.

    That is a threshold on the confidence, or the number of an operating point where labels change
    from one to the next; None where nothing can be promised. The promise is about test pixels: the
    reference of a benchmark is not a random sample of its scene.
    """
    label, order = sweep["label"], None
    rejected = xr.zeros_like(label, dtype=bool)
    if UNKNOWN in sweep:  # rejected whatever is promised
        rejected = rejected | sweep[UNKNOWN]
    if OPERATING_POINT in label.dims:
        # by what they keep of the whole scene: where two maps are equal on the test pixels, their
        # order must not come from their labels
        order = np.argsort(-sweep["rejected"].values.sum(axis=(1, 2)), kind="stable")
        rejected = rejected | sweep["rejected"]
    label = label.where(~rejected, label.dtype.type(REJECTED))
    label = label.where(test.values != NO_REFERENCE, nodata_label(label.dtype))
    certificate = certify(
        label if order is None else label.isel({OPERATING_POINT: order}),
        sweep.get(LEVEL_CONFIDENCE, sweep["confidence"]) if order is None else None,
        sample,
        max_error=max_error,
    )
    place = certificate.threshold
    if place is not None and order is not None:
        place = float(order[int(place)])
    (guarantee,) = certificate.guarantees
    further = replace(guarantee.outlook, n_needed=None)  # there are no more test pixels
    guarantees = (replace(guarantee, outlook=further),)
    return replace(certificate, origin="test pixels", guarantees=guarantees), place


def promise_figures(
    certificate: Certificate,
    with_rejection: xr.DataArray,
    test: xr.DataArray,
    sample: xr.DataArray,
) -> xr.Dataset:
    """Return what was promised, and how it turned out on the other half and on all test pixels."""
    label, truth = with_rejection.values, test.values
    tested = (truth != NO_REFERENCE) & (label != nodata_label(label.dtype))
    others = tested & (sample.values == NO_REFERENCE)
    kept_pixels = tested & (label != REJECTED) & (certificate.threshold is not None)
    tree = ClassTree.from_attrs(with_rejection.attrs)
    wrong = label != truth if tree is None else ~tree.holds(label, truth)

    def error_of(pixels: np.ndarray) -> float:
        return float(wrong[pixels].mean()) if pixels.any() else np.nan

    return xr.Dataset(
        {
            "coverage": certificate.coverage,
            "upper_bound": certificate.upper_bound,
            "n_sampled": certificate.n_points,
            "n_kept": certificate.n_kept,
            "n_wrong": certificate.n_errors,
            "kept_share": (kept_pixels & others).sum() / others.sum(),
            "kept_error": error_of(kept_pixels & others),
            "error_of_all": error_of(kept_pixels),
            "held": not error_of(kept_pixels)
            > certificate.max_error,  # nothing promised: not broken
        }
    )


def promise_words(certificate: Certificate, one: xr.Dataset) -> dict[str, str]:
    """Return what is promised of the delivered map, how it turned out, and both as one text."""
    statement = certificate.statement
    if certificate.threshold is None:
        return {"statement": statement, "text": statement}
    evaluation = sentence("evaluation", figures={name: value.item() for name, value in one.items()})
    return {"statement": statement, "evaluation": evaluation, "text": f"{statement} {evaluation}"}
