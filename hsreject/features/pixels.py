"""Pixels of a cube as samples, and samples as pixels again; their moments; the labelled ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.array.overlap import overlap
from dask.base import compute
from dask.delayed import delayed

from hsreject import schema
from hsreject.errors import EmptyClassWarning, InputError
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

# How many pixels are worked on at a time: bounds the memory of every scan over a cube.
PIXELS_AT_ONCE = 4_096

LARGEST = np.float32(1e18)
"""What a pixel may hold: spectra are squared and added up in single precision, up to 3e38."""

SampleFunction = Callable[["NDArray[Any]"], "NDArray[Any]"]
"""A function of samples (n_samples, n_features) that treats each of them by itself."""

RowProgress = Callable[[float, float], None]
"""A function called with how many rows are done, and how many there are."""


def feature_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the floating type that holds features of a cube of `dtype`: float32, or wider."""
    return np.result_type(dtype, np.float32)


def samples_of(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the pixels (band, y, x) with data in every band as samples, and their mask (y, x).

    Infinite values count as no data: no arithmetic survives them. The samples are a copy.
    """
    valid = has_numbers(values, axis=0)
    # band by band in memory, as the cube is: a transposed copy would cost more than the products
    bands = values.reshape(len(values), -1) if valid.all() else values[:, valid]
    return bands.astype(feature_dtype(values.dtype)).T, valid


def has_numbers(values: NDArray[Any], *, axis: int) -> NDArray[np.bool_]:
    """Return which pixels hold finite numbers along an axis; refuse numbers too large for data."""
    if values.dtype.kind != "f":
        return np.ones(np.delete(values.shape, axis), dtype=bool)
    usable = (np.abs(values) <= LARGEST).all(axis=axis)
    if not usable.all():
        too_large = values[np.isfinite(values) & ~(np.abs(values) <= LARGEST)]
        if too_large.size:
            raise InputError(
                f"The scene holds numbers like {too_large.flat[0]:g}, too large for a spectrum (at "
                f"most {LARGEST:g}). If they mark pixels without data, make them NaN, or state "
                "them as the nodata value of the file; if not, divide all by a unit."
            )
    return np.asarray(usable)


def map_pixels(
    cube: xr.DataArray,
    function: SampleFunction,
    *,
    n_outputs: int,
    dtype: DTypeLike,
    progress: RowProgress | None = None,
    at_once: int = PIXELS_AT_ONCE,
) -> Any:
    """Return `function` of every pixel that has data, (n_outputs, y, x), NaN elsewhere.

    `function` gets samples (n, band) in the precision of :func:`feature_dtype` and returns
    (n, n_outputs). The result is lazy when `cube` is, with its chunks along y and x; `progress` is
    called only when it is not. Whole rows of about `at_once` pixels are handed in.
    """
    kernel = partial(
        _map_block, function=function, n_outputs=n_outputs, dtype=np.dtype(dtype), at_once=at_once
    )
    if cube.chunks is None:
        with one_blas_thread():
            return kernel(cube.values, progress=progress)
    whole_spectra = cube.data.rechunk({0: -1})
    return whole_spectra.map_blocks(
        kernel,
        chunks=((n_outputs,), *whole_spectra.chunks[1:]),
        dtype=dtype,
        meta=np.empty((0, 0, 0), dtype=dtype),
    )


def _map_block(
    values: NDArray[Any],
    *,
    function: SampleFunction,
    n_outputs: int,
    dtype: np.dtype[Any],
    at_once: int,
    progress: RowProgress | None = None,
) -> NDArray[Any]:
    mapped = np.full((n_outputs, *values.shape[1:]), np.nan, dtype=dtype)
    for slab in _row_slabs(*values.shape[1:], at_once=at_once):
        samples, valid = samples_of(values[:, slab])
        if len(samples):
            mapped[:, slab][:, valid] = np.asarray(function(samples)).T
        if progress is not None:
            progress(slab.stop, values.shape[1])
    return mapped


def _row_slabs(height: int, width: int, *, at_once: int = PIXELS_AT_ONCE) -> Iterator[slice]:
    """Yield slices of whole rows that hold about `at_once` pixels each."""
    step = max(at_once // max(width, 1), 1)
    for start in range(0, height, step):
        yield slice(start, min(start + step, height))


def on_the_grid_of(
    cube: xr.DataArray, data: Any, *, dim: str = schema.BAND, coords: dict[str, Any] | None = None
) -> xr.DataArray:
    """Return `data` (dim, y, x) on the grid of `cube`; by default its bands are those of `cube`."""
    spatial = {name: coord for name, coord in cube.coords.items() if schema.BAND not in coord.dims}
    if coords is None:
        coords = {str(name): c for name, c in cube.coords.items() if name not in spatial}
    attrs = {key: value for key, value in cube.attrs.items() if key == "grid_mapping"}
    result = xr.DataArray(
        data, dims=(dim, *schema.MAP_DIMS), coords={**spatial, **coords}, attrs=attrs
    )
    if "grid_mapping" in cube.encoding:
        result.encoding["grid_mapping"] = cube.encoding["grid_mapping"]
    return result


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter of samples, which can be merged without the samples."""

    count: int
    mean: NDArray[np.float64]  # (feature,)
    scatter: NDArray[np.float64]  # (feature, feature): sum_i (x_i - mean)(x_i - mean)'

    @classmethod
    def of(cls, samples: NDArray[Any]) -> Moments:
        """Return the moments of samples (n_samples, n_features), in double precision."""
        count, n_features = samples.shape
        if not count:
            return cls(0, np.zeros(n_features), np.zeros((n_features, n_features)))
        mean = samples.mean(axis=0, dtype=np.float64)
        centered = samples - mean  # before they are squared, which would cost digits
        return cls(count, mean, centered.T @ centered)

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples together (Chan, Golub and LeVeque 1983)."""
        count = self.count + other.count
        if not count:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        between = np.outer(step, step) * (self.count * other.count / count)
        return Moments(count, mean, self.scatter + other.scatter + between)

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of each feature, divisor n - 1."""
        return np.diagonal(self.scatter) / max(self.count - 1, 1)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """The covariance, divisor n - 1."""
        return self.scatter / max(self.count - 1, 1)


def cube_moments(
    cube: xr.DataArray, *offsets: tuple[int, int], needed_by: str | None = None
) -> tuple[Moments, ...]:
    """Return the moments of the pixels that have data and, per offset, of pixel minus neighbor.

    All are gathered in one pass, chunk by chunk. An offset (rows, columns) says where the neighbor
    lies: rows and columns 0 or 1. Pairs across the borders of chunks count; pairs in which
    one pixel lacks data do not. `needed_by` names what cannot do with fewer than two pixels.
    """
    all_offsets = [(0, 0), *offsets]
    with one_blas_thread():
        if cube.chunks is None:
            totals = tuple(_block_moments(cube.values, offset) for offset in all_offsets)
        else:
            whole_spectra = cube.data.rechunk({0: -1})
            # one computation, so that every chunk is read only once
            totals = compute(*(_lazy_moments(whole_spectra, offset) for offset in all_offsets))
    if needed_by and totals[0].count < 2:
        raise InputError(
            f"{needed_by} needs at least two pixels with data in every good band (found "
            f"{totals[0].count}). Mark bands without data as bad with the coordinate 'good_band'."
        )
    return totals


def _lazy_moments(data: Any, offset: tuple[int, int]) -> Any:
    rows, columns = offset
    if any(offset):
        data = overlap(data, depth={0: 0, 1: (0, rows), 2: (0, columns)}, boundary="none")
    parts = [delayed(_block_moments)(block, offset) for block in data.to_delayed().ravel()]
    while len(parts) > 1:  # a fixed tree: deterministic, and few parts are alive at a time
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [delayed(Moments.merge)(first, second) for first, second in pairs] + odd
    return parts[0]


def _block_moments(values: NDArray[Any], offset: tuple[int, int]) -> Moments:
    n_bands, height, width = values.shape
    rows, columns = offset
    total = Moments.of(np.empty((0, n_bands)))
    for slab in _row_slabs(max(height - rows, 0), width):
        pixels = values[:, slab, : width - columns].astype(np.float64)
        if any(offset):
            pixels -= values[:, slab.start + rows : slab.stop + rows, columns:]
        samples, _ = samples_of(pixels)
        total = total.merge(Moments.of(samples))
    return total


def labelled_samples(
    features: xr.DataArray, labels: xr.DataArray
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return features (sample, band) and labels (sample,) of the labelled pixels that have data.

    The samples are finite, in double precision and in row order; the labels have at least two
    different values. Of a lazy cube only the chunks with labelled pixels are computed.
    """
    return located_samples(features, labels)[:2]


def samples_at(
    features: xr.DataArray, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the features (pixel, band) of some pixels; of a lazy cube only their chunks."""
    data: Any = features.data
    if features.chunks is None:
        picked = data[:, rows, columns].T
    else:
        picked = data.vindex[:, rows, columns].compute()  # the dimension of the points is first
    return np.ascontiguousarray(picked, dtype=np.float64)


def located_samples(
    features: xr.DataArray, labels: xr.DataArray
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.intp]]:
    """Return the samples of :func:`labelled_samples`, and where they lie in the flattened image."""
    reference = schema.reference_labels(labels)
    rows, columns = np.nonzero(reference != schema.NO_REFERENCE)
    if not rows.size:
        raise InputError(
            "labels hold no training pixel: all are 0 (no reference). "
            "Label some pixels of at least two classes."
        )
    samples = samples_at(features, rows, columns)
    has_data = has_numbers(samples, axis=1)
    if not has_data.any():
        raise InputError(
            f"None of the {rows.size} labelled pixels has data: the scene is NaN at all of them. "
            "Check that labels and scene show the same place, and that bands without any data are "
            "marked bad by the coordinate 'good_band'."
        )
    values = reference[rows[has_data], columns[has_data]].astype(np.int64)
    if (values == values[0]).all():
        raise InputError(
            f"The labelled pixels with data hold a single class ({values[0]}); a classifier needs "
            "at least two. Label pixels of another class."
        )
    lost = np.setdiff1d(reference[rows, columns], values)
    if lost.size:
        table = schema.class_table(labels)
        names = ", ".join(f"{value} ({table.name_of(value)})" for value in lost)
        warnings.warn(
            f"No training pixel of class {names} has data: no pixel is mapped as such.",
            EmptyClassWarning,
            stacklevel=1,  # warned once, however many callers ask for samples
        )
    positions = np.ravel_multi_index((rows[has_data], columns[has_data]), reference.shape)
    return samples[has_data], values, positions
