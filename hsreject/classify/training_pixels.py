"""Training pixels of a scene: the polygons they lie in, and the folds that are left out in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.splits.draws import deal_folds
from hsreject.splits.polygons import CLUSTERED, cluster_size, polygon_folds, polygon_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.features.windows import Window

_MOST_JUDGED = 500  # training pixels that candidates are judged by: more would change little
_DOUBT = 0.01  # probability of a left-out label below which it may be wrong
_TOO_OFTEN = 3.0  # times as many as a calibrated pool would have


@dataclass(frozen=True)
class Training:
    """The training pixels of a scene, and the folds by which candidates are judged.

    A fold is left out whole, but only the `judged` pixels count: more would change little.
    """

    classes: NDArray[np.int64]  # (category,): label values, ascending
    codes: NDArray[np.intp]  # (pixel,): number of the class in `classes`
    places: tuple[NDArray[np.intp], NDArray[np.intp]]  # rows and columns, (pixel,) each
    shape: tuple[int, int]  # of the image
    polygon: NDArray[np.intp] | None  # (pixel,): from 0; None if the pixels lie scattered
    folds: Mapping[str, NDArray[np.intp]]  # by kind: (pixel,), -1 for one that is never left out
    judged: NDArray[np.bool_]  # (pixel,)
    trusted: NDArray[np.bool_]  # (pixel,): False where the label is taken to be wrong

    @classmethod
    def of(
        cls,
        labels: xr.DataArray,
        positions: NDArray[np.intp],
        *,
        n_folds: int = 5,
        seed: int = 0,
        most: int | None = _MOST_JUDGED,
    ) -> Training:
        """Return the training pixels at the positions of `labels` that have data.

        There are two kinds of folds: *random* ones, and those of *place*, which are runs of a class
        along the axis on which its pixels lie. Of polygons (clusters of three and more), both leave
        out whole polygons: a model that has seen a pixel's neighbour has seen the pixel. Of
        scattered pixels at most `most` are dealt into random folds.
        """
        shape = (int(labels.shape[0]), int(labels.shape[1]))
        values = schema.reference_labels(labels).ravel()[positions].astype(np.int64)
        classes, codes = np.unique(values, return_inverse=True)
        rows, columns = np.unravel_index(positions, shape)
        places = np.stack([rows, columns], axis=1)
        with_data = np.zeros(shape, dtype=bool)
        with_data[rows, columns] = True
        used = labels.where(with_data, schema.NO_REFERENCE).astype(labels.dtype)
        polygon = None
        if cluster_size(used) >= CLUSTERED:
            _check_polygons(labels, classes)
            polygon = polygon_numbers(used)[rows, columns].astype(np.intp)
            alone = polygon == 0  # in no polygon: each is one by itself
            polygon[alone] = polygon.max() + 1 + np.arange(alone.sum())
            fold = polygon_folds(values, polygon, places, n_folds, seed=seed)
            folds = {"random": fold, "place": fold}
            judged = np.isin(np.arange(len(fold)), evenly(polygon, _MOST_JUDGED)) & (fold >= 0)
        else:
            fold = deal_folds(values, n_folds, seed=seed, most=most)
            folds = {"random": fold, "place": _folds_by_place(codes, places, n_folds)}
            judged = fold >= 0
        trusted = np.ones(len(codes), dtype=bool)
        return cls(classes, codes, (rows, columns), shape, polygon, folds, judged, trusted)

    def n_folds(self, kind: str) -> int:
        """Return how many folds of a kind there are."""
        return int(self.folds[kind].max(initial=-1)) + 1

    def outside(self, kind: str, number: int | None) -> NDArray[np.bool_]:
        """Return the trusted pixels outside a fold of a kind; all of them without a number."""
        return self.trusted if number is None else self.trusted & (self.folds[kind] != number)

    def without(self, doubtful: NDArray[np.bool_]) -> Training:
        """Return the training pixels with some that are no longer trusted.

        A class whose trusted pixels lie in one fold would be lost without it: they stay.
        """
        folds = {kind: fold.copy() for kind, fold in self.folds.items()}
        for fold in folds.values():
            for code in range(len(self.classes)):
                members = ~doubtful & (self.codes == code)
                if len(np.unique(fold[members])) == 1:
                    fold[members] = -1
        return replace(self, folds=folds, trusted=~doubtful)

    def left_out(self) -> Iterator[NDArray[np.bool_]]:
        """Yield the mask (y, x) of the pixels in each random fold, trusted or not."""
        for number in range(self.n_folds("random")):
            yield self._mask(self.folds["random"] == number)

    def doubted(self) -> NDArray[np.bool_]:
        """Return the mask (y, x) of the pixels that are not trusted."""
        return self._mask(~self.trusted)

    def _mask(self, pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
        mask = np.zeros(self.shape, dtype=bool)
        mask[self.places] = pixels
        return mask

    def seeds(self, window: Window, folds: Sequence[int | None]) -> NDArray[np.int16]:
        """Return 1 + the class number at each training pixel of a block, 0 elsewhere.

        There is a set (set, y, x) for each fold, without its pixels.
        """
        seen, (rows, columns) = window.locate(*self.places, around=True)
        shape = [side.stop - side.start for side in window.outer]
        seeds = np.zeros((len(folds), *shape), dtype=np.int16)
        for one, fold in zip(seeds, folds, strict=True):
            one[rows, columns] = np.where(self.outside("random", fold), self.codes + 1, 0)[seen]
        return seeds

    def groups(self) -> NDArray[np.intp] | None:
        """Return the polygons of the judged pixels; None if all are scattered."""
        return None if self.polygon is None else self.polygon[self.judged]

    def polygons_per_class(self) -> NDArray[np.intp]:
        """Return how many polygons each class has; nothing if all pixels are scattered."""
        if self.polygon is None:
            return np.zeros(0, dtype=np.intp)
        first = np.unique(self.polygon, return_index=True)[1]
        return np.bincount(self.codes[first], minlength=len(self.classes))

    def can_calibrate(self) -> bool:
        """Return whether left-out pixels can calibrate: halves of one polygon cannot."""
        if self.polygon is None:
            return bool(self.judged.any())
        return bool(np.median(self.polygons_per_class()) >= 2)

    def doubtful(self, probability: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which pixels are labelled wrong, as the pool of all others says.

        Where labels are right, a calibrated pool gives a left-out label less than .01 in one of a
        hundred cases. Where that happens three times as often, such labels are wrong.
        `probability` (judged pixel, category) is of pixels that were left out. A polygon that
        differs is another place, not a wrong label.
        """
        doubtful = np.zeros(len(self.codes), dtype=bool)
        judged = np.flatnonzero(self.judged)
        own = probability[np.arange(len(judged)), self.codes[judged]]
        too_many = np.count_nonzero(own < _DOUBT) > _TOO_OFTEN * _DOUBT * len(judged)
        if self.polygon is None and too_many:
            doubtful[judged[own < _DOUBT]] = True
            left = np.bincount(self.codes[~doubtful], minlength=len(self.classes))
            doubtful &= left[self.codes] > 0  # of a class that would be lost, all stay
        return doubtful


