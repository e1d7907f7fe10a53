"""The polygons that labels were digitised as: pixels of one polygon are not independent.

Neighbouring pixels of a polygon are near copies of each other. Whatever is learned from one of them
is right about the next, so folds and splits that divide a polygon measure memory, not skill. Here
polygons are recognised, go to one side of a split and are dealt into folds as a whole, and
accuracies are averaged over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr
from scipy import ndimage

from hsreject.errors import InputError
from hsreject.registry import check_count, check_number
from hsreject.schema import MAP_DIMS, NO_REFERENCE, POLYGON, check_labels, reference_labels
from hsreject.schema.classes import ClassTable
from hsreject.splits.draws import Labels, random_keys, split_by_masks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

CLUSTERED = 3.0
"""From this many pixels per cluster on, labels count as digitised; scattered ones have 1.1 to
1.6."""

ADVICE = "sampling_advice"
"""Attribute of a split by few polygons: what would help most."""
LEFT_OUT = "accuracy_by_leaving_out"
"""Attribute of a split without test pixels: `"polygons"` are left out in turn to estimate it."""

_ENOUGH_POLYGONS = 5  # of a class; with fewer, another one helps more than any method

_EIGHT_NEIGHBORS = np.ones((3, 3), dtype=bool)


def polygon_numbers(labels: NDArray[Any] | xr.DataArray) -> NDArray[np.int32]:
    """Find the number of the polygon that each labelled pixel belongs to, 0 elsewhere.

    Labels of a vector file know their features: a coordinate `polygon` (y, x). Others are grouped
    by class into connected regions; gaps of up to two pixels do not divide one.

    Examples
    --------
    >>> from hsreject.splits.polygons import polygon_numbers
    >>> import numpy as np
    >>> polygon_numbers(np.array([[1, 1, 0, 0, 0, 0, 1, 2]]))
    array([[1, 1, 0, 0, 0, 0, 2, 3]], dtype=int32)
    """
    values = reference_labels(labels)
    if isinstance(labels, xr.DataArray) and POLYGON in labels.coords:
        features = np.asarray(check_labels(labels)[POLYGON].values)
        used = (values != NO_REFERENCE) & (features > 0)
        numbers = np.zeros(values.shape, dtype=np.int32)
        numbers[used] = np.unique(features[used], return_inverse=True)[1] + 1
        return numbers
    numbers, count = np.zeros(values.shape, dtype=np.int32), 0
    for inside in _masks_by_class(values):
        # grown by a pixel on either side, parts meet across gaps of two
        near = ndimage.binary_dilation(inside, _EIGHT_NEIGHBORS)
        regions, n_regions = ndimage.label(near, _EIGHT_NEIGHBORS)
        numbers[inside] = regions[inside] + count
        count += n_regions
    return numbers


def cluster_size(labels: NDArray[Any] | xr.DataArray) -> float:
    """Average the number of labelled pixels per cluster.

    Clusters are the polygons of labels that know them, else connected groups (8 neighbours) of one
    class. Scattered pixels have 1.1 to 1.6, digitised polygons 5 and more. NaN without any.
    """
    values = reference_labels(labels)
    if isinstance(labels, xr.DataArray) and POLYGON in labels.coords:
        n_groups = int(polygon_numbers(labels).max(initial=0))
    else:
        n_groups = sum(ndimage.label(mask, _EIGHT_NEIGHBORS)[1] for mask in _masks_by_class(values))
    return np.count_nonzero(values) / n_groups if n_groups else float("nan")


def touching_share(labels: NDArray[Any] | xr.DataArray) -> float:
    """Compute the share of the labelled pixels beside a pixel of another class (8 neighbours).

    Where every pixel of a place is labelled, classes meet: 0.1 to 0.7 of the pixels do in maps.
    Polygons that people digitise rarely touch, 0 to 0.01.
    """
    values = reference_labels(labels).astype(np.int64)
    used = values != NO_REFERENCE
    # Pixels without a label must decide nothing: as 0 they are never the largest, and as the
    # largest class of all never the smallest unless that class is the only one around.
    largest = ndimage.maximum_filter(values, size=3, mode="nearest")
    smallest = ndimage.minimum_filter(np.where(used, values, values.max()), size=3, mode="nearest")
    return float((largest != smallest)[used].mean())


def sample_polygons(
    labels: Labels,
    *,
    fraction: float = 0.5,
    buffer: int = 4,
    n_per_class: int | None = None,
    seed: int = 0,
) -> tuple[Labels, Labels]:
    """Draw whole polygons for training; the others are for testing.

    Pixels of a polygon are near copies of each other, so a map is judged on polygons that it has
    not seen. Labels of a vector file know their polygons; in a raster, connected regions of a class
    are taken for them (`polygon_numbers`). Of each class the given fraction of the polygons,
    at least one, is for training, and at least one for testing. A class with a single polygon is
    halved across its longest axis. Test pixels keep a distance from the training pixels of their
    class; a class of which nothing is left cannot be tested fairly, and a warning names it.

    Parameters
    ----------
    labels : DataArray or array of int, dims (y, x)
        Reference labels, 0 where there is none.
    fraction : float
        Part of the polygons of each class that is for training, above 0 and at most 1. With 1 all
        are, there is no test pixel, and the attribute `accuracy_by_leaving_out` says that accuracy
        comes from leaving polygons out in turn (:func:`hsreject.left_out_accuracy`). Take that
        where a class has fewer than four polygons: half of them would be too few to learn from.
    buffer : int
        Distance in pixels, 0 or larger, of test pixels from training pixels of their class.
    n_per_class : int, optional
        Keep only this many training pixels of each class, spread evenly over its training polygons.
    seed : int
        0 or larger. The same seed draws the same polygons everywhere.

    Returns
    -------
    train, test
        As :func:`hsreject.sample_per_class`, with the coordinate `polygon` (y, x). The attribute
        `sampling_meaning` says what the accuracy is about, `sampling_advice` what would help most.

    See Also
    --------
    hsreject.left_out_accuracy : where all polygons train.
    hsreject.sample_blocks : for labels without polygons.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import sample_polygons
    >>> from hsreject.splits.polygons import polygon_numbers
    >>> labels = np.zeros((12, 12), dtype=int)
    >>> labels[:2, :2], labels[:2, 9:], labels[9:, :2], labels[9:, 9:] = 1, 1, 2, 2
    >>> train, test = sample_polygons(labels)
    >>> [len(np.unique(polygon_numbers(labels)[part > 0])) for part in (train, test)]
    [2, 2]
    """
    values = reference_labels(labels)
    if values.ndim != len(MAP_DIMS):
        raise InputError(f"labels must have the dims (y, x) (got {values.ndim} dimensions).")
    check_number("fraction", fraction, above=0, most=1)
    check_count("buffer", buffer, least=0)
    numbers = polygon_numbers(labels)
    _check_apart(values, numbers)
    in_train = np.zeros(values.shape, dtype=bool)
    in_test = np.zeros(values.shape, dtype=bool)
    classes = ClassTable.from_attrs(getattr(labels, "attrs", {})) or ClassTable.plain([])
    halved: list[str] = []
    for inside in _masks_by_class(values):
        value = int(values[inside][0])
        learn, apart = inside, np.zeros_like(inside)
        if fraction < 1:
            learn = inside & _for_training(inside, numbers, fraction, seed, value)
            near = ndimage.maximum_filter(learn, size=2 * buffer + 1, mode="constant")
            apart = inside & ~near
            if len(np.unique(numbers[inside])) == 1:
                # half a polygon that is too small for testing is better used for training
                learn = learn if apart.any() else inside
                halved += [classes.name_of(value)] if apart.any() else []
        in_train |= learn
        in_test |= apart
    how = f"polygons fraction={fraction:g} buffer={buffer} seed={seed}"
    counts = [len(np.unique(numbers[part])) for part in (in_train, in_test)]
    per_class = [len(np.unique(numbers[one & in_train])) for one in _masks_by_class(values)]
    advice = polygon_advice([n for n in per_class if n], int(in_train.sum()))
    if n_per_class is not None:
        check_count("n_per_class", n_per_class, least=1)
        in_train = _spread(np.where(in_train, values, 0), numbers, n_per_class, seed)
        how += f" n_per_class={n_per_class}"
    meaning = _meaning(counts, halved)
    if fraction == 1:
        several = has_two_polygons(np.where(in_train, values, 0), numbers)
        meaning = _ALL_FOR_TRAINING if several else _ONE_PER_CLASS
    numbered = labels
    if isinstance(labels, xr.DataArray):
        numbered = cast(
            "Labels", check_labels(labels).assign_coords({POLYGON: (MAP_DIMS, numbers)})
        )
    parts = split_by_masks(
        numbered, in_train, in_test, how=how, meaning=meaning, tested=fraction < 1
    )
    if isinstance(parts[0], xr.DataArray):
        attrs = {ADVICE: advice} if advice else {}
        attrs |= {LEFT_OUT: "polygons"} if fraction == 1 else {}
        parts = tuple(part.assign_attrs(attrs) for part in cast("Any", parts))
    return parts


def _check_apart(values: NDArray[Any], numbers: NDArray[np.int32]) -> None:
    """Raise unless a polygon can be left out of the others."""
    if numbers.max(initial=0) == 1:
        raise InputError("There is one polygon in all, which leaves nothing to test on. Draw more.")
    if numbers.max(initial=0) == len(np.unique(values[numbers > 0])) and _all_touch(numbers):
        raise InputError(
            f"The polygons of all {numbers.max()} classes touch: they are one patch, of which no "
            "part can be left out to test on. Digitise places that lie apart, five small ones per "
            "class rather than one large, or keep blocks apart ([sampling] name = 'blocks', "
            "hsreject.sample_blocks)."
        )


def _all_touch(numbers: NDArray[np.int32]) -> bool:
    """Tell whether all polygons (y, x) together are one connected region."""
    return bool(ndimage.label(numbers > 0, _EIGHT_NEIGHBORS)[1] == 1)


def _for_training(
    inside: NDArray[np.bool_], numbers: NDArray[np.int32], fraction: float, seed: int, value: int
) -> NDArray[np.bool_]:
    """Draw the pixels of a class's training polygons, or of one half of its only polygon."""
    names = np.unique(numbers[inside])
    if len(names) > 1:
        n_drawn = min(max(int(fraction * len(names) + 0.5), 1), len(names) - 1)
        order = np.argsort(random_keys(len(names), seed, value), kind="stable")
        return np.isin(numbers, names[order[:n_drawn]])
    half = np.zeros(inside.shape, dtype=bool)
    half[inside] = halves(np.argwhere(inside)) == bool(random_keys(1, seed, value)[0] % 2)
    return half


