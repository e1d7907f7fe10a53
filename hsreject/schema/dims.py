"""The data model: dimension names, class tables, nodata and the checks at the boundary.

Nothing else in hsreject spells a dimension name or a special label value.

==================== ====================== ==================================================
object               dims                   special values
==================== ====================== ==================================================
cube                 (band, y, x)           NaN is no data (integer cubes have none)
labels (reference)   (y, x) integer         0 is no reference
probability          (category, y, x)       NaN is no data
label                (y, x) integer         :func:`nodata_label` is no data
label_with_rejection (y, x) integer         0 is rejected, :func:`nodata_label` is no data
confidence           (y, x) float           NaN is no data
rejected             (y, x) bool            False where there is no data
==================== ====================== ==================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_FRACTION = "at_fraction"
BAND = "band"
BIN = "bin"
BORDER = "border"
CANDIDATE = "candidate"
CATEGORY = "category"
CONFIDENCE_CLASS = "confidence_class"
DECISION = "decision"
LEVEL = "level"
OPERATING_POINT = "operating_point"
POLYGON = "polygon"
REFERENCE = "reference"
REFERENCE_POINT = "reference_point"
REJECTED_FRACTION = "rejected_fraction"
REJECTION_COST = "rejection_cost"
REJECTOR = "rejector"
SEED = "seed"
STATISTIC = "statistic"
SYSTEM = "system"
Y = "y"
X = "x"

CUBE_DIMS = (BAND, Y, X)
FIELD_DIMS = (CATEGORY, Y, X)
MAP_DIMS = (Y, X)
LEVEL_DIMS = (LEVEL, Y, X)

WAVELENGTH = "wavelength"
FWHM = "fwhm"
GOOD_BAND = "good_band"
SOURCE_SCENE = "source_scene"  # of a stack: the number of the scene that a band comes from
CLASS_NAME = "class_name"

LABEL_WITH_REJECTION = "label_with_rejection"
LEVEL_CONFIDENCE = "level_confidence"
"""Of a map with groups of classes: the confidence of the answer at each level of its tree."""

CALIBRATED = "calibrated"
"""Attribute of a probability that was calibrated on held-out pixels."""

DOUBTED = "doubted"
"""Coordinate (y, x) of a held-out probability: training labels that its model does not trust."""

NO_REFERENCE = 0
REJECTED = 0

LARGEST_LABEL = np.iinfo(np.uint16).max - 1  # the last one is nodata

ZERO_MEANING = "zero_meaning"
"""Attribute of a label map that says in words what 0 means in it."""
NO_REFERENCE_MEANING = "no reference"


def good_bands(cube: xr.DataArray) -> NDArray[np.bool_]:
    """Find which bands may be used: the `good_band` coordinate, or all."""
    if GOOD_BAND in cube.coords:
        return np.asarray(cube.coords[GOOD_BAND].values, dtype=bool)
    return np.ones(cube.sizes[BAND], dtype=bool)


def valid_pixels(array: xr.DataArray) -> xr.DataArray:
    """Find the mask (y, x) of the pixels of a cube, a field or a float map that have data.

    A pixel of a cube needs a finite number in every good band (no arithmetic survives an infinite
    one), a pixel of a field or a map needs numbers that are not NaN. Lazy when `array` is.
    """
    has_data = array.notnull()
    if BAND in array.dims:
        good = array.isel({BAND: np.flatnonzero(good_bands(array))})
        has_data = xr.apply_ufunc(np.isfinite, good, dask="allowed")
    stacked = [dim for dim in array.dims if dim not in MAP_DIMS]
    return has_data.all(stacked).rename("valid") if stacked else has_data.rename("valid")


def pixels_of(cube: xr.DataArray, value: float) -> xr.DataArray:
    """Find which pixels (y, x) have one value in all good bands, as those outside an image do."""
    good = cube.isel({BAND: np.flatnonzero(good_bands(cube))})
    return (good == value).all(BAND)


def without_pixels_of(cube: xr.DataArray, value: float) -> xr.DataArray:
    """Mask the pixels that have one value in all good bands: they have no data."""
    return cube.where(~pixels_of(cube, value)).assign_attrs(cube.attrs)


def total_halo(halos: Iterable[int | None]) -> int | None:
    """Add the halos of steps that follow each other; None if one is None."""
    sizes = list(halos)
    return None if None in sizes else sum(halo for halo in sizes if halo is not None)


def check_dims(array: xr.DataArray, dims: Sequence[Hashable], *, name: str) -> xr.DataArray:
    """Bring the dimensions of `array` into the order `dims`; an error names wrong ones."""
    if not isinstance(array, xr.DataArray):
        raise InputError(
            f"{name} must be an xarray.DataArray with dims {_words(dims)} "
            f"(got {type(array).__name__})."
        )
    if array.dtype.kind == "c":
        raise InputError(
            f"{name} holds complex numbers ({array.dtype}). Take their amplitude: abs."
        )
    if array.dims == tuple(dims):
        return array
    if set(array.dims) != set(dims):
        raise InputError(
            f"{name} must have the dims {_words(dims)} (got {_words(array.dims)}). "
            "Rename them with .rename(...) or drop the extra ones with .squeeze()."
        )
    return array.transpose(*dims)


def as_map(values: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Make `values` a map (y, x); plain arrays are rows by columns."""
    if isinstance(values, xr.DataArray):
        return check_dims(values, MAP_DIMS, name=name)
    if np.ndim(values) != len(MAP_DIMS):
        raise InputError(
            f"{name} must be a map (y, x), of two dimensions (got the shape {np.shape(values)})."
        )
    return xr.DataArray(values, dims=MAP_DIMS, name=name)


