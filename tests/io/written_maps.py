"""Maps to write: every special value, on grids that are hard to store."""

import math

import numpy as np
import rioxarray  # noqa: F401 - registers the .rio accessor
import xarray as xr
from affine import Affine

from hsreject import ClassTable, schema

NORTH_UP = Affine(30.1, 0.0, 500000.123456789, 0.0, -1 / 3, 5800000.987654321)
_COSINE, _SINE = math.cos(math.radians(17)), math.sin(math.radians(17))
ROTATED = Affine(30 * _COSINE, 30 * _SINE, 5e5, 30 * _SINE, -30 * _COSINE, 5.8e6)
SHEARED = Affine(27.0, 3.0, 5e5, 4.0, -27.0, 5.8e6)
# exact turns and mirrors, which leave nothing of the numbers that others look at
TURNED = {
    "a quarter": Affine(0.0, -10.0, 5e5, 10.0, 0.0, 5.8e6),
    "a quarter, mirrored": Affine(0.0, 10.0, 5e5, 10.0, 0.0, 5.8e6),
    "a half": Affine(-10.0, 0.0, 5e5, 0.0, 10.0, 5.8e6),
    "three quarters": Affine(0.0, 10.0, 5e5, -10.0, 0.0, 5.8e6),
    "mirrored": Affine(-10.0, 0.0, 5e5, 0.0, -10.0, 5.8e6),
}
CLASSES = ClassTable.from_names(["Grünland feucht", "water & <ice>"])


def placed(
    array: xr.DataArray, transform: Affine = NORTH_UP, crs: str = "EPSG:32633"
) -> xr.DataArray:
    return array.rio.write_crs(crs).rio.write_transform(transform)


def reject_map(shape=(40, 50), dtype=np.uint8) -> xr.DataArray:
    """Two classes, rejected pixels and pixels without data."""
    nodata = schema.nodata_label(dtype)
    values = np.random.default_rng(1).choice(np.array([0, 1, 2, nodata], dtype=dtype), size=shape)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name=schema.LABEL_WITH_REJECTION)
    return placed(schema.attach_classes(labels, CLASSES))


def confidence_map(shape=(40, 50)) -> xr.DataArray:
    values = np.random.default_rng(2).random(shape).astype(np.float32)
    values[3:7, :5] = np.nan
    return placed(xr.DataArray(values, dims=schema.MAP_DIMS, name="confidence"))


def probability_field(shape=(12, 17)) -> xr.DataArray:
    values = np.random.default_rng(3).dirichlet([1.0, 1.0], size=shape).transpose(2, 0, 1)
    field = xr.DataArray(
        values, dims=schema.FIELD_DIMS, coords={"category": [1, 2]}, name="probability"
    )
    return placed(schema.attach_classes(field, CLASSES))