def _spread(
    values: NDArray[Any], numbers: NDArray[np.int32], n_per_class: int, seed: int
) -> NDArray[np.bool_]:
    """Draw `n_per_class` random pixels of each class, as evenly over its polygons as can be."""
    mask = np.zeros(values.shape, dtype=bool)
    for inside in _masks_by_class(values):
        polygon = numbers[inside]
        keys = random_keys(len(polygon), seed, int(values[inside][0]), 1)
        order = np.lexsort((keys, polygon))  # polygon after polygon, in random order within each
        # The turn of a pixel is how many of its polygon come before it. By turns, every polygon
        # gives its first pixel before any gives a second.
        first = np.searchsorted(polygon[order], polygon[order])
        turn = np.empty(len(order), dtype=np.intp)
        turn[order] = np.arange(len(order)) - first
        mask[inside] = np.isin(np.arange(len(order)), np.lexsort((keys, turn))[:n_per_class])
    return mask


_ALL_FOR_TRAINING = (
    "All polygons are for training: the accuracy comes from leaving whole polygons out in turn. "
    "The map, which has learned from all of them, is usually better than that."
)


_ONE_PER_CLASS = (
    "All polygons are for training, and no class has a second one that could test what the first "
    "has taught."
)


def has_two_polygons(
    labels: NDArray[Any] | xr.DataArray, numbers: NDArray[np.int32] | None = None
) -> bool:
    """Tell whether a class has two polygons, so that one can be left out and say something."""
    values = reference_labels(labels)
    numbers = polygon_numbers(labels) if numbers is None else numbers
    return any(len(np.unique(numbers[inside])) > 1 for inside in _masks_by_class(values))


