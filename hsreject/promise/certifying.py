"""Certify a map: of the pixels that it keeps, at most so many are wrong, with confidence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectWarning, InputError
from hsreject.promise.certificate import Certificate, TestedPoint
from hsreject.promise.design import (
    NODATA,
    RANDOM,
    Design,
    Sample,
    excluded_pixels,
    labels_of,
    map_id,
)
from hsreject.promise.sample_file import WAY_OUT, given_sample
from hsreject.promise.sequence_test import Regions, fixed_sequence, points_needed, upper_bounds
from hsreject.registry import check_number
from hsreject.schema import REJECTED, as_map, check_same_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

COVERAGES = tuple(percent / 100 for percent in range(2, 101, 2))
"""The sequence that is tested unless another one is given. Every step can end it: with steps of 1 %
a little less is certified on average, with steps of 5 % hardly more."""


def certify(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any] | None,
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    *,
    max_error: float = 0.05,
    confidence_level: float = 0.9,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    coverages: Sequence[float] = COVERAGES,
    assume_random: bool = False,
) -> Certificate:
    """Return the largest part of a map of which it can be promised that few pixels are wrong.

    The map is finished; `sample` is a simple random sample of its pixels. Coverages
    c_1 < ... < c_m are fixed beforehand, and the confidences of the whole map, without any label,
    give the threshold of each. They are tested in this order (Learn-then-Test with a fixed
    sequence). Of the N_j pixels kept at c_j, n_j were sampled and k_j of those are wrong::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j]

    with alpha = `max_error`, delta = 1 - `confidence_level` and H hypergeometric: the chance to see
    so few errors if more than alpha N_j pixels were wrong. The first p_j above delta ends the
    sequence, and the last threshold that passed is certified. Then::

        P(more than alpha of the kept pixels are wrong) <= delta

    over all samples that could have been drawn, whatever the classifier, the confidence and the
    scene. Choosing the threshold whose errors on the sample are few enough breaks such a promise
    about every second time (``make bench ONLY=promise``). It is about all kept pixels, sampled ones
    included: where a good part of the map is sampled, few errors there leave more to the others.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map, with ``schema.nodata_label`` where there is no data and 0 where a pixel is rejected
        already and stays so. Or a stack (operating_point, y, x) of maps with rejection, with
        `confidence` None: the operating points of a joint rejector at fractions that were fixed
        beforehand. They are tested by ascending coverage.
    confidence : DataArray or array, dims (y, x), or None
        Larger is surer. Equal confidences are kept or rejected together.
    sample : Sample, path, DataArray or array of int, dims (y, x)
        The points of :func:`hsreject.draw_sample`, labelled, or their file. Points without a
        reference count as errors where they are kept, which keeps the promise; those after the last
        labelled one, in the order of the draw, are left out. An array holds reference labels on
        the grid of the map, 0 where not sampled, and is taken at the caller's word: every pixel of
        the map had the same chance to be in it, independently of where it lies, of its label and of
        its confidence, and none was used to train, tune or choose the map.
    max_error : float in (0, 1)
        Share of wrong pixels among the kept ones that is allowed.
    confidence_level : float in (0, 1)
        1 - delta.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 at training pixels. The promise is about the others. A sample that holds some is
        refused. Where the sample was drawn without them, this need not be said again.
    coverages : sequence of float in (0, 1]
        The sequence. Choose it before looking at the labels.
    assume_random : bool
        Take points of unknown origin, or of a sample drawn from another map, for a simple random
        sample of this map: at the caller's word, as an array.

    Returns
    -------
    Certificate
        Its `threshold` is None where nothing can be certified.

    References
    ----------
    Angelopoulos, A. N., Bates, S., Candes, E. J., Jordan, M. I. and Lei, L. (2021). Learn then
    Test: calibrating predictive algorithms to achieve risk control.

    Examples
    --------
    A map whose surest 60 % are right:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> truth = np.ones((100, 100), dtype=int)
    >>> label = np.where(confidence < 0.4, 2, 1)
    >>> sample = hr.draw_sample(label, 500).with_reference(truth)
    >>> certificate = hr.certify(label, confidence, sample)
    >>> certificate.coverage, round(certificate.threshold, 2), certificate.n_errors
    (0.6, 0.4, 0)
    >>> certificate.apply(label, confidence).rejected_fraction
    0.4
    """
    check_asked(max_error, confidence_level)
    maps = _maps(label, confidence)
    inside = maps[0].values != NODATA
    if exclude is not None:
        inside &= ~excluded_pixels(exclude, maps[0])
    n_all = int(np.count_nonzero(inside))
    points = _points(sample, maps, inside, assume_random=assume_random)
    place = points.row, points.column
    if confidence is None:
        order, sizes = _by_coverage(maps, inside)
        labels = np.array([maps[position].values[place] for position in order])
        kept, thresholds = labels != REJECTED, order.astype(np.float64)
        identity = "".join(map_id(one) for one in maps)
    else:
        sure = _confidences(confidence, maps[0])
        thresholds, sizes = _thresholds(sure.values, maps[0].values, inside, coverages)
        labels = maps[0].values[place]
        kept = (sure.values[place] >= thresholds[:, None]) & (labels != REJECTED)
        identity = map_id(maps[0], sure)
    regions = Regions(
        n_pixels=sizes,
        n_kept=kept.sum(axis=1),
        n_errors=(kept & (labels != points.reference)).sum(axis=1),
        n_hidden=0 if points.design is None else max(n_all - points.design.n_pixels, 0),
    )
    return _certificate(
        regions,
        thresholds,
        n_points=place[0].size,
        n_all=n_all,
        max_error=float(max_error),
        confidence_level=float(confidence_level),
        words={
            "drawn": _drawn(points, assume_random=assume_random),
            "map_id": identity,
            "shape": maps[0].shape,
        },
        stacked=confidence is None,
    )


def check_asked(max_error: float, confidence_level: float) -> None:
    """Raise unless what is asked for are two shares."""
    for name, share in (("max_error", max_error), ("confidence_level", confidence_level)):
        if check_number(name, share, above=0) >= 1:
            raise InputError(
                f"{name} is a share, above 0 and below 1 (got {share:g}). Write 5 % as 0.05."
            )


def _certificate(
    regions: Regions,
    thresholds: NDArray[np.float64],
    *,
    n_points: int,
    n_all: int,
    max_error: float,
    confidence_level: float,
    words: dict[str, Any],
    stacked: bool,
) -> Certificate:
    """Return the certificate of what a sequence of regions keeps."""
    asked = {"max_error": max_error, "confidence_level": confidence_level}
    test = fixed_sequence(regions, n=n_points, n_all=n_all, **asked)
    tested = slice(test.first, test.first + test.p_value.size)
    counts = [column[tested] for column in (regions.n_pixels, regions.n_kept, regions.n_errors)]
    bounds = upper_bounds(*counts, confidence_level=confidence_level)
    columns = (thresholds[tested], counts[0] / n_all, *counts[1:], test.p_value, bounds)
    tests = tuple(
        TestedPoint(*values)
        for values in zip(*(column.tolist() for column in columns), strict=True)
    )
    best = tests[test.n_passed - 1] if test.n_passed else None
    return Certificate(
        max_error=max_error,
        confidence_level=confidence_level,
        threshold=None if best is None else best.threshold,
        coverage=0.0 if best is None else best.coverage,
        n_kept=0 if best is None else best.n_kept,
        n_errors=0 if best is None else best.n_errors,
        upper_bound=math.nan if best is None else best.upper_bound,
        n_points=n_points,
        n_pixels=n_all - regions.n_hidden,
        n_needed=points_needed(regions, n=n_points, n_all=n_all, **asked) if best is None else None,
        tests=tests,
        stacked=stacked,
        **words,
    )


def _maps(label: xr.DataArray | NDArray[Any], confidence: object) -> list[xr.DataArray]:
    """Return the only map, or those of a stack, checked; all have data in the same pixels."""
    if confidence is not None:
        return [labels_of(label)]
    if np.ndim(label) != 3:
        raise InputError(
            "Give a confidence beside the label map, or a stack (operating_point, y, x) of maps "
            f"with rejection (got the shape {np.shape(label)})."
        )
    maps = [labels_of(one) for one in label]
    if any(((one.values == NODATA) != (maps[0].values == NODATA)).any() for one in maps):
        raise InputError("The maps of a stack must have data in the same pixels.")
    return maps


def _confidences(confidence: xr.DataArray | NDArray[Any], on_map: xr.DataArray) -> xr.DataArray:
    """Return the confidences as floats, or say where one is missing."""
    sure = as_map(confidence, name="confidence")
    check_same_grid(on_map, sure, names=("label", "confidence"))
    if sure.dtype.kind not in "iuf":
        raise InputError(f"confidence must hold numbers (got {sure.dtype}).")
    numbers = sure if sure.dtype in {np.float32, np.float64} else sure.astype(np.float64)
    labelled = (on_map.values != NODATA) & (on_map.values != REJECTED)
    missing = int(np.count_nonzero(labelled & ~np.isfinite(numbers.values)))
    if missing:
        raise InputError(
            f"confidence is NaN or infinite in {missing} pixels that have a label. Give these "
            "pixels the label of no data, or a confidence."
        )
    return numbers


def _thresholds(
    sure: NDArray[np.floating],
    label: NDArray[np.uint16],
    inside: NDArray[np.bool_],
    coverages: Sequence[float],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return distinct thresholds, descending, and how many pixels each keeps.

    That of a coverage keeps the pixel at its rank and all of the same confidence. Where pixels are
    rejected already, the largest coverage keeps the others.
    """
    wanted = np.array(sorted(coverages), dtype=np.float64)
    if not wanted.size or not (wanted[0] > 0 and wanted[-1] <= 1):
        raise InputError("coverages must be shares above 0 and at most 1, such as 0.1, 0.2, 0.3.")
    ascending = np.sort(sure[inside & (label != REJECTED)])
    if not ascending.size:
        raise InputError("label keeps no pixel: it is 0 (rejected) wherever there is data.")
    rank = np.ceil(wanted * np.count_nonzero(inside) - 1e-9).astype(np.int64)
    rank = np.clip(rank, 1, ascending.size)
    thresholds = np.unique(ascending[ascending.size - rank])[::-1]
    return thresholds.astype(np.float64), ascending.size - np.searchsorted(ascending, thresholds)


