"""A map without holes: the best class everywhere, and beside it how far to trust it."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr

from hsreject.errors import FileError, InputError
from hsreject.files import existing, reading
from hsreject.io.grid import PixelGrid
from hsreject.io.labels import stated_classes
from hsreject.io.lookup import on_the_map
from hsreject.io.maps import Raster
from hsreject.io.rasters.geotiff import CategoryTable
from hsreject.io.rasters.raster import raster_info, read_pixels
from hsreject.rejection.ranking import FLAGS as FLAG_CLASSES
from hsreject.rejection.ranking import GROUP_FLAG, REJECTED_FLAG, UNKNOWN_FLAG
from hsreject.schema import (
    CALIBRATED,
    CATEGORY,
    FIELD_DIMS,
    MAP_DIMS,
    NO_REFERENCE_MEANING,
    ZERO_MEANING,
    as_map,
    attach_classes,
    check_dims,
    check_label_type,
    check_same_grid,
    nodata_label,
    nodata_values,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILLED = "map_filled.tif"
"""What the file is called that lies beside a delivered map."""

PROBABILITY, PERCENT = "label_probability", "probability_percent"  # of a map, of its file
NO_DATA = 0  # beside the codes of ``hsreject.rejection.ranking.FLAGS``
FLAGS = ("no data", "kept", "rejected", "novel", "group")
"""What the values of `flag` mean."""


def filled_map(
    label: xr.DataArray | NDArray[Any],
    rejected: xr.DataArray | NDArray[Any],
    *,
    probability: xr.DataArray | None = None,
    label_probability: xr.DataArray | None = None,
    unknown: xr.DataArray | NDArray[Any] | None = None,
    group: xr.DataArray | NDArray[Any] | None = None,
    second: xr.DataArray | None = None,
) -> xr.Dataset:
    """Fill the holes of a map: every pixel has a class, and a flag says which are rejected.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The class of each pixel before rejection; `schema.nodata_label` where there is no data.
    rejected : DataArray or array of bool, dims (y, x)
        Which labels are rejected.
    probability : DataArray (category, y, x), optional
        Of the classes, or a hidden field, for second choices. Lazy arrays stay lazy.
    label_probability : DataArray (y, x), optional
        How probable the label is; by default from `probability`, if that is calibrated.
    unknown : DataArray or array of bool, dims (y, x), optional
        Pixels that are unlike all training pixels.
    group : DataArray or array of bool, dims (y, x), optional
        Pixels of which only a group of classes is clear (:class:`hsreject.HierarchicalRejector`).
    second : DataArray of int (y, x), optional
        The second choice; by default from `probability`.

    Returns
    -------
    Dataset (y, x)
        `label`; `flag` (0 no data, 1 kept, 2 rejected, 3 novel: rejected as unlike all training
        pixels, 4 kept as a group of classes); with probabilities `second`, the most probable of the
        other classes, and, where it is known, `label_probability`.

    See Also
    --------
    hsreject.next_labels : asks for labels where the map is rejected.
    hsreject.write_map : writes a map as it is, with its holes.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import filled_map
    >>> filled_map(np.array([[1, 2, 255]], np.uint8), np.array([[False, True, False]])).flag.values
    array([[1, 2, 0]], dtype=uint8)
    """
    best = as_map(label, name="label")
    check_label_type(best.dtype, name="label")
    has_data = ~best.isin(nodata_values(best))
    masks = {  # later entries win
        "group": (group, GROUP_FLAG),
        "rejected": (rejected, REJECTED_FLAG),
        "unknown": (unknown, UNKNOWN_FLAG),
    }
    flag = has_data.astype(np.uint8)
    for name, (mask, code) in masks.items():
        if mask is not None:
            on_map = as_map(mask, name=name)
            check_same_grid(best, on_map, names=("label", name))
            flag = flag.where(~on_map.astype(bool), code)
    flag = flag.where(has_data, NO_DATA).astype(np.uint8)
    maps = {"label": best, "flag": flag.assign_attrs(flag_meanings=", ".join(FLAGS))}
    if probability is not None:
        maps |= _choices(best, has_data, probability)
    if second is not None:
        maps["second"] = second
    if label_probability is not None:
        maps[PROBABILITY] = label_probability.where(has_data)
    return xr.Dataset({name: one.rename(name) for name, one in maps.items()})


def _choices(
    best: xr.DataArray, has_data: xr.DataArray, probability: xr.DataArray
) -> dict[str, xr.DataArray]:
    """Return the second choice and, where it is calibrated, the probability of the label."""
    field = check_dims(probability, FIELD_DIMS, name="probability")
    if field.sizes[CATEGORY] < 2:
        raise InputError("A second choice needs probabilities of at least two classes.")
    values = field[CATEGORY].values

    def of_label(label: NDArray[Any], p: NDArray[Any]) -> NDArray[Any]:
        chance = np.where(label[..., None] == values, p, 0).max(axis=-1)
        return np.asarray(chance, dtype=np.float32)

    def per_pixel(function: Any, dtype: Any) -> xr.DataArray:
        choice: xr.DataArray = xr.apply_ufunc(
            function,
            best.variable,
            field.variable,
            input_core_dims=[[], [CATEGORY]],
            dask="parallelized",
            output_dtypes=[dtype],
            dask_gufunc_kwargs={"allow_rechunk": True},
        )
        return best.copy(data=choice.transpose(*MAP_DIMS).data)

    maps = {"second": per_pixel(partial(second_choice, values=values), best.dtype)}
    if field.attrs.get(CALIBRATED):
        chance = per_pixel(of_label, np.float32).where(has_data)
        maps[PROBABILITY] = chance.drop_attrs(deep=False)
    return maps


def second_choice(
    label: NDArray[Any], probability: NDArray[Any], values: NDArray[Any]
) -> NDArray[Any]:
    """Return the most probable class beside the label; `probability` is (..., category).

    Where the label is that of no data, so is the second choice.
    """
    others = np.where((label[..., None] == values) | np.isnan(probability), -1.0, probability)
    second = values[others.argmax(axis=-1)]
    return np.where(label == nodata_label(label.dtype), label, second).astype(label.dtype)


def filled_raster(maps: xr.Dataset) -> Raster:
    """Return a filled map as a file of whole numbers holds it, one band for each part of it.

    The probability is in percent; its last value, like that of the classes, is no data. A map in
    the geometry of a sensor is brought onto the ground, as :func:`hsreject.write_map` does. QGIS
    draws the classes; styles of the other bands lie beside the file, as ``map_filled_flag.qml``.
    """
    flag = maps["flag"].assign_attrs(_FillValue=NO_DATA)
    maps = xr.Dataset({name: on_the_map(one) for name, one in {**maps, "flag": flag}.items()})
    label = maps["label"]
    categories = CategoryTable.of(label.assign_attrs({ZERO_MEANING: NO_REFERENCE_MEANING}))
    flags = CategoryTable(FLAG_CLASSES, NO_REFERENCE_MEANING, categories.dtype)
    bands = {"label": categories.encode(label), "flag": maps["flag"]}
    styles: dict[str, CategoryTable | tuple[float, float]] = {"flag": flags}
    if "second" in maps:
        bands["second"], styles["second"] = categories.encode(maps["second"]), categories
    if PROBABILITY in maps:
        percent = (100 * maps[PROBABILITY]).round().fillna(categories.nodata)
        bands[PERCENT], styles[PERCENT] = percent, (0, 100)
    stack = [band.data.astype(categories.dtype) for band in bands.values()]
    values = (da if any(hasattr(band, "dask") for band in stack) else np).stack(stack)
    tags = {"flag": ", ".join(f"{value} {meaning}" for value, meaning in enumerate(FLAGS))}
    names, nodata = tuple(bands), categories.nodata
    return Raster(values, nodata, names, categories, PixelGrid.of(label), tags, styles)


def open_filled_map(path: str | PathLike[str], *, chunks: Any = None) -> xr.Dataset:
    """Open a filled map that was written as :func:`filled_raster` has it."""
    source = existing(path)
    with reading(source):
        info = raster_info(source)
        names = [*info.names]
        if names[:2] != ["label", "flag"]:
            raise FileError(
                f"{path} is not a filled map (its bands are {', '.join(map(str, names))}). Give "
                "the map_filled.tif that 'hsreject run' or 'hsreject map' has written."
            )
        bands = dict(zip(names, read_pixels(info, chunks=chunks), strict=True))
        stated = stated_classes(info)
        table = stated.table(stated.names.keys() - {0})
    maps = {}
    for name, band in bands.items():
        values = xr.DataArray(band, dims=MAP_DIMS)
        if name == PERCENT:
            maps[PROBABILITY] = (values / 100).astype(np.float32)
        elif name == "flag":
            maps[name] = values.fillna(NO_DATA).astype(info.dtype)
        else:
            whole = values.fillna(nodata_label(info.dtype)).astype(info.dtype)
            maps[name] = attach_classes(whole, table)
    return xr.Dataset({name: info.grid.attach(one.rename(name)) for name, one in maps.items()})