def _meaning(counts: list[int], halved: list[str]) -> str:
    text = (
        f"Whole polygons are on one side ({counts[0]} for training, {counts[1]} for testing): the "
        "accuracy is that of polygons nobody has trained on."
    )
    if halved:
        text += (
            f" Only half a polygon tests {', '.join(halved)}, the other half being for training: "
            "the two lie side by side, which flatters."
        )
    return text


def polygon_advice(per_class: Sequence[int] | NDArray[np.intp], n_pixels: int) -> str:
    """Advise what would help most where training pixels lie in few polygons, or nothing."""
    if not len(per_class) or np.median(per_class) >= _ENOUGH_POLYGONS:
        return ""
    n_clusters = sum(per_class)
    return (
        f"Training pixels lie in {n_clusters} clusters ({n_pixels / n_clusters:.0f} pixels each). "
        "Confidence is for places like these; add clusters elsewhere: five small ones beat one "
        "large."
    )


@dataclass(frozen=True)
class LeftOutAccuracy:
    """What polygons that were left out whole say about a map.

    See Also
    --------
    hsreject.left_out_accuracy : makes one.

    Examples
    --------
    Five pixels of three polygons, of which the last is the only one of its class and counts
    nowhere:

    >>> import hsreject as hr
    >>> left_out = hr.left_out_accuracy([1, 1, 1, 1, 2], [1, 1, 1, 2, 1], [1, 1, 2, 2, 3])
    >>> left_out.accuracy, left_out.n_polygons
    (0.75, 2)
    """

    accuracy: float  # mean of the polygons' accuracies; NaN where nothing may be said
    standard_error: float  # of that mean
    n_polygons: int  # that it rests on

    def __str__(self) -> str:
        """Write the sentence that a report may print."""
        if np.isnan(self.accuracy):
            return "One polygon per class: accuracy cannot be estimated."
        return (
            f"Accuracy on polygons left out whole: {100 * self.accuracy:.0f} % (about "
            f"\N{PLUS-MINUS SIGN}{200 * self.standard_error:.0f}, {self.n_polygons} polygons)."
        )


