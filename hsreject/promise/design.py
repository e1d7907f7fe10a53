"""A sample of the pixels of a map: how it was drawn, where its points lie, what they really are."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.io.grid import Grid
from hsreject.registry import check_choice, check_count
from hsreject.sampling import random_keys
from hsreject.schema import (
    LARGEST_LABEL,
    NO_REFERENCE,
    REJECTED,
    Y,
    as_label_map,
    as_map,
    check_label_type,
    check_no_mask,
    check_same_grid,
    class_table,
    fill_value,
    nodata_label,
)

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

RANDOM, STRATIFIED = "random", "stratified"
NODATA = nodata_label(np.uint16)

_ROWS = 512  # of a map, read at once
_ORDER = 1 << 16  # streams of random numbers: labels lie below it
_NAMES = 1 << 17


@dataclass(frozen=True)
class Design:
    """How the points of a sample were drawn.

    Its text, such as "random n=500 pixels=20865 seed=0 map=0123456789abcdef", stands in every row
    of a sample file, because a column survives every program that files go through.
    """

    kind: str  # "random" or "stratified"
    n_points: int
    n_pixels: int  # of the map that could be drawn: those with data that were not excluded
    seed: int
    map_id: str  # of the label map, see :func:`map_id`

    _TEXT = re.compile(r"(random|stratified) n=(\d+) pixels=(\d+) seed=(\d+) map=([0-9a-f]{16})")

    def __str__(self) -> str:
        return (
            f"{self.kind} n={self.n_points} pixels={self.n_pixels} seed={self.seed} "
            f"map={self.map_id}"
        )

    @classmethod
    def parse(cls, text: str) -> Design | None:
        """Return the design that a text states, or None."""
        found = cls._TEXT.search(text)
        if found is None:
            return None
        kind, n_points, n_pixels, seed, of_map = found.groups()
        return cls(kind, int(n_points), int(n_pixels), int(seed), of_map)


@dataclass(frozen=True, eq=False)
class Sample:
    """Points at pixel centres of a map, to be labelled or labelled already.

    Made by :func:`hsreject.draw_sample` and :func:`hsreject.open_sample`. All arrays have one entry
    per point; points come in random order, so that the first ones are a sample, too.

    Attributes
    ----------
    id : array of int
        Number of the point, from 1 in the order of the draw.
    row, column : array of int
        The pixel, counted from 0.
    label : array of int
        What the map says, 0 where it rejects.
    reference : array of int
        What is really there, 0 where nobody has said so yet.
    stratum : array of int
        The stratum that the point was drawn from. The numbers mean nothing, so that they do not
        tell the map's label to whoever labels.
    stratum_pixels : array of int
        Number of pixels in that stratum.
    design : Design or None
        How the points were drawn, if that is known.
    classes : ClassTable
        The classes of the map and those that only the reference has.
    grid : Grid
        Of the map.
    """

    id: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    label: NDArray[np.int64]
    reference: NDArray[np.int64]
    stratum: NDArray[np.int64]
    stratum_pixels: NDArray[np.int64]
    design: Design | None
    classes: ClassTable
    grid: Grid

    def __len__(self) -> int:
        return self.id.size

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which points have a reference."""
        return np.asarray(self.reference != NO_REFERENCE)

    @property
    def inclusion_probability(self) -> NDArray[np.float64]:
        """The share of the pixels of its stratum that was drawn, for each point."""
        _, place, counts = np.unique(self.stratum, return_inverse=True, return_counts=True)
        return np.asarray(counts[place] / self.stratum_pixels)

    def select(self, which: NDArray[Any]) -> Sample:
        """Return the points that a mask or an index chooses."""
        names = ("id", "row", "column", "label", "reference", "stratum", "stratum_pixels")
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def with_reference(self, reference: xr.DataArray | NDArray[Any]) -> Sample:
        """Return the same points with the labels that a reference map (y, x) has there."""
        on_grid = as_label_map(reference, name="reference")
        shape = (self.grid.height, self.grid.width)
        if on_grid.shape != shape:
            raise InputError(
                f"reference must have the {shape[0]} rows x {shape[1]} columns of the map that the "
                f"sample was drawn from (got {on_grid.shape[0]} x {on_grid.shape[1]})."
            )
        found = on_grid.values[self.row, self.column].astype(np.int64)
        listed = ClassTable.from_attrs(on_grid.attrs) or self.classes
        return replace(self, reference=found, classes=_completed(self.classes, found, names=listed))

    def on_map(self, on_map: xr.DataArray) -> Sample:
        """Return the same points with the labels of a map on their grid."""
        grid = Grid.of(on_map)
        same_size = (grid.height, grid.width) == (self.grid.height, self.grid.width)
        placed = grid.georeferenced and self.grid.georeferenced
        if not same_size or (placed and not grid.same_as(self.grid)):
            raise InputError(
                f"The sample belongs to a map on another grid: {self.grid}, against {grid}. Write "
                "it into a file and open that for this map: open_sample(path, label)."
            )
        return replace(
            self,
            label=on_map.values[self.row, self.column].astype(np.int64),
            classes=_completed(class_table(on_map), self.reference, names=self.classes),
        )

    def write(
        self, path: str | PathLike[str], *, show_label: bool = False, overwrite: bool = False
    ) -> None:
        """Write the points for QGIS or a spreadsheet: .gpkg, .geojson or .csv.

        Parameters
        ----------
        path : path
            The file to make. The column `reference` is the one to fill in, with names or codes of
            classes; leave the others as they are.
        show_label : bool
            Add what the map says in a column `map_label`. Whoever sees it tends to agree with it.
        overwrite : bool
            Replace a file that is already there.
        """
        from hsreject.promise.sample_file import write_sample  # noqa: PLC0415 (it imports this file)

        write_sample(self, Path(path), show_label=show_label, overwrite=overwrite)


