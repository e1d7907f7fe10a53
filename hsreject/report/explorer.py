"""The explorer: one HTML file in which a reader moves the rejected fraction of a map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.files import check_target, replacing
from hsreject.measures.choosing import Goal
from hsreject.rejection.ranking import Ranking
from hsreject.report.explorer_payload import (
    N_LEVEL_PLANES,
    MapStack,
    level_planes,
    map_stack,
    payload,
)
from hsreject.report.page import read_source, render
from hsreject.schema import (
    CUBE_DIMS,
    LEVEL_CONFIDENCE,
    MAP_DIMS,
    NO_REFERENCE,
    OPERATING_POINT,
    REJECTOR,
    as_label_map,
    check_dims,
    check_same_grid,
)
from hsreject.schema.classes import ClassTable

MOST_PIXELS = 2_000_000  # of all systems: 8 MB at most, which a mail takes and a phone opens
_MOST_CLASSES = 255  # a byte per pixel, in which 0 is no data
_MOST_PLANE_PIXELS = 20_000_000  # of all maps together, unpacked in the browser


def write_explorer(  # noqa: PLR0913 (one argument per thing that a page may show)
    maps: xr.Dataset | xr.DataTree | Ranking | Mapping[str, xr.Dataset | Ranking],
    path: str | PathLike[str],
    *,
    reference: xr.DataArray | NDArray[Any] | None = None,
    scene: xr.DataArray | None = None,
    title: str | None = None,
    fraction: float | None = None,
    rejection_cost: float | None = None,
    certified: float | None = None,
    nodata: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file in which a reader moves the rejected fraction and sees what it is worth.

    The page needs no network and no other file. It shows the map, what share of it is kept, the
    accuracy of the kept reference pixels, the curve of :func:`hsreject.rejection_curve`, user's
    and producer's accuracy of every class, and the cheapest operating point for a cost of a
    rejection that the reader sets. Accuracies and their 95 % intervals, which allow for neighbours
    that err together, are those of :func:`hsreject.evaluate`.

    Parameters
    ----------
    maps : Ranking, Dataset, the result of :func:`hsreject.run`, or mapping of names to such
        `label` (y, x) of integers from 1 and `confidence` (y, x), larger is more certain, NaN
        without data. Several systems, which the page shows side by side, are a mapping or lie along
        the dimension `rejector`, as in the result of :func:`hsreject.run`. A system whose labels
        change with the rejected fraction, such as joint rejection, has `label` and `rejected`
        (operating_point, y, x) instead; one that may answer with groups of classes has
        `level_confidence` (level, y, x) beside both. A variable `group` (y, x) says which reference
        pixels err together, as `groups` of :func:`hsreject.evaluate`. The attribute `note` is a
        sentence for the foot of the page.
    path : path
        The file to make; ``.html`` is usual.
    reference : map (y, x) of int, optional
        Classes of the pixels to measure on, 0 elsewhere; `test`, else `reference`, of the Dataset
        when not given. Without one the page works, and states no accuracy.
    scene : DataArray (band, y, x), optional
        For a false-color picture. `image`, else `false_color`, of the Dataset when not given.
    title : str, optional
        Above the map; the title of the Dataset when not given.
    fraction : float in [0, 1], optional
        Share of the map that is rejected when the page opens: that of the Dataset, or 0.1.
    rejection_cost : float in [0, 1], optional
        Open at the cheapest point for this cost of a rejection, an error being 1, instead.
    certified : float, optional
        A threshold of the first system that the page marks as certified.
    nodata : int, optional
        One more label that means no data.
    overwrite : bool
        Replace a file that is already there.

    Returns
    -------
    Path
        The file. Of more than 2 million pixels of all systems together, the map shows every n-th
        row and column and says so; the accuracy is that of all reference pixels.

    See Also
    --------
    hsreject.evaluate : the static report.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import write_explorer
    >>> import tempfile
    >>> maps = xr.Dataset({
    ...     "label": (("y", "x"), [[1, 1, 2, 2]]),
    ...     "confidence": (("y", "x"), [[0.9, 0.3, 0.8, 0.6]]),
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_explorer(maps, f"{folder}/page.html", reference=np.array([[1, 2, 2, 2]]))
    ...     "<canvas" in page.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    check_target(target, overwrite=overwrite)
    systems, shared = _named_systems(maps)
    first, *others = systems
    grid = systems[first]["label"]
    reference_maps = _references(shared, reference, grid)
    cube = shared.get("image", shared.get("false_color")) if scene is None else scene
    if cube is not None:
        cube = check_dims(cube, CUBE_DIMS, name="scene")
        check_same_grid(grid, cube, names=("the label map", "scene"))
    if "group" in shared:
        check_same_grid(grid, shared["group"], names=("the label map", "group"))
    step, spacing = _step(systems), 1
    if not reference_maps:  # of a lazy map the rest need not be in memory
        systems = {name: _thinned(one, step) for name, one in systems.items()}
        cube = None if cube is None else _thinned(cube, step)
        step, spacing = 1, step
    systems = {
        name: level_planes(one) if LEVEL_CONFIDENCE in one else one for name, one in systems.items()
    }
    grid = grid.assign_attrs(systems[first]["label"].attrs)  # with groups
    stacks = {name: map_stack(one, name=name, nodata=nodata) for name, one in systems.items()}
    for name in others:
        check_same_grid(systems[first]["label"], systems[name]["label"], names=(first, name))
    for name, stack in stacks.items():
        if reference_maps and not (reference_maps["test"].values[stack.has_data] > 0).any():
            raise InputError(
                f"None of the reference pixels has data in {name}. Check that the maps show the "
                "same place and which value means no data."
            )
    start = shared.attrs.get("fraction", 0.1) if fraction is None else fraction
    head = {
        "title": str(title or shared.attrs.get("title", "Map with rejection")),
        "share": Goal(fraction=start).value,
        "cost": None if rejection_cost is None else Goal(rejection_cost=rejection_cost).value,
        "note": str(shared.attrs.get("note", "")),
    }
    carried = head | payload(
        stacks,
        reference_maps,
        _class_table(stacks, reference_maps, grid),
        cube,
        grid,
        step=step,
        spacing=spacing,
        group=shared["group"].values if "group" in shared else None,
        certified=certified,
    )
    page = render(
        "explorer.html.jinja",
        page=carried,
        style=read_source("explorer.css"),
        script=read_source("explorer.js"),
        payload={**carried, "picture": carried["picture"] is not None},
    )
    with replacing(target, overwrite=overwrite) as work:
        work.write_text(page, encoding="utf-8")
    return target


def _named_systems(
    maps: xr.Dataset | xr.DataTree | Ranking | Mapping[str, xr.Dataset | Ranking],
) -> tuple[dict[str, xr.Dataset], xr.Dataset]:
    """Return the maps of each system by its name, and the Dataset that holds what they share."""
    maps = maps.to_dataset() if isinstance(maps, xr.DataTree | Ranking) else maps
    systems: Any = {"map": maps} if isinstance(maps, xr.Dataset) else maps
    if isinstance(systems, Mapping):
        systems = {
            name: one.to_dataset() if isinstance(one, Ranking) else one
            for name, one in systems.items()
        }
    parts = list(systems.values()) if isinstance(systems, Mapping) else []
    if not parts or not all(isinstance(one, xr.Dataset) and "label" in one for one in parts):
        raise InputError(
            "maps must be a Ranking, or a Dataset with label and confidence (y, x), or several of "
            f"them by name (got {type(maps).__name__})."
        )
    shared = next(iter(systems.values()))
    if isinstance(maps, xr.Dataset) and REJECTOR in maps.dims:
        systems = _along_rejector(maps)
    return {str(name): one for name, one in systems.items()}, shared


def _along_rejector(maps: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the maps of each rejector, the last one that has a threshold first.

    One without a threshold has no more than the point that it was asked for.
    """
    systems: dict[str, xr.Dataset] = {}
    for name in maps[REJECTOR].values:
        one = maps.sel({REJECTOR: name}, drop=True)
        if one.get("has_threshold", True):
            systems = {str(name): one, **systems}
        else:
            systems[str(name)] = one[["label", "rejected"]].expand_dims(OPERATING_POINT)
    return systems


