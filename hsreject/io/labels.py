"""Reference labels: rasters, arrays and vector features become one integer map."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import xarray as xr
from affine import Affine
from rasterio.enums import Resampling
from rasterio.warp import reproject

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.files import reading
from hsreject.io.arrays.bare_arrays import choose_array, stored_arrays
from hsreject.io.arrays.stored_pixels import check_claim
from hsreject.io.grid import PixelGrid
from hsreject.io.lookup import LookupTable
from hsreject.io.rasters.raster import (
    RasterInfo,
    raster_info,
    raster_pixels,
    read_pixels,
    virtual_raster,
)
from hsreject.io.remote import existing_scene
from hsreject.io.scene import Kind, file_kind
from hsreject.registry import check_choice
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray

# Names of the value 0 that say what it means here: no reference.
_NOT_A_CLASS = {
    "unclassified", "unlabeled", "unlabelled", "background", "nodata", "none", "noreference",
    "undefined", "masked", "void", "na", "unknown", "rejected",
}  # fmt: skip
_OFTEN_NODATA = {255, 32767, 65535, -1, -99, -128, -999, -9999, -32768}
_MOST_USUAL = 127  # classes beyond are numerous enough to reach 255 by themselves
_BAND = "VRTRasterBand[1]"  # where a virtual raster describes the first band
# Usage codes of the columns of GDAL's raster attribute table, and titles of those without one.
_VALUE_COLUMN = ("5", {"value", "values", "class_value"})
_NAME_COLUMN = ("2", {"class_name", "classname", "class", "name", "names", "category", "label"})


def open_labels(
    path: str | os.PathLike[str],
    *,
    like: xr.DataArray | None = None,
    align: Literal["exact", "nearest"] = "exact",
    attribute: str | None = None,
    names: Mapping[int, str] | Sequence[str] | None = None,
    variable: str | None = None,
    nodata: int | None = None,
) -> xr.DataArray:
    """Open reference labels as a map of integers, 0 where there is no reference.

    Parameters
    ----------
    path : str or path
        A GeoTIFF, an ENVI classification (the data or its header), a .mat or .npy array, polygons
        and points (GeoPackage, Shapefile, GeoJSON), or a CSV file of points with the columns
        longitude and latitude (lon, lat), or x and y in the reference system of the scene.
    like : DataArray, optional
        The scene (or any map on its grid) that the labels belong to. Vector features need it. For a
        scene in sensor geometry, labels with a place are brought there by its lookup table.
    align : {"exact", "nearest"}
        Whether labels on another grid are refused, or brought onto it by nearest neighbour.
    attribute : str, optional
        Which attribute of vector features holds the class: whole numbers, or names.
    names : mapping or sequence of str, optional
        Names of the values, or of the values 1, 2, 3, ...; they replace those of the file.
    variable : str, optional
        Which array of a .mat file or layer of a vector file, if it has several.
    nodata : int, optional
        One more value that means "no reference", besides 0 and what the file says. A value such as
        255 or -9999 far from the others is asked about: is it that, or a class with a name?

    Returns
    -------
    DataArray of uint8 or uint16, dims (y, x)
        With the class table in its attributes (``hsreject.schema.class_table``). What had to be
        guessed is in ``attrs["guesses"]``, a list of sentences. Labels of a vector file have a
        coordinate `polygon` (y, x), the number of each pixel's polygon or point, 0 for none.

    See Also
    --------
    hsreject.open_scene : the scene they belong to.
    hsreject.sample_polygons : splits digitised labels.
    hsreject.describe : looks before opening.

    Examples
    --------
    >>> from hsreject import open_labels, schema
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.npy")
    ...     np.save(path, np.array([[0, 1], [2, 2]]))
    ...     labels = open_labels(path, names=["soil", "water"])
    >>> schema.class_table(labels).names
    ('soil', 'water')
    """
    check_choice("align", align, ("exact", "nearest"))
    file = existing_scene(path)
    named = dict(names) if isinstance(names, Mapping) else dict(enumerate(names or (), start=1))
    lookup = None if like is None else LookupTable.of(like)
    target = None if like is None else PixelGrid.of(like) if lookup is None else lookup.grid
    with reading(file):
        kind = file_kind(file)
        if kind is Kind.VECTOR:
            stored = _read_features(file, target, attribute, variable, named)
        elif kind is Kind.ARRAY:
            stored = _read_array(file, variable)
        else:
            stored = _read_raster(file, target)
        if nodata is None and kind is not Kind.VECTOR:
            _ask_about_odd_values(stored, {**stored.classes.names, **named}, file)
        values, grid = stored.values, stored.grid
        values = schema.canonical_labels(values, nodata=[nodata], name=str(file), error=FileError)
        values = schema.reference_values(values, fill=schema.nodata_label(values.dtype))
        notes = [*stored.notes]
        if lookup is not None and not grid.georeferenced:  # rows and columns are the sensor's
            lookup, target = None, PixelGrid.of(like)  # type: ignore[arg-type]
        if target is not None:
            whole = stored.whole or grid
            values, more = _on_grid(values, grid, target, how=align, path=file, whole=whole)
            notes += more
            grid = target if target.georeferenced else grid
    polygons = stored.polygons
    if lookup is not None:
        values = lookup.to_sensor(values)
        polygons = None if polygons is None else lookup.to_sensor(polygons)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name="labels")
    if polygons is not None:
        values[polygons == 0] = schema.NO_REFERENCE  # pixels of the sensor that two polygons share
        polygons[values == schema.NO_REFERENCE] = 0
        labels = labels.assign_coords({schema.POLYGON: (schema.MAP_DIMS, polygons)})
    table, more = _class_table(values, stored.classes, named, path=file)
    notes += more
    labels = schema.attach_classes(labels, table)
    labels.attrs |= {"source": file.name, **stored.attrs, **stored.classes.groups}
    if notes:
        labels.attrs["guesses"] = notes
    return grid.attach(labels) if lookup is None else lookup.attach(labels)


@dataclass(frozen=True)
class StatedClasses:
    """What a file says about its classes: name and colour (``#rrggbb``) by value, or nothing."""

    names: dict[int, str] = field(default_factory=dict)
    colors: dict[int, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)  # the attribute with them, if any

    def table(self, values: set[int]) -> ClassTable:
        """Return the table of `values`, plain names and colours where the file states none."""
        plain = ClassTable.plain(sorted(values))
        named = {value: name for value, name in self.names.items() if name.strip()}
        texts = [named.get(v, n) for v, n in zip(plain.values, plain.names, strict=True)]
        colors = [self.colors.get(v, c) for v, c in zip(plain.values, plain.colors, strict=True)]
        return ClassTable(plain.values, tuple(texts), tuple(colors))


class _StoredLabels(NamedTuple):
    """Labels as they are in the file, before they are checked."""

    values: NDArray[Any]
    grid: PixelGrid
    attrs: dict[str, Any]
    classes: StatedClasses
    notes: Sequence[str]
    polygons: NDArray[np.int32] | None = None  # of features: the number of each pixel's, 0 for none
    whole: PixelGrid | None = None  # of the file, where only the part around the scene was read


def _read_raster(path: Path, target: PixelGrid | None) -> _StoredLabels:
    """Return the labels in a raster: of one that is larger than the scene, the part around it."""
    info = raster_info(path)
    if info.n_bands != 1:
        raise FileError(
            f"{path} has {info.n_bands} bands, but labels have one. "
            "Open a scene with open_scene, or extract the band that holds the labels."
        )
    stated = stated_classes(info, nodata=info.nodata)
    attrs: dict[str, Any] = {"format": info.driver, "type_in_file": str(info.dtype)}
    if info.nodata is not None:
        attrs["nodata_in_file"] = info.nodata
    grid = info.grid
    if target is None or not (target.georeferenced and grid.georeferenced) or grid.fits(target):
        return _StoredLabels(read_pixels(info)[0], grid, attrs, stated, info.notes)
    rows, columns = grid.window_around(target)
    if rows.start >= rows.stop or columns.start >= columns.stop:
        raise InputError(
            f"The labels {path} do not overlap the scene: the labels have {grid}; the scene has "
            f"{target}."
        )
    part = grid.window(rows, columns)
    check_claim(path, part.height * part.width * max(info.dtype.itemsize, 4), info.length)
    values = raster_pixels(info)[0, rows, columns]
    return _StoredLabels(values, part, attrs, stated, info.notes, whole=grid)


def _read_array(path: Path, variable: str | None) -> _StoredLabels:
    arrays = stored_arrays(path)
    array = choose_array(arrays, path=path, n_axes=2, what="labels", variable=variable)
    only = f"The labels are '{array.name}', the only array that could be."
    notes = [only] if variable is None and len(arrays) > 1 else []
    height, width = array.stored_shape
    grid = PixelGrid(height, width, Affine.identity())
    attrs = {"format": array.format, "type_in_file": str(array.dtype)}
    return _StoredLabels(array.whole(), grid, attrs, StatedClasses(), notes)


def _read_features(
    path: Path,
    grid: PixelGrid | None,
    attribute: str | None,
    layer: str | None,
    names: dict[int, str],
) -> _StoredLabels:
    from hsreject.io.vectors.vector import burn, number_classes, read_features  # noqa: PLC0415  (slow)

    if grid is None:
        raise InputError(
            f"{path} holds polygons or points, which are burnt onto the grid of a scene. "
            "Pass like=scene, the scene that they belong to."
        )
    features = read_features(path, attribute=attribute, layer=layer)
    numbers, named, notes = number_classes(features.classes, names, path=path)
    burnt, polygons, more = burn(features, numbers, grid, path=path)
    notes = (*features.notes, *notes, *more)
    attrs = {"format": "vector", "type_in_file": str(burnt.dtype)}
    return _StoredLabels(burnt, grid, attrs, StatedClasses(named), notes, polygons)


def _ask_about_odd_values(stored: _StoredLabels, names: Mapping[int, str], path: Path) -> None:
    """Refuse a value that stands far from the others, as nodata does, unless it has a name."""
    values, counts = np.unique(stored.values, return_counts=True)
    n_pixels = dict(zip(values.tolist(), counts.tolist(), strict=True))
    n_negative = sum(value < 0 for value in n_pixels)
    if stored.attrs["type_in_file"] == "int8" and n_negative > 1:
        raise FileError(
            f"{path}: its labels are stored as int8, and {n_negative} of the values are negative: "
            "classes above 127 have wrapped around. Store them as uint8 or uint16."
        )
    usual = [value for value in n_pixels if value not in _OFTEN_NODATA and value > 0]
    odd = [v for v in n_pixels if v in _OFTEN_NODATA and v not in names]
    if odd and usual and max(usual) <= _MOST_USUAL:
        value, size = int(odd[0]), n_pixels[odd[0]]
        is_class = f" If it is a class, name the classes, also names={{{value}: 'NAME'}}."
        raise FileError(
            f"{path}: does the value {value} of {size} pixels mean no reference? The other values "
            f"end at {int(max(usual))}. Pass nodata={value} if it does."
            + (is_class if 0 < value <= schema.LARGEST_LABEL else "")
        )


# Onto the grid of a scene.


def _on_grid(
    values: NDArray[Any],
    grid: PixelGrid,
    target: PixelGrid,
    *,
    how: str,
    path: Path,
    whole: PixelGrid,
) -> tuple[NDArray[Any], list[str]]:
    """Return labels on the grid of a scene, no reference outside of them, and notes."""
    notes = []
    if target.georeferenced and not grid.georeferenced:
        notes.append(f"{path.name} has no place on a map: its pixels are those of the scene.")
    elif grid.crs is None and target.crs is not None:
        notes.append(f"{path.name} has no reference system: taken for that of the scene.")
    if grid.fits(target):
        return values, notes
    both = f"the labels have {whole}; the scene has {target}"
    if not (grid.georeferenced and target.georeferenced):
        raise InputError(
            f"The labels {path} do not fit the scene, and cannot be aligned unless both have a "
            f"place on a map: {both}. Crop the labels to the rows and columns of the scene."
        )
    aligned = np.full((target.height, target.width), schema.NO_REFERENCE, dtype=values.dtype)
    crs = grid.crs or target.crs
    reproject(
        values,
        aligned,
        src_transform=grid.transform,
        src_crs=crs,
        dst_transform=target.transform,
        dst_crs=target.crs or crs,
        resampling=Resampling.nearest,
        init_dest_nodata=False,
    )
    if values.any() and not aligned.any():
        raise InputError(
            f"The labels {path} do not overlap the scene where they have a class: {both}."
        )
    if how == "exact":  # the advice would not help labels of another place
        raise InputError(
            f"The labels {path} lie on another grid than the scene: {both}. Pass align='nearest' "
            "to bring them onto the grid of the scene."
        )
    return aligned, notes


# Names and colours of the classes.


def _class_table(
    values: NDArray[Any], stated: StatedClasses, names: Mapping[int, str], *, path: Path
) -> tuple[ClassTable, list[str]]:
    """Return the table of the classes that are named, or of those that occur, and notes."""
    there = [int(value) for value in np.unique(values) if value != schema.NO_REFERENCE]
    named = dict(names) or dict(stated.names)
    unnamed = [value for value in there if value not in named]
    if named and unnamed:
        raise FileError(
            f"{path} has label values without a name: {_listed(unnamed)} "
            f"(named are {_listed(sorted(named))}). Name every value, in the file or by "
            f"names={{{unnamed[0]}: 'NAME'}} and so on."
        )
    notes = []
    zero = named.pop(schema.NO_REFERENCE, "")
    if zero and "".join(filter(str.isalpha, zero.lower())) not in _NOT_A_CLASS:
        notes.append(f"Value 0 is named '{zero}' but was read as no reference.")
    if not named and there:
        notes.append("The classes have no names: they are called by their value.")
    texts = list(named.values())
    if len(set(texts)) < len(texts):
        notes.append("Some classes have the same name: their value was added to it.")
        named = {v: f"{n} ({v})" if texts.count(n) > 1 else n for v, n in named.items()}
    return StatedClasses(named, stated.colors).table(set(named or there)), notes


def _listed(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... {values[-1]}"


def stated_classes(info: RasterInfo, *, nodata: float | None = None) -> StatedClasses:
    """Return the class names and colours of a raster's first band; `nodata` is not a class.

    GDAL has them in many forms (ENVI `class names`, GeoTIFF category names, attribute tables), but
    writes all of them in the same words into a virtual raster: that is what is read here.
    """
    virtual = virtual_raster(info.name, info.driver, online=info.online)
    root = ET.fromstring(virtual)  # noqa: S314  by GDAL
    listed = root.iterfind(f"{_BAND}/CategoryNames/Category")
    names = dict(enumerate(element.text or "" for element in listed)) or _attribute_table(root)
    colors = {
        value: "#" + "".join(f"{int(entry.get(c, 0)) & 255:02x}" for c in ("c1", "c2", "c3"))
        for value, entry in enumerate(root.iterfind(f"{_BAND}/ColorTable/Entry"))
    }
    own = _own_tags(info.tags[0])
    texts = {value: name.strip() for value, name in (names or own.names).items()}
    named = {value: text for value, text in texts.items() if text and value != nodata}
    return StatedClasses(named, colors or own.colors, own.groups)


def _own_tags(tags: Mapping[str, str]) -> StatedClasses:
    """Return what hsreject keeps inside a GeoTIFF, for when its side file got lost."""
    with suppress(KeyError, TypeError, ValueError):  # not tags of ours
        values = [int(value) for value in tags["flag_values"].split()]
        texts = [str(name) for name in json.loads(tags["class_names"])]
        table = ClassTable.from_names(texts, values=values, colors=tags["flag_colors"].split())
        names = {schema.NO_REFERENCE: tags.get(schema.ZERO_MEANING, "")}
        names |= dict(zip(table.values, table.names, strict=True))
        groups = {GROUPS_ATTRIBUTE: tags[GROUPS_ATTRIBUTE]} if GROUPS_ATTRIBUTE in tags else {}
        return StatedClasses(names, dict(zip(table.values, table.colors, strict=True)), groups)
    return StatedClasses()


def _attribute_table(root: ET.Element) -> dict[int, str]:
    """Return the names in GDAL's raster attribute table, by usage or by title of its columns."""
    columns = [
        (column.findtext("Usage"), column.findtext("Name", "").lower())
        for column in root.iterfind(f"{_BAND}/GDALRasterAttributeTable/FieldDefn")
    ]
    value_at, name_at = (
        next((n for n, (use, title) in enumerate(columns) if use == usage or title in titles), None)
        for usage, titles in (_VALUE_COLUMN, _NAME_COLUMN)
    )
    names: dict[int, str] = {}
    for row in root.iterfind(f"{_BAND}/GDALRasterAttributeTable/Row"):
        cells = [(cell.text or "").strip() for cell in row.iterfind("F")]
        value = row.get("index", "0") if value_at is None else cells[value_at]
        with suppress(ValueError):  # not a number
            if name_at is not None and float(value).is_integer():
                names[int(float(value))] = cells[name_at]
    return names