def draw_sample(
    label: xr.DataArray | NDArray[Any],
    n: int,
    *,
    design: str = RANDOM,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    seed: int = 0,
) -> Sample:
    """Draw pixels of a map whose true class is then to be found out.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map. Pixels without data (``schema.nodata_label``) are never drawn; rejected ones (0)
        are: without them nobody knows what lies there.
    n : int
        Number of points, at least 1 and at most the number of pixels. About 500 certify 5 % of
        errors on a good map; :func:`hsreject.certify` says when more are needed.
    design : {"random", "stratified"}
        "random" is a simple random sample without replacement, which certificates need.
        "stratified" draws from each class of the map and from the rejected pixels: half of the
        points in equal parts, half in proportion to area. It estimates the areas of rare classes
        better, but certifies nothing.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 where a pixel must not be drawn: the training pixels.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere; a smaller random sample is the
        beginning of a larger one.

    Returns
    -------
    Sample
        Write it with :meth:`Sample.write`, fill in the column `reference`, and give the file to
        :func:`hsreject.certify` or :func:`hsreject.assess`.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import draw_sample
    >>> label = np.repeat([[1, 2, 2, 2]], 25, axis=0)
    >>> sample = draw_sample(label, 10, design="stratified")
    >>> np.unique(sample.label, return_counts=True), np.unique(sample.stratum_pixels)
    ((array([1, 2]), array([4, 6])), array([25, 75]))
    >>> str(draw_sample(label, 10, exclude=label == 1).design)
    'random n=10 pixels=75 seed=0 map=...'
    """
    check_count("n", n, least=1)
    check_choice("design", design, (RANDOM, STRATIFIED))
    on_map = labels_of(label)
    free = on_map.values != NODATA
    if exclude is not None:
        free &= ~excluded_pixels(exclude, on_map)
    n_pixels = int(np.count_nonzero(free))
    if n > n_pixels:
        raise InputError(
            f"n must be at most {n_pixels}, the number of pixels that can be drawn (got {n}): the "
            f"map has {int((on_map.values != NODATA).sum())} pixels with data, less those that "
            "exclude leaves out."
        )
    strata = _strata(on_map.values, free, design, n)
    parts = [_drawn(mask, count, seed, stream) for mask, count, stream in strata]
    row, column = (np.concatenate(axis) for axis in zip(*parts, strict=True))
    names = np.argsort(random_keys(len(strata), seed, _NAMES), kind="stable") + 1
    sizes = [np.count_nonzero(mask) for mask, _, _ in strata]
    counts = [count for _, count, _ in strata]
    sample = Sample(
        id=np.arange(1, n + 1),
        row=row,
        column=column,
        label=on_map.values[row, column].astype(np.int64),
        reference=np.zeros(n, dtype=np.int64),
        stratum=np.repeat(names, counts),
        stratum_pixels=np.repeat(sizes, counts),
        design=Design(design, n, n_pixels, int(seed), map_id(on_map)),
        classes=class_table(on_map),
        grid=Grid.of(on_map),
    )
    if design == RANDOM:
        return sample
    shuffled = sample.select(np.argsort(random_keys(n, seed, _ORDER), kind="stable"))
    return replace(shuffled, id=sample.id)


