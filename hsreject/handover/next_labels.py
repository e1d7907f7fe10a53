"""Where to label next: the centres of the largest rejected regions, with the reason in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy import ndimage
from scipy.spatial import cKDTree

from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.handover.filled_map import NO_DATA
from hsreject.io.grid import Grid
from hsreject.progress import ProgressCallback, no_progress
from hsreject.promise.frame import canonical_labels, excluded_pixels, map_id
from hsreject.promise.sample import CHOSEN, Design, Sample
from hsreject.registry import check_count
from hsreject.rejection.rejector import KEPT_FLAG, REJECTED_FLAG, UNKNOWN_FLAG
from hsreject.schema import NO_REFERENCE, REJECTED, X, Y, as_map, class_table, fill_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW = 1024  # pixels of a side; a region is looked for inside of one
_TOGETHER = np.ones((3, 3), dtype=bool)  # diagonal neighbours belong together
_MOSTLY = 0.5  # share of a region's pixels from which a word is about all of it


@dataclass(frozen=True, eq=False)
class NextLabels:
    """Points to label next, the most useful one first.

    Attributes
    ----------
    points : Sample
        The pixels. Their design is "chosen": they can train a classifier, but never serve as a
        random sample; :func:`hsreject.certify` and :func:`hsreject.assess` refuse them.
    area : array of float
        Of the rejected region around each point, as far as it is the nearest one: hectares, or
        pixels without a place.
    reason : array of str
        Why each point is asked for, in words.
    in_hectares : bool
        Whether `area` is in hectares.

    See Also
    --------
    hsreject.next_labels : makes them.
    """

    points: Sample
    area: NDArray[np.float64]
    reason: NDArray[Any]
    in_hectares: bool

    def __len__(self) -> int:
        return len(self.points)

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the points for QGIS or a spreadsheet, .gpkg, .geojson or .csv, with the reasons."""
        area = "area_ha" if self.in_hectares else "area_pixels"
        notes = {"reason": self.reason, area: self.area}
        return self.points.write(path, notes=notes, overwrite=overwrite)


