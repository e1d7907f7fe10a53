"""From a cube to samples and back: functions of a spectrum mapped over the pixels with data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classify.one_thread import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

PIXELS_AT_ONCE = 4_096
"""How many pixels are worked on at a time: bounds the memory of every scan over a cube."""

SampleFunction = Callable[["NDArray[np.float64]"], "NDArray[Any]"]
"""A function of samples (n_samples, n_features) that treats each of them by itself."""

RowProgress = Callable[[float, float], None]
"""A function that is told how many rows are done, and how many there are."""


def row_slabs(height: int, width: int) -> Iterator[slice]:
    """Yield slices of whole rows that hold about `PIXELS_AT_ONCE` pixels each.

    Examples
    --------
    >>> list(row_slabs(5, 2048))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(PIXELS_AT_ONCE // max(width, 1), 1)
    for start in range(0, height, step):
        yield slice(start, min(start + step, height))


def samples_of(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the pixels (band, y, x) that have data in every band, as samples, and their mask.

    Returns
    -------
    samples : ndarray (n_samples, band)
        Row-major over the pixels of the mask.
    valid : ndarray (y, x) of bool
        Which pixels they are. Infinite values count as no data: no arithmetic survives them.
    """
    valid = np.isfinite(values).all(axis=0)
    # band by band in memory, as the cube is: a transposed copy would cost more than the products
    bands = values.reshape(len(values), -1) if valid.all() else values[:, valid]
    return bands.astype(np.float64).T, valid


def map_pixels(
    cube: xr.DataArray,
    function: SampleFunction,
    *,
    n_outputs: int,
    dtype: DTypeLike,
    progress: RowProgress | None = None,
) -> Any:
    """Return `function` of every pixel that has data, NaN elsewhere.

    Parameters
    ----------
    cube : DataArray (band, y, x)
        Eager or dask-backed.
    function : callable
        Samples (n, band) in double precision to outputs (n, n_outputs).
    n_outputs : int
        Number of outputs a sample.
    dtype : dtype
        Floating type of the result.
    progress : callable, optional
        Called with the number of rows done and of all rows, unless `cube` is lazy.

    Returns
    -------
    ndarray or dask array (n_outputs, y, x)
        Lazy when `cube` is, with its chunks along y and x.
    """
    kernel = partial(_map_block, function=function, n_outputs=n_outputs, dtype=np.dtype(dtype))
    if cube.chunks is None:
        return kernel(cube.values, progress=progress)
    whole_spectra = cube.data.rechunk({0: -1})
    return whole_spectra.map_blocks(
        kernel,
        chunks=((n_outputs,), *whole_spectra.chunks[1:]),
        dtype=dtype,
        meta=np.empty((0, 0, 0), dtype=dtype),
    )


@one_blas_thread()
def _map_block(
    values: NDArray[Any],
    *,
    function: SampleFunction,
    n_outputs: int,
    dtype: np.dtype[Any],
    progress: RowProgress | None = None,
) -> NDArray[Any]:
    mapped = np.full((n_outputs, *values.shape[1:]), np.nan, dtype=dtype)
    for slab in row_slabs(*values.shape[1:]):
        samples, valid = samples_of(values[:, slab])
        if len(samples):
            mapped[:, slab][:, valid] = np.asarray(function(samples)).T
        if progress is not None:
            progress(slab.stop, values.shape[1])
    return mapped


def feature_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the floating type that holds features of a cube of `dtype`.

    Examples
    --------
    >>> feature_dtype("uint16"), feature_dtype("float64")
    (dtype('float32'), dtype('float64'))
    """
    return np.result_type(dtype, np.float32)


def on_the_grid_of(
    cube: xr.DataArray, data: Any, *, dim: str, coords: dict[str, Any]
) -> xr.DataArray:
    """Return `data` (dim, y, x) as an array with the spatial coordinates of `cube`.

    Coordinates along the bands go (they describe other bands); so do the attributes, except the
    name of the grid mapping.
    """
    spatial = {name: coord for name, coord in cube.coords.items() if schema.BAND not in coord.dims}
    attrs = {key: value for key, value in cube.attrs.items() if key == "grid_mapping"}
    result = xr.DataArray(
        data, dims=(dim, *schema.MAP_DIMS), coords={**spatial, **coords}, attrs=attrs
    )
    if "grid_mapping" in cube.encoding:
        result.encoding["grid_mapping"] = cube.encoding["grid_mapping"]
    return result