def sample_of_array(reference: xr.DataArray | NDArray[Any], on_map: xr.DataArray) -> Sample:
    """Return the pixels where an array of reference labels (y, x) on the grid of a map is not 0."""
    on_grid = as_label_map(reference, name="sample")
    check_same_grid(on_map, on_grid, names=("the map", "sample"))
    row, column = np.nonzero(on_grid.values)
    ones = np.ones(row.size, dtype=np.int64)
    found = on_grid.values[row, column].astype(np.int64)
    listed = ClassTable.from_attrs(on_grid.attrs) or ClassTable.plain([])
    return Sample(
        id=np.cumsum(ones),
        row=row,
        column=column,
        label=on_map.values[row, column].astype(np.int64),
        reference=found,
        stratum=ones,
        stratum_pixels=ones * int(np.count_nonzero(on_map.values != NODATA)),
        design=None,
        classes=_completed(class_table(on_map), found, names=listed),
        grid=Grid.of(on_map),
    )


def _completed(classes: ClassTable, values: NDArray[np.int64], *, names: ClassTable) -> ClassTable:
    """Return a class table with the values that it lacks, as another table names them."""
    table = classes.completed(values[values != NO_REFERENCE].tolist())
    added = [names.name_of(value) for value in table.values[len(classes) :]]
    if len({*classes.names, *added}) < len(table):  # the tables mean different classes by a name
        return table
    return ClassTable(table.values, (*classes.names, *added), table.colors)


def labels_of(label: xr.DataArray | NDArray[Any], *, name: str = "label") -> xr.DataArray:
    """Return a label map (y, x) in memory as uint16: 0 is rejected, 65535 (`NODATA`) no data."""
    check_no_mask(label, name=name, remedy=f"Fill them with {nodata_label(np.uint8)} (no data).")
    on_grid = as_map(label, name=name)
    check_label_type(on_grid.dtype, name=name)
    classes = ClassTable.from_attrs(on_grid.attrs)
    canonical = on_grid.copy(data=_canonical(on_grid.values, fill_value(on_grid), name))
    if not (canonical.values != NODATA).any():
        raise InputError(f"{name} has no pixel with data.")
    canonical.attrs["_FillValue"] = NODATA
    if classes is None:
        there = [int(value) for value in np.unique(canonical.values)]
        classes = ClassTable.plain([value for value in there if value not in {REJECTED, NODATA}])
    return canonical.assign_attrs(classes.to_attrs())


def _canonical(values: NDArray[Any], fill: Any, name: str) -> NDArray[np.uint16]:
    without_data = values == nodata_label(values.dtype)
    if fill is not None:
        without_data |= values == fill
    known = np.where(without_data, values.dtype.type(0), values)
    if known.size and not 0 <= known.min() <= known.max() <= LARGEST_LABEL:
        raise InputError(
            f"{name} must hold class values from 1, 0 where a pixel is rejected and "
            f"{nodata_label(np.uint8)} (uint8) without data (found {known.min()} to {known.max()})."
        )
    return np.where(without_data, np.uint16(NODATA), known.astype(np.uint16))


