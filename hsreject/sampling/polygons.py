"""The polygons that labels were digitised as: pixels of one polygon are not independent.

Neighbouring pixels of a polygon are near copies of each other. Whatever is learned from one of them
is right about the next, so folds and splits that part a polygon measure memory, not skill. Here
polygons are told apart, and dealt into folds whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy import ndimage

from hsreject.registry import check_count
from hsreject.sampling.draws import random_keys
from hsreject.schema import NO_REFERENCE, POLYGON, reference_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

CLUMPED = 3.0
"""From so many pixels per clump on, labels count as digitised; scattered ones have 1.1 to 1.6."""

_EIGHT_NEIGHBORS = np.ones((3, 3), dtype=bool)


def polygon_numbers(labels: NDArray[Any] | xr.DataArray) -> NDArray[np.int32]:
    """Return the number of the polygon that each labelled pixel belongs to, 0 elsewhere.

    Labels of a vector file know their features: a coordinate `polygon` (y, x). Others are grouped
    by class into connected regions; gaps of up to two pixels do not part one.

    Examples
    --------
    >>> import numpy as np
    >>> polygon_numbers(np.array([[1, 1, 0, 0, 0, 0, 1, 2]]))
    array([[1, 1, 0, 0, 0, 0, 2, 3]], dtype=int32)
    """
    values = reference_labels(labels)
    if isinstance(labels, xr.DataArray) and POLYGON in labels.coords:
        given = np.asarray(labels[POLYGON].values)
        used = (values != NO_REFERENCE) & (given > 0)
        numbers = np.zeros(values.shape, dtype=np.int32)
        numbers[used] = np.unique(given[used], return_inverse=True)[1] + 1
        return numbers
    numbers, count = np.zeros(values.shape, dtype=np.int32), 0
    for inside in _masks_by_class(values):
        near = ndimage.binary_dilation(inside, _EIGHT_NEIGHBORS)
        regions, n_regions = ndimage.label(near, _EIGHT_NEIGHBORS)
        numbers[inside] = regions[inside] + count
        count += n_regions
    return numbers


def clump_size(labels: NDArray[Any] | xr.DataArray) -> float:
    """Return the mean number of labelled pixels per connected group (8 neighbours) of one class.

    Scattered pixels have 1.1 to 1.6, digitised polygons 5 and more. NaN without a labelled pixel.
    """
    values = reference_labels(labels)
    n_groups = sum(ndimage.label(inside, _EIGHT_NEIGHBORS)[1] for inside in _masks_by_class(values))
    return np.count_nonzero(values) / n_groups if n_groups else float("nan")


def polygon_folds(
    classes: NDArray[Any],
    polygons: NDArray[np.integer],
    positions: NDArray[np.integer],
    n_folds: int,
    *,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Deal labelled pixels into folds by whole polygons; return their fold, -1 for none.

    The polygons of a class come in random order, and the j-th goes to fold j modulo `n_folds` with
    all its pixels. The only polygon of a class is halved along its longest axis. The only pixel of
    a class is never left out: whichever fold is left out, every class keeps a pixel.

    Parameters
    ----------
    classes, polygons : arrays of int, (pixel,)
        Class and polygon of each labelled pixel.
    positions : array of int, (pixel, 2)
        Row and column of each.
    n_folds : int
        At least 2.
    seed : int
        Orders the polygons.
    """
    check_count("n_folds", n_folds, least=2)
    fold = np.full(len(classes), -1, dtype=np.intp)
    for offset, value in enumerate(np.unique(classes)):
        members = np.flatnonzero(classes == value)
        names = np.unique(polygons[members])
        if len(names) > 1:
            rank = np.argsort(np.argsort(random_keys(len(names), seed, int(value)), kind="stable"))
            place = rank[np.searchsorted(names, polygons[members])]
        elif len(members) > 1:
            place = halves(positions[members]).astype(np.intp)
        else:
            continue
        fold[members] = (place + offset) % n_folds
    return fold


def halves(positions: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which pixels lie in the second half of a polygon, cut across its longest axis."""
    centred = positions - positions.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    along = np.round(centred @ axis, 9)  # equal pixels of two platforms stay equal
    order = np.lexsort((positions[:, 1], positions[:, 0], along))
    second = np.zeros(len(positions), dtype=bool)
    second[order[(len(order) + 1) // 2 :]] = True
    return second


def _masks_by_class(values: NDArray[Any]) -> Iterator[NDArray[np.bool_]]:
    for value in np.unique(values[values != NO_REFERENCE]):
        yield values == value