def _by_coverage(
    maps: list[xr.DataArray], inside: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the maps that keep something, by coverage, and how much they keep."""
    sizes = np.array([np.count_nonzero(inside & (one.values != REJECTED)) for one in maps])
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if not order.size:
        raise InputError("No map of the stack keeps a pixel.")
    return order, sizes[order]


def _points(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    maps: list[xr.DataArray],
    inside: NDArray[np.bool_],
    *,
    assume_random: bool,
) -> Sample:
    """Return the points that count, or say why they cannot certify anything."""
    points = given_sample(sample, maps[0], assume_random=assume_random)
    excluded = ~inside & (maps[0].values != NODATA)
    n_training = int(np.count_nonzero(excluded[points.row, points.column]))
    if n_training:
        raise InputError(
            f"{n_training} of the {len(points)} sampled pixels are training pixels, of which the "
            "map knows the class. Draw the sample without them (exclude=train, --exclude)."
        )
    if points.design is not None:
        points = _one_random_draw(points, points.design, maps, assume_random=assume_random)
    points = points.select(inside[points.row, points.column])
    n_open = int(np.count_nonzero(~points.labelled))
    if n_open == len(points):
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    if n_open:
        warnings.warn(
            f"{n_open} of {len(points)} points have no reference: they count as errors where they "
            "are kept.",
            HsrejectWarning,
            stacklevel=3,
        )
    return points


def _one_random_draw(
    sample: Sample, design: Design, maps: list[xr.DataArray], *, assume_random: bool
) -> Sample:
    """Return the points that were meant, in a sample that is one random draw; refuse others."""
    if design.kind != RANDOM:
        raise InputError(
            "A stratified sample cannot certify a threshold: its points had different chances. "
            "Draw one with design='random', and use this one for hsreject.assess."
        )
    if assume_random:
        return sample
    if design.map_id not in {map_id(one) for one in maps}:
        raise InputError(
            f"The sample was drawn from another map ({design.map_id}) than this one "
            f"({map_id(maps[0])}), which may have learnt from it. {WAY_OUT}"
        )
    if len(sample) < design.n_points:
        raise InputError(
            f"{design.n_points - len(sample)} of the {design.n_points} points that were drawn are "
            "missing from the sample. Put these rows back, with an empty reference."
        )
    return _until_last_label(sample)


def _until_last_label(sample: Sample) -> Sample:
    """Return the points up to the last labelled one in the order of the draw."""
    last = int(sample.id[sample.labelled].max(initial=0))
    n_after = int(np.count_nonzero(sample.id > last))
    if not last or not n_after:
        return sample
    warnings.warn(
        f"The last {n_after} of {len(sample)} points have no reference: the first {last} are taken "
        "for the sample. This is right if labelling did not end because of what had been found.",
        HsrejectWarning,
        stacklevel=5,
    )
    return sample.select(sample.id <= last)


def _drawn(points: Sample, *, assume_random: bool) -> str:
    """Say how the points were drawn."""
    if points.design is None or assume_random:
        return "a simple random sample, as the caller says"
    return f"a simple random sample drawn by hsreject, seed {points.design.seed}"