def as_map_or_field(values: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Make `values` a DataArray; plain arrays are maps (y, x) or fields (category, y, x)."""
    if isinstance(values, xr.DataArray):
        return values
    check_no_mask(values, name=name, remedy="Fill them: array.filled(...).")
    dims = {2: MAP_DIMS, 3: FIELD_DIMS}.get(np.ndim(values))
    if dims is None:
        raise InputError(
            f"{name} must be a map (y, x) or a field (category, y, x) "
            f"(got the shape {np.shape(values)})."
        )
    array = xr.DataArray(values, dims=dims).rename(None)  # not what dask calls the array
    return array if dims == MAP_DIMS else array.assign_coords({CATEGORY: range(1, len(array) + 1)})


def check_no_mask(values: object, *, name: str, remedy: str) -> None:
    """Raise where a NumPy array hides values behind a mask, which most of NumPy drops."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} is a masked array with masked values. {remedy}")


def plain_field(values: Any, *, name: str) -> NDArray[Any]:
    """Check that nothing of a field given as an array is masked, and return it."""
    return real_array(values, name=name, fill="np.nan")


def real_array(values: Any, *, name: str, fill: str) -> NDArray[Any]:
    """Turn what was given into a NumPy array of real numbers, or say why it is none.

    `fill` stands for values that are missing, where some are masked.
    """
    array = plain_array(values, name=name, fill=fill)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must hold real numbers (got {array.dtype}). Convert them, for example with "
            f"{name}.astype(float), or with abs for the amplitude of complex numbers."
        )
    return array


def plain_array(values: Any, *, name: str, fill: str) -> NDArray[Any]:
    """Turn what was given into a NumPy array of any type, or say why that fails."""
    remedy = f"Fill them with what means that there is none: {name}.filled({fill})."
    check_no_mask(values, name=name, remedy=remedy)
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} cannot be read as a NumPy array (got {type(values).__name__}: {error}). "
            "Convert it first; of a torch tensor, pass tensor.detach().cpu().numpy()."
        ) from error


def category_labels(field: xr.DataArray) -> NDArray[np.integer]:
    """Read the labels of the categories: their coordinate, or 1..K."""
    if CATEGORY not in field.coords:
        return np.arange(1, field.sizes[CATEGORY] + 1)
    values = field.coords[CATEGORY].values
    labels = values.tolist()
    if values.dtype.kind == "f" and all(map(float.is_integer, labels)):
        values = values.astype(np.int64)
    distinct = values.dtype.kind in "iu" and len(set(labels)) == len(labels)
    if not labels or not distinct or min(labels) < 1 or max(labels) > LARGEST_LABEL:
        shown = ", ".join(map(str, labels[:8])) + (", ..." if len(labels) > 8 else "") or "none"
        raise InputError(
            f"The coordinate '{CATEGORY}' must hold whole numbers from 1 to {LARGEST_LABEL}, all "
            f"different: the labels of the classes (got {shown}). Number the classes, for example "
            f"with .assign_coords({CATEGORY}=range(1, {len(labels) + 1}))."
        )
    return np.asarray(values)


def check_same_grid(first: xr.DataArray, second: xr.DataArray, *, names: tuple[str, str]) -> None:
    """Raise unless two maps have the same size and, where both have numbers, the same places."""
    shapes = [(array.sizes[Y], array.sizes[X]) for array in (first, second)]
    if shapes[0] != shapes[1]:
        ours, theirs = (f"{rows} rows x {columns} columns" for rows, columns in shapes)
        raise InputError(
            f"{names[0]} has {ours} but {names[1]} has {theirs}. "
            f"Crop or resample {names[1]} onto the grid of {names[0]}."
        )
    for dim in MAP_DIMS:
        places = [array.coords[dim].values for array in (first, second) if dim in array.coords]
        if len(places) < 2 or any(values.dtype.kind not in "iuf" for values in places):
            continue
        ours, theirs = (values.astype(np.float64) for values in places)
        # Coordinates of one grid differ by rounding when read from files. A hundredth of a pixel
        # is far above that, and far below any shift that would change a map.
        apart = np.abs(ours - theirs).max(initial=0)
        step = np.abs(np.diff(ours)).min(initial=np.inf)
        if np.isfinite(step) and apart > 0.01 * step:
            raise InputError(
                f"{names[0]} and {names[1]} lie on different grids: their '{dim}' coordinates "
                f"differ by up to {apart:g} (pixel size {step:g}). Resample {names[1]} onto the "
                f"grid of {names[0]}, for example with reproject_match of rioxarray."
            )


def _words(dims: Sequence[Hashable]) -> str:
    return "(" + ", ".join(str(dim) for dim in dims) + ")"