def map_id(label: xr.DataArray, confidence: xr.DataArray | None = None) -> str:
    """Return 16 hexadecimal digits that tell a label map, or a ranking, from any other.

    They do not depend on the type that labels and confidences are stored in, nor on chunks: a map
    in memory and the same one in a file agree. A lazy map is read some rows at a time.
    """
    digest = hashlib.sha256(f"{label.shape}".encode())
    fill = fill_value(label)
    for start in range(0, label.sizes[Y], _ROWS):
        rows = {Y: slice(start, start + _ROWS)}
        labels = _canonical(np.asarray(label.isel(rows).values), fill, "label")
        digest.update(labels.astype("<u2").tobytes())
        if confidence is not None:
            sure = np.asarray(confidence.isel(rows).values, dtype="<f8") + 0.0  # no negative zero
            unranked = (labels == NODATA) | (labels == REJECTED)
            digest.update(np.where(unranked, 0.0, sure).tobytes())
    return digest.hexdigest()[:16]


def excluded_pixels(
    exclude: xr.DataArray | NDArray[Any], on_map: xr.DataArray
) -> NDArray[np.bool_]:
    """Return which pixels of a map (y, x) are excluded: those where `exclude` is not 0."""
    if np.asarray(exclude).dtype.kind == "b":
        exclude = exclude.astype(np.uint8)
    given = as_label_map(exclude, name="exclude")
    check_same_grid(on_map, given, names=("the map", "exclude"))
    return np.asarray(given.values != NO_REFERENCE)


def _strata(
    values: NDArray[np.uint16], free: NDArray[np.bool_], design: str, n: int
) -> list[tuple[NDArray[np.bool_], int, int]]:
    """Return for each stratum its pixels, how many to draw, and its stream of random numbers."""
    if design == RANDOM:
        return [(free, n, NODATA)]
    labels, sizes = np.unique(values[free], return_counts=True)
    counts = _allocation(sizes, n).tolist()
    named = zip(labels.tolist(), counts, strict=True)
    return [(free & (values == value), count, value) for value, count in named]


def _allocation(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many points each stratum gets: half in equal parts, half in proportion to size.

    Each gets at least two, if it has them, because one point tells nothing about its spread.
    """
    least = np.minimum(sizes, 2)
    if n < least.sum():
        raise InputError(
            f"n must be at least {least.sum()}, two points for each of the {sizes.size} strata "
            f"(got {n}). Draw more points, or choose design='random'."
        )
    wanted = n / (2 * sizes.size) + n / 2 * sizes / sizes.sum()
    counts = np.clip(np.floor(wanted).astype(np.int64), least, sizes)
    while (missing := n - counts.sum()) != 0:  # one point at a time to whom it is due most
        step = 1 if missing > 0 else -1
        open_ = counts < sizes if step > 0 else counts > least
        due = np.where(open_, step * (wanted - counts), -np.inf)
        counts[int(np.argmax(due))] += step
    return np.asarray(counts)


def _drawn(
    mask: NDArray[np.bool_], count: int, seed: int, stream: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns of `count` random pixels of a mask, in the order of the draw."""
    per_row = np.count_nonzero(mask, axis=1)
    ends = np.cumsum(per_row)
    rank = _distinct(count, int(ends[-1]), seed, stream)
    row = np.searchsorted(ends, rank, side="right")
    within = rank - (ends - per_row)[row]
    column = [np.flatnonzero(mask[r])[w] for r, w in zip(row, within, strict=True)]
    return row.astype(np.int64), np.array(column, dtype=np.int64)


def _distinct(count: int, n: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return `count` different random numbers below `n`: the first steps of a Fisher-Yates shuffle.

    Only the places that were swapped are kept, so a scene of any size costs nothing.
    """
    words = random_keys(count, seed, stream) >> np.uint64(11)
    swapped: dict[int, int] = {}
    chosen = np.empty(count, dtype=np.int64)
    for step, word in enumerate(words.tolist()):
        place = step + (word * (n - step) >> 53)
        chosen[step] = swapped.get(place, place)
        swapped[place] = swapped.get(step, step)
    return chosen