NOT_ESTIMATED = LeftOutAccuracy(np.nan, np.nan, 0)


def left_out_accuracy(
    reference: NDArray[Any] | xr.DataArray, label: NDArray[Any] | xr.DataArray, polygon: Any
) -> LeftOutAccuracy:
    r"""Estimate the accuracy of a map from predictions of polygons that were left out whole.

    With the accuracy :math:`a_g` of each of G polygons, the estimate is their mean and its standard
    error :math:`s / \sqrt{G}`, s their standard deviation. Polygons of a class that has no other
    are not asked: without theirs the class is unknown. Twice the standard error held the truth in
    70 to 100 % of draws on three scenes.

    Parameters
    ----------
    reference, label : arrays of int, same shape
        The class of each pixel, 0 where there is none, and what the map that was made without the
        pixel's polygon says; 0 where no such map was made.
    polygon : array of int, same shape
        The polygon of each pixel (`polygon_numbers`).

    See Also
    --------
    hsreject.sample_polygons : a split with test polygons.
    hsreject.LeftOutAccuracy : what it returns.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import left_out_accuracy
    >>> str(left_out_accuracy([1, 1, 1, 1, 2], [1, 1, 1, 2, 1], [1, 1, 2, 2, 3]))
    'Accuracy on polygons left out whole: 75 % (about ±50, 2 polygons).'
    >>> str(left_out_accuracy([1, 2], [1, 2], [1, 2]))
    'One polygon per class: accuracy cannot be estimated.'
    """
    truth, labels, number = (np.asarray(values).ravel() for values in (reference, label, polygon))
    accuracies = []
    for value in np.unique(truth[truth != NO_REFERENCE]):
        names = np.unique(number[truth == value])
        masks = [(truth == value) & (number == name) & (labels != NO_REFERENCE) for name in names]
        if len(names) > 1:
            accuracies += [float((labels[mask] == value).mean()) for mask in masks if mask.any()]
    n_polygons = len(accuracies)
    if n_polygons < 2:
        return LeftOutAccuracy(np.nan, np.nan, n_polygons)
    error = np.std(accuracies, ddof=1) / np.sqrt(n_polygons)
    return LeftOutAccuracy(float(np.mean(accuracies)), float(error), n_polygons)


def is_digitised(labels: xr.DataArray) -> bool:
    """Tell whether labelled pixels are known to come from polygons, and not from single points."""
    by_polygons = str(labels.attrs.get("sampling", "")).startswith("polygons")
    return POLYGON in labels.coords and (by_polygons or cluster_size(labels) >= CLUSTERED)


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
        # each class starts at another fold: classes of two polygons do not all fill the first two
        fold[members] = (place + offset) % n_folds
    return fold


def halves(positions: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Find which pixels lie in the second half of a polygon, cut across its longest axis."""
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