def _check_polygons(labels: xr.DataArray, classes: NDArray[np.int64]) -> None:
    """Raise where all polygons of a class lie where the scene has no data."""
    values = np.unique(schema.reference_labels(labels))
    lost = np.setdiff1d(values[values != schema.NO_REFERENCE], classes)
    if lost.size:
        table = schema.class_table(labels)
        names = ", ".join(f"{value} ({table.name_of(value)})" for value in lost)
        raise InputError(
            f"The scene has no data in any polygon of class {names}. Digitise the class where "
            "there is data, or take it out of the labels."
        )


def _folds_by_place(
    codes: NDArray[np.intp], places: NDArray[np.integer], n_folds: int
) -> NDArray[np.intp]:
    """Cut the pixels of each class into runs along the main axis of their positions."""
    fold = np.full(len(codes), -1, dtype=np.intp)
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        if len(members) > 1:
            centred = places[members] - places[members].mean(axis=0)
            axis = np.linalg.svd(centred, full_matrices=False)[2][0]
            # rounded: ties must be ties on every platform, and then keep the order of the pixels
            order = np.argsort(np.round(centred @ axis, 9), kind="stable")
            fold[members[order]] = np.arange(len(members)) * n_folds // len(members)
    return fold


def evenly(groups: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most `most` samples (but one of each group), as many of each group as it allows.

    Those of a large group are spread over it in the order given, so that neighbours are thinned.
    """
    if len(groups) <= most:
        return np.arange(len(groups))
    counts = np.bincount(groups)
    # totals[c - 1] samples are left if no group gives more than c. That never falls with c, so the
    # largest cap that fits is found by bisection; one of each group is taken in any case.
    totals = [np.minimum(counts, cap).sum() for cap in range(1, counts.max() + 1)]
    share = max(int(np.searchsorted(totals, most, side="right")), 1)
    members = (np.flatnonzero(groups == number) for number in np.flatnonzero(counts))
    thinned = [
        one[np.linspace(0, len(one) - 1, min(len(one), share)).round().astype(np.intp)]
        for one in members
    ]
    return np.sort(np.concatenate(thinned))


def folds_left_out(
    cube: xr.DataArray, labels: xr.DataArray, n_folds: int, *, seed: int
) -> Iterator[tuple[xr.DataArray, NDArray[np.bool_]]]:
    """Yield per random fold the labels outside it, and the mask (y, x) of the pixels in it."""
    labels = labels.where(schema.valid_pixels(cube), schema.NO_REFERENCE).astype(labels.dtype)
    positions = np.flatnonzero(schema.reference_labels(labels) != schema.NO_REFERENCE)
    training = Training.of(labels, positions, n_folds=n_folds, seed=seed, most=None)
    for left_out in training.left_out():
        yield labels.where(~left_out, schema.NO_REFERENCE).astype(labels.dtype), left_out