def _references(
    shared: xr.Dataset, stated: xr.DataArray | NDArray[Any] | None, grid: xr.DataArray
) -> dict[str, xr.DataArray]:
    """Return what is known, as `reference`, and where is measured, as `test`; or nothing."""
    everywhere: Any = shared.get("reference", shared.get("test")) if stated is None else stated
    tested: Any = shared.get("test", everywhere) if stated is None else stated
    if everywhere is None:
        return {}
    maps = {}
    for name, array in (("reference", everywhere), ("test", tested)):
        maps[name] = as_label_map(array, name="reference")
        check_same_grid(grid, maps[name], names=("the label map", "reference"))
    if not (maps["test"].values != NO_REFERENCE).any():
        raise InputError(
            "reference is 0 everywhere, which means no reference. Give labels with class values "
            "from 1, or no reference: the page works without."
        )
    return maps


def _class_table(
    stacks: Mapping[str, MapStack], references: Mapping[str, xr.DataArray], grid: xr.DataArray
) -> ClassTable:
    """Return the classes that occur, with the names and colors that labels or reference have."""
    occurring = [np.unique(stack.label[:, stack.has_data]) for stack in stacks.values()]
    occurring += [np.unique(array.values) for array in references.values()]
    values = {int(value) for value in np.concatenate(occurring)} - {NO_REFERENCE}
    if len(values) > _MOST_CLASSES:
        raise InputError(
            f"The maps hold {len(values)} classes, and a page shows at most {_MOST_CLASSES}. Merge "
            "classes; or, if the labels are clusters or identifiers, give a map of classes."
        )
    tables = (ClassTable.from_attrs(array.attrs) for array in (grid, *references.values()))
    table = next(filter(None, tables), ClassTable.plain([])).completed(values)
    return table.subset([value for value in table.values if value in values])


def _step(systems: Mapping[str, xr.Dataset]) -> int:
    """Return every how many rows and columns a page shows."""
    n_planes = [
        N_LEVEL_PLANES if LEVEL_CONFIDENCE in one else one["label"].sizes.get(OPERATING_POINT, 1)
        for one in systems.values()
    ]
    n_pixels = math.prod(next(iter(systems.values())).sizes[dim] for dim in MAP_DIMS)
    return math.ceil(
        math.sqrt(n_pixels * max(len(systems) / MOST_PIXELS, sum(n_planes) / _MOST_PLANE_PIXELS))
    )


def _thinned(maps: Any, spacing: int) -> Any:
    """Return every n-th row and column of a Dataset or DataArray."""
    return maps.isel({dim: slice(None, None, spacing) for dim in MAP_DIMS})
