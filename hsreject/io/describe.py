"""What was understood of a file, in words: the answer of ``hsreject info``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import dask.array as da
import numpy as np
from dask import threaded
from dask.base import compute

from hsreject import schema
from hsreject.errors import FileError
from hsreject.files import reading
from hsreject.io.arrays.bare_arrays import stored_arrays
from hsreject.io.grid import PixelGrid, crs_name
from hsreject.io.labels import open_labels, stated_classes
from hsreject.io.lookup import LookupTable
from hsreject.io.maps import open_map
from hsreject.io.rasters.raster import raster_info, read_pixels
from hsreject.io.remote import existing_scene
from hsreject.io.scene import Kind, file_kind, open_scene
from hsreject.progress import ProgressCallback, counting_tasks, no_progress, reporting_reads
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import xarray as xr
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassCount:
    """One class of a label map and how many pixels it has."""

    value: int
    name: str
    color: str
    n_pixels: int


@dataclass(frozen=True)
class Description:
    """What was understood of a file."""

    rows: tuple[tuple[str, str], ...]  # what is known and its value, in the order people ask
    classes: tuple[ClassCount, ...] = ()  # of a label map
    guesses: tuple[str, ...] = ()  # what the file did not say and had to be decided


def describe(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    band_axis: int | None = None,
    quick: bool = False,
    progress: ProgressCallback = no_progress,
) -> Description:
    """Describe what is understood of a scene, a label map or a vector file.

    Parameters
    ----------
    path : str or path
        Any file that `open_scene` or `open_labels` opens.
    variable : str, optional
        Which array of a .mat file or layer of a vector file.
    band_axis : int, optional
        Which axis of a bare array holds the bands.
    quick : bool
        Do not read the pixels of a scene: its range and its share without data stay unknown.
    progress : callable
        Called with how much is read.

    See Also
    --------
    hsreject.open_scene : opens it.
    hsreject.open_labels : opens labels.

    Examples
    --------
    >>> from hsreject import describe
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scene.npy")
    ...     np.save(path, np.ones((4, 4, 30), dtype="uint16"))
    ...     dict(describe(path).rows)["Size"]
    '4 rows x 4 columns x 30 bands'
    """
    with reporting_reads(progress):
        file = existing_scene(path)
    with reading(file):
        kind = file_kind(file)
        if kind is Kind.VECTOR:
            from hsreject.io.vectors.vector import layer_info  # noqa: PLC0415  (slow)

            info = layer_info(file, layer=variable)
            rows = (
                ("File", file.name),
                ("Holds", f"{info.n_features} features ({info.geometry_type})"),
                ("Layer", info.layer),
                ("Reference system", crs_name(info.crs)),
                ("Attributes", ", ".join(info.attributes) or "none"),
            )
            return Description(rows)
        if _holds_labels(file, kind, variable):
            labels = open_labels(file, variable=variable)
            return _describe_labels(labels, raster=file if kind is Kind.RASTER else None)
        cube = open_scene(file, chunks="auto", variable=variable, band_axis=band_axis)
        if quick:
            return _describe_scene(cube, schema.good_bands(cube), [], [])
        with counting_tasks("reading pixels", progress):
            return _describe_scene(cube, *_content(cube))


def note_on_zeros(n_zeros: int, n_pixels: int) -> str:
    """Return what to say of pixels that are zero in all bands."""
    return (
        f"{n_zeros} of {n_pixels} pixels are zero in all bands. If they lie outside the image, say "
        "so in [scene]: nodata = 0."
    )


def _holds_labels(path: Path, kind: Kind, variable: str | None) -> bool:
    """Tell whether a file is labels rather than a scene: named classes, or few whole numbers."""
    if kind is Kind.PRODUCT:
        return False
    if kind is Kind.ARRAY:
        arrays = [array for array in stored_arrays(path) if variable in {None, array.name}]
        return bool(arrays) and all(len(array.stored_shape) == 2 for array in arrays)
    info = raster_info(path)
    if info.n_bands != 1 or stated_classes(info).names:
        return info.n_bands == 1
    if info.dtype.kind not in "iu":
        return False
    values = np.unique(read_pixels(info))
    values = values[~np.isnan(values)]
    return values.size <= 64 and bool(np.all(values >= 0))


def _content(cube: xr.DataArray) -> tuple[NDArray[np.bool_], list[tuple[str, str]], list[str]]:
    """Read a lazy scene once; return which bands are good and have data, rows and notes on it."""
    stated = schema.good_bands(cube)
    n_bands = cube.sizes[schema.BAND]

    # fmin and fmax skip NaN, and are NaN without a warning where a band has nothing else
    low, high = (
        da.reduction(cube.data, best.reduce, best.reduce, axis=(1, 2), dtype=cube.dtype)
        for best in (np.fmin, np.fmax)
    )
    # in how many good bands each pixel has data: as a histogram, which is small
    present = cube.isel({schema.BAND: stated}).notnull().sum(schema.BAND, dtype=np.int32).data
    pixels_with = da.histogram(present, bins=np.arange(n_bands + 2))[0]
    zeros = schema.pixels_of(cube, 0).sum().data
    # the function, not its name, for which dask would look for a cluster and import `distributed`
    smallest, largest, counts, n_zeros = compute(
        low, high, pixels_with, zeros, scheduler=threaded.get
    )
    good = stated & ~np.isnan(smallest)
    if not good.any():
        raise FileError(
            f"{cube.attrs.get('source', 'The scene')} has no data: every pixel of every good band "
            "is nodata or NaN."
        )
    without = 1 - int(counts[good.sum()]) / counts.sum()
    infinite = np.isinf(smallest) | np.isinf(largest)
    plain = good & ~infinite
    values = f"{smallest[plain].min():g} to {largest[plain].max():g}" if plain.any() else "infinite"
    rows = [
        ("Without data", f"{100 * without:.2f} % of the pixels"),
        ("Values", f"{values} in the good bands"),
    ]
    notes = [note_on_zeros(int(n_zeros), int(counts.sum()))] if n_zeros else []
    if infinite.any():
        notes.append(
            f"Band {_numbers(infinite)} has infinite values, which count as data: set them to NaN "
            "or to a nodata value."
        )
    return good, rows, notes


def _describe_scene(
    cube: xr.DataArray, good: NDArray[np.bool_], content: list[tuple[str, str]], notes: list[str]
) -> Description:
    bad = "none" if good.all() else f"{(~good).sum()} of {good.size} ({_numbers(~good)})"
    rows = (
        *_common(cube, "a scene"),
        ("Wavelengths", _range(cube, schema.WAVELENGTH)),
        ("Band widths", _range(cube, schema.FWHM)),
        ("Bad bands", bad),
        *([("Masks", str(cube.attrs["masks"]))] if "masks" in cube.attrs else []),
        ("Scaling", str(cube.attrs.get("scaling", "none given"))),
        *content,
    )
    return Description(rows, guesses=(*cube.attrs.get("guesses", ()), *notes))


def _describe_labels(labels: xr.DataArray, *, raster: Path | None) -> Description:
    table = schema.class_table(labels)
    guesses = list(labels.attrs.get("guesses", ()))
    if raster and table == ClassTable.plain(table.values):
        guesses.append("One band of few whole numbers: described as labels, not as a scene.")
    counts = np.bincount(labels.values.ravel(), minlength=max(table.values, default=0) + 1)
    entries = zip(table.values, table.names, table.colors, strict=True)
    classes = tuple(ClassCount(*entry, int(counts[entry[0]])) for entry in entries)
    n_labelled = sum(entry.n_pixels for entry in classes)
    pixels = [("With reference", f"{n_labelled} of {labels.size} pixels")]
    if raster and stated_classes(raster_info(raster)).names.get(0) == "rejected":
        whole = open_map(raster)
        n_missing = int((whole == schema.nodata_label(whole.dtype)).sum())
        pixels = [
            ("With a class", f"{n_labelled} of {labels.size} pixels"),
            ("Rejected", f"{labels.size - n_labelled - n_missing} pixels"),
            ("Without data", f"{n_missing} pixels"),
        ]
    rows = (*_common(labels, "labels"), ("Classes", str(len(table))), *pixels)
    return Description(rows, classes, tuple(guesses))


def _common(array: xr.DataArray, holds: str) -> list[tuple[str, str]]:
    """Return what is said of scenes and labels alike."""
    attrs, stored = array.attrs, np.dtype(array.attrs["type_in_file"])
    size = f"{array.sizes[schema.Y]} rows x {array.sizes[schema.X]} columns"
    if schema.BAND in array.sizes:
        size += f" x {array.sizes[schema.BAND]} bands"
    kind = str(stored) if stored == array.dtype else f"{stored} in the file, {array.dtype} as read"
    nodata = attrs.get("nodata_in_file", "none given")
    whole = stored.kind in "iu" and not isinstance(nodata, str)
    return [
        ("File", str(attrs["source"])),
        ("Holds", holds),
        *([("Product", str(attrs["product"]))] if "product" in attrs else []),
        ("Format", str(attrs["format"])),
        ("Size", size),
        ("Type", kind),
        *_place(array),
        ("Nodata value", str(int(nodata) if whole else nodata)),
    ]


def _place(array: xr.DataArray) -> list[tuple[str, str]]:
    table, grid = LookupTable.of(array), PixelGrid.of(array)
    if table is not None:
        return [("Reference system", f"sensor geometry; maps are written with {table.grid}")]
    if not grid.georeferenced:
        return [("Reference system", "none: no place on a map")]
    a, b, c, d, e, f = grid.transform[:6]
    turned = f", {grid.orientation}" if grid.orientation else ""
    return [
        ("Reference system", crs_name(grid.crs)),
        ("Pixel size", f"{np.hypot(a, d):.10g} x {np.hypot(b, e):.10g}{turned}"),
        ("First corner" if turned else "Upper left corner", f"{c:.12g}, {f:.12g}"),
    ]


def _range(cube: xr.DataArray, name: str) -> str:
    if name not in cube.coords:
        return "none given"
    values = cube.coords[name].values
    stated = values[~np.isnan(values)]
    steps = "" if np.all(np.diff(stated) > 0) or name != schema.WAVELENGTH else ", not in order"
    return f"{np.nanmin(values):.6g} to {np.nanmax(values):.6g} nm{steps}"


def _numbers(mask: NDArray[np.bool_]) -> str:
    """Return the numbers of the bands in a mask, runs joined: "1, 5-6"."""
    numbers = np.flatnonzero(mask) + 1
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{run[0]}" if run.size == 1 else f"{run[0]}-{run[-1]}" for run in runs)