def next_labels(
    maps: xr.Dataset | xr.DataArray | NDArray[Any],
    n: int = 20,
    *,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    progress: ProgressCallback = no_progress,
) -> NextLabels:
    """Return where to look and label next: the centres of the largest rejected regions.

    Rejected pixels that touch, also at corners, are a region. A region weighs the sum of the doubt
    of its pixels, one minus the probability of the label, 1 where that is not known or where a
    pixel is unlike all training pixels. The heaviest regions are asked about first, each at its
    centre: the pixel that lies deepest inside. A region with k points counts for another one as if
    it weighed 1 / (k + 1)^2 of its weight; that lies as far from the border of the region and from
    the points there as can be.

    Labels that were chosen are no random sample of the map. They train the next map (``hsreject run
    --add``), but promise nothing.

    Parameters
    ----------
    maps : Dataset, or map (y, x) of int
        Of :func:`hsreject.filled_map`; or a map with rejection, 0 where it is rejected, of which
        only the regions are known. May be lazy: windows of 1,024 x 1,024 pixels are read.
    n : int
        How many points, at least 1; fewer come back where no more pixels are rejected.
    exclude : map (y, x) of int or bool, optional
        Never asked about where it is not 0: training pixels, places that nobody can label.
    progress : ProgressCallback
        Called as windows are read.

    Returns
    -------
    NextLabels

    See Also
    --------
    hsreject.draw_sample : points that may promise something, drawn at random.
    hsreject.filled_map : what it knows most of.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import next_labels
    >>> label = np.ones((5, 9), np.uint8)
    >>> label[1:4, 1:4] = label[:2, 7:] = 0
    >>> asked = next_labels(label, 2)
    >>> asked.points.row.tolist(), asked.points.column.tolist(), asked.reason[0]
    ([2, 0], [2, 7], 'rejected 9 pixels')
    """
    check_count("n", n, least=1)
    known = _Known.of(maps, exclude)
    heaviest: list[_Region] = []
    for window in known.windows(progress):
        heaviest = sorted([*heaviest, *_regions(known, window)], key=_Region.rank)[:n]
    if not heaviest:
        raise InputError(
            "The map rejects no pixel that may be labelled, so there is nothing to ask about. Ask "
            "more of the map, for example with --goal accuracy=0.99."
        )
    asked: list[tuple[_Region, tuple[int, int]]] = []
    waiting = list(heaviest)
    while waiting and len(asked) < n:
        region = min(waiting, key=_Region.rank)
        pixel = region.next_pixel(known)
        if pixel is None:
            waiting.remove(region)
        else:
            asked.append((region, pixel))
    if not asked:
        raise InputError("All rejected pixels are excluded, so there is nothing to ask about.")
    return known.answer(asked)


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of a map: flags, and what the pixels may be."""

    label: xr.DataArray  # before rejection, where that is known
    flag: xr.DataArray
    second: xr.DataArray | None
    probability: xr.DataArray | None
    excluded: NDArray[np.bool_] | None
    grid: Grid
    pixel_area: NDArray[np.float64]
    in_hectares: bool

    @classmethod
    def of(
        cls,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        exclude: xr.DataArray | NDArray[Any] | None,
    ) -> _Known:
        if isinstance(maps, xr.Dataset):
            label, flag = maps["label"], maps["flag"]
        else:
            label = as_map(maps, name="maps")
            fill = fill_value(label)
            flag = xr.apply_ufunc(
                lambda block: _flags(canonical_labels(block, fill, "maps")),
                label,
                dask="parallelized",
                output_dtypes=[np.uint8],
            )
        grid = Grid.of(label)
        hectares = grid.pixel_areas()
        return cls(
            label=label,
            flag=flag,
            second=maps.get("second") if isinstance(maps, xr.Dataset) else None,
            probability=maps.get("label_probability") if isinstance(maps, xr.Dataset) else None,
            excluded=None if exclude is None else excluded_pixels(exclude, label),
            grid=grid,
            pixel_area=np.ones((1, 1)) if hectares is None else hectares,
            in_hectares=hectares is not None,
        )

    def windows(self, progress: ProgressCallback) -> Iterator[tuple[slice, slice]]:
        """Yield the windows of the map, row by row."""
        height, width = self.flag.shape
        for top in range(0, height, WINDOW):
            for left in range(0, width, WINDOW):
                yield slice(top, min(top + WINDOW, height)), slice(left, min(left + WINDOW, width))
            progress("regions", min(top + WINDOW, height), height)

    def cut(self, array: xr.DataArray, window: tuple[slice, slice]) -> NDArray[Any]:
        """Return the pixels of a window."""
        return np.asarray(array.isel({Y: window[0], X: window[1]}).values)

    def doubt(self, window: tuple[slice, slice], flag: NDArray[Any]) -> NDArray[np.float64]:
        """Return one minus the probability of the labels of a window, 1 where it is not known."""
        if self.probability is None:
            return np.ones(flag.shape)
        chance = np.nan_to_num(self.cut(self.probability, window))
        return np.where(flag == UNKNOWN_FLAG, 1.0, 1.0 - chance)

    def answer(self, asked: list[tuple[_Region, tuple[int, int]]]) -> NextLabels:
        """Return the points that were found, in the order in which they were."""
        row, column = np.array([pixel for _, pixel in asked], dtype=np.int64).T
        ones = np.ones(row.size, dtype=np.int64)
        label = np.array([int(self.label[r, c]) for r, c in zip(row, column, strict=True)])
        n_pixels = int((self.flag != NO_DATA).sum())
        points = Sample(
            id=np.cumsum(ones),
            row=row,
            column=column,
            label=label,
            reference=np.full(row.size, NO_REFERENCE),
            stratum=ones,
            stratum_pixels=ones * n_pixels,
            design=Design(CHOSEN, row.size, n_pixels, 0, map_id(self.label)),
            classes=ClassTable.from_attrs(self.label.attrs) or class_table(self.label.compute()),
            grid=self.grid,
        )
        parts = [region.part(self, pixel) for region, pixel in asked]
        areas = np.array([area for area, _ in parts])
        unit = "ha" if self.in_hectares else "pixels"
        reasons = [f"rejected {area:.3g} {unit}{words}" for area, words in parts]
        return NextLabels(points, areas, np.array(reasons, dtype=object), self.in_hectares)


@dataclass(eq=False)
class _Region:
    """Rejected pixels of one window that touch, and the points asked for in them so far."""

    window: tuple[slice, slice]
    box: tuple[slice, slice]  # around it, in the window
    number: int  # of the region in its window
    weight: float
    points: list[tuple[int, int]] = field(default_factory=list)  # in the window

    def rank(self) -> tuple[float, int, int, int]:
        """Return what orders regions: what one more point is worth, then as one reads.

        k points leave parts of weight / (k + 1): one more saves about weight / (k + 1)^2.
        """
        rows, columns = self.window
        worth = self.weight / (len(self.points) + 1) ** 2
        return -worth, rows.start, columns.start, self.number

    def mask(self, known: _Known) -> NDArray[np.bool_]:
        """Return the pixels of the region in its box."""
        numbered = _numbered(known.cut(known.flag, self.window))[0]
        return np.asarray(numbered[self.box] == self.number)

    def next_pixel(self, known: _Known) -> tuple[int, int] | None:
        """Return the pixel farthest from the border and from earlier points, if one is left."""
        inside = np.pad(self.mask(known), 1)
        top, left = (part.start for part in self.box)
        for row, column in self.points:
            inside[row - top + 1, column - left + 1] = False
        depth = ndimage.distance_transform_edt(inside)[1:-1, 1:-1]
        rows, columns = self.window
        if known.excluded is not None:
            depth[known.excluded[rows, columns][self.box]] = 0
        if not depth.any():
            return None
        row, column = divmod(int(depth.argmax()), depth.shape[1])
        self.points.append((row + top, column + left))
        return rows.start + self.points[-1][0], columns.start + self.points[-1][1]

    def part(self, known: _Known, pixel: tuple[int, int]) -> tuple[float, str]:
        """Return the area that is nearer to a point than to others, and why it is asked about."""
        mask = self.mask(known)
        inside = np.argwhere(mask) + [part.start for part in self.box]
        rows, columns = self.window
        place = self.points.index((pixel[0] - rows.start, pixel[1] - columns.start))
        near = cKDTree(self.points).query(inside)[1] == place
        areas = np.broadcast_to(known.pixel_area, known.flag.shape)[self.window][self.box][mask]
        flag, label = (
            known.cut(array, self.window)[self.box][mask][near]
            for array in (known.flag, known.label)
        )
        area = float(areas[near].sum())
        if (flag == UNKNOWN_FLAG).mean() > _MOSTLY:
            return area, ", unlike every training pixel"
        if known.second is None:
            return area, ""
        second = known.cut(known.second, self.window)[self.box][mask][near]
        choices = np.sort(np.stack([label, second]), axis=0)
        pairs, counts = np.unique(choices, axis=1, return_counts=True)
        classes = class_table(known.label)
        first, other = (classes.name_of(int(value)) for value in pairs[:, counts.argmax()])
        return area, f", between {first} and {other}"


def _flags(labels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    flags = np.where(labels == REJECTED, REJECTED_FLAG, KEPT_FLAG)
    return np.where(labels == np.iinfo(np.uint16).max, NO_DATA, flags).astype(np.uint8)


def _numbered(flag: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    numbered, count = ndimage.label((flag == REJECTED_FLAG) | (flag == UNKNOWN_FLAG), _TOGETHER)
    return numbered, int(count)


def _regions(known: _Known, window: tuple[slice, slice]) -> Iterator[_Region]:
    """Yield the rejected regions of a window that have a pixel to ask about."""
    flag = known.cut(known.flag, window)
    numbered, count = _numbered(flag)
    if not count:
        return
    weights = np.bincount(numbered.ravel(), known.doubt(window, flag).ravel(), count + 1)
    free = np.ones(count + 1, dtype=bool)
    if known.excluded is not None:
        free = np.bincount(numbered.ravel(), ~known.excluded[window].ravel(), count + 1) > 0
    for number, box in enumerate(ndimage.find_objects(numbered), start=1):
        if free[number]:
            yield _Region(window, box, number, float(weights[number]))
