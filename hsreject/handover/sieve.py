"""A sieve: small regions of a label map join a neighbour, but nothing rejected becomes a class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import delayed

from hsreject.certification.frame import NODATA
from hsreject.errors import InputError
from hsreject.handover.regions import ROWS, Regions, sums
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_number
from hsreject.schema import REJECTED, as_map, attach_classes, label_dtype, nodata_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HECTARES = {"ha": 1.0, "m2": 1e-4, "km2": 100.0}
_MEASURE = re.compile(r"\s*([0-9.]+(?:e[+-]?\d+)?)\s*([a-z]+2?)?\s*", re.IGNORECASE)
_ROUNDING = 1e-9  # relative; sums of pixel areas are compared with a round number


@dataclass(frozen=True)
class Area:
    """A number of pixels, or of hectares."""

    size: float
    in_hectares: bool

    @classmethod
    def of(cls, text: str | float) -> Area:
        """Return the area that a text states, such as "0.25ha", "400 m2", "12px" or "12"."""
        match = _MEASURE.fullmatch(str(text))
        unit = (match[2] or "px").lower() if match else ""
        try:
            size = float(match[1]) if match else -1.0
        except ValueError:  # such as 1.2.3
            size = -1.0
        if size <= 0 or unit not in {"px", *_HECTARES}:
            raise InputError(
                f"An area is a number of pixels or has one of the units {', '.join(_HECTARES)}, "
                f"such as 12px or 0.25ha (got '{text}')."
            )
        in_hectares = unit in _HECTARES
        return cls(check_number("area", size * _HECTARES.get(unit, 1.0), above=0), in_hectares)

    def __str__(self) -> str:
        return f"{self.size:g} {'ha' if self.in_hectares else 'pixels'}"

    def of_regions(self, regions: Regions) -> NDArray[np.float64]:
        """Return the size of each region in this unit; hectares need a map that has a place."""
        if self.in_hectares and not regions.in_hectares:
            raise InputError(
                "The map has no reference system, so that the area of a pixel is unknown. Give "
                "the minimum area in pixels, such as 12px."
            )
        return (regions.area if self.in_hectares else regions.n_pixels).astype(np.float64)

    def exceeds(self, sizes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which sizes are smaller than this area."""
        return np.asarray(sizes < self.size * (1 - _ROUNDING))


def sieve(
    label: xr.DataArray | NDArray[Any],
    minimum_area: str | float,
    *,
    progress: ProgressCallback = no_progress,
) -> xr.DataArray:
    """Sieve small regions out of a label map: each joins its largest neighbour.

    A region is a set of 4-connected pixels of one class. In rounds, every region below the minimum
    joins the largest class region that it shares a border with, if that one is larger than itself;
    of equal ones the first in reading order counts as larger. What is joined counts as one region
    in the next round, of the class of its largest part.

    Pixels without data and rejected pixels stay what they are, and no class becomes rejected: a
    small region that has no class beside it stays, too.

    Sieve *before* you draw a sample. A sieved map is another map, and a certificate of the map
    before does not hold for it.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        Classes from 1, 0 where a pixel is rejected. A lazy map of any size is read some rows at a
        time, and the result is lazy; how it is cut into blocks changes nothing.
    minimum_area : str or float
        The smallest area that stays: pixels ("12px" or 12), or "0.25ha", "2500m2", "1km2" where the
        map says where it lies. On geographic grids areas are those on the ellipsoid.
    progress : ProgressCallback
        Called as rows are read.

    Returns
    -------
    DataArray (y, x) of unsigned int
        `schema.nodata_label` where there is no data.

    See Also
    --------
    hsreject.polygonize : turns what is left into polygons.
    hsreject.SegSALSA : smooths before labels are given.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import sieve
    >>> sieve(np.array([[1, 1, 1, 0], [1, 2, 1, 2]]), 2).values.tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    on_map = as_map(label, name="label")
    area = Area.of(minimum_area)
    regions = Regions.of(on_map, progress=progress)
    roots = joined(regions, area)
    classes = regions.classes(on_map.attrs)
    dtype = label_dtype(max(classes.values, default=0))
    painted = regions.value[roots]
    values = np.where(painted == NODATA, nodata_label(dtype), painted).astype(dtype)
    paint, strips = delayed(regions.painted, pure=True), []
    for start in range(0, regions.n_rows, ROWS):
        rows = slice(start, min(start + ROWS, regions.n_rows))
        shape = (rows.stop - rows.start, regions.width)
        strips.append(da.from_delayed(paint(values, rows), shape, dtype))
    data = da.concatenate(strips)
    sieved = on_map.copy(data=data if on_map.chunks else data.compute(scheduler="synchronous"))
    sieved = attach_classes(sieved, classes)
    sieved.attrs["_FillValue"] = nodata_label(dtype)
    sieved.attrs["comment"] = f"regions below {area} joined their largest neighbour"
    return sieved


def joined(regions: Regions, area: Area, *, across: bool = False) -> NDArray[np.intp]:
    """Return which region each one belongs to after small ones have joined their neighbours.

    Classes join classes; `across` the border of what is rejected small regions of either kind go
    on to join the largest that is left beside them.
    """
    size = area.of_regions(regions)
    has_data = regions.value != NODATA
    a_class = has_data & (regions.value != REJECTED)
    pairs = regions.borders(area.exceeds(size) & (has_data if across else a_class))
    root = np.arange(len(regions))
    root, size = _rounds(root, size, pairs[a_class[pairs].all(axis=1)], area)
    return _rounds(root, size, pairs, area)[0] if across else root


def _rounds(
    root: NDArray[np.intp], size: NDArray[np.float64], pairs: NDArray[Any], area: Area
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Let small regions join their largest neighbours until nothing changes."""
    while True:
        # From here on only roots occur in pairs, so the sizes of regions that have joined are not
        # read again. All of a round choose by the sizes before it: no join depends on another.
        pairs = root[pairs]
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
        equal = size[target] == size[source]
        larger = (size[target] > size[source]) | (equal & (target < source))
        wanting = larger & area.exceeds(size[source])
        source, target = source[wanting], target[wanting]
        if not source.size:
            return root, size
        order = np.lexsort((-target, size[target], source))
        last = np.append(np.diff(source[order]) > 0, True)  # the largest target of each source
        source, target = source[order][last], target[order][last]
        root[source] = target  # every step leads to something larger: no circles
        while not np.array_equal(further := root[root], root):
            root = further
        size = size + sums(root[source], size[source], len(root))
