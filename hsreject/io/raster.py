"""A map made ready for a raster file: its type on disk, its nodata, its names, its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.io.category_table import CategoryTable
from hsreject.io.georeference import Georeference, georeference

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Raster:
    """An array as a raster file holds it.

    Parameters
    ----------
    bands : NumPy or dask array, (n_bands, y, x)
        The values as they are written.
    nodata : float
        The value that means no data.
    band_names : tuple of str
        One name a band, for fields: the classes.
    categories : CategoryTable or None
        What the values mean, for label maps.
    place : Georeference
        CRS and transform.
    """

    bands: Any
    nodata: float
    band_names: tuple[str, ...]
    categories: CategoryTable | None
    place: Georeference

    @classmethod
    def from_array(cls, array: xr.DataArray) -> Raster:
        """Return a label map, a truth map, a float map (y, x) or a field (category, y, x)."""
        field = schema.CATEGORY in getattr(array, "dims", ())
        array = schema.check_dims(
            array, schema.FIELD_DIMS if field else schema.MAP_DIMS, name="the map to write"
        )
        if not array.size:
            raise InputError(f"The map to write is empty (its shape is {array.shape}).")
        place = georeference(array)
        if array.dtype.kind == "f":
            names = tuple(schema.class_table(array).names) if field else (str(array.name or ""),)
            single = array.astype(np.float32) if array.dtype == np.float16 else array
            return cls(_stack(single), np.nan, names, None, place)
        if field or array.dtype.kind not in "iub":
            raise InputError(
                f"Cannot write {array.dtype} values as a map. Label maps hold integers, "
                "confidences and probabilities floats."
            )
        truth = array.dtype.kind == "b"
        labels = _truth_map(array) if truth else array
        if ClassTable.from_attrs(labels.attrs) is None:
            labels = labels.compute()  # its classes are read off its values, so it is needed twice
        categories = _categories(labels)
        encoded = _encode(labels, categories)
        return cls(_stack(encoded), categories.nodata, (str(array.name or ""),), categories, place)


def _stack(array: xr.DataArray) -> Any:
    return array.data if array.ndim == 3 else array.data[None]


def _truth_map(array: xr.DataArray) -> xr.DataArray:
    name = str(array.name or "true")
    labels = array.astype(np.uint8).assign_attrs({schema.ZERO_MEANING: f"not {name}"})
    return schema.attach_classes(labels, ClassTable.from_names([name]))


def _categories(labels: xr.DataArray) -> CategoryTable:
    classes = schema.class_table(labels)
    largest = max(classes.values, default=0)
    if labels.dtype in (np.dtype(np.uint8), np.dtype(np.uint16)):
        dtype = max(labels.dtype, schema.label_dtype(largest), key=lambda kind: kind.itemsize)
    else:
        dtype = schema.label_dtype(largest)
    return CategoryTable(classes, schema.zero_meaning(labels), dtype)


def _encode(labels: xr.DataArray, categories: CategoryTable) -> xr.DataArray:
    """Return the labels in the type on disk; refuse values that have no name, block by block."""
    missing = labels.attrs.get("_FillValue", schema.nodata_label(labels.dtype))
    known = np.array(sorted(categories.names))  # a value that has a meaning is not missing

    def encode(block: NDArray[Any]) -> NDArray[Any]:
        named = np.isin(block, known)
        without_data = (block == missing) & ~named
        strange = block[~without_data & ~named]
        if strange.size:
            raise InputError(
                f"The map holds the value {strange.flat[0]}, which its class table does not name "
                f"(it names {', '.join(str(value) for value in known)}). "
                "Attach a complete table with hsreject.schema.attach_classes."
            )
        return np.where(without_data, categories.nodata, block).astype(categories.dtype)

    if labels.chunks is None:
        return labels.copy(data=encode(labels.values))
    return labels.copy(data=labels.data.map_blocks(encode, dtype=categories.dtype))
