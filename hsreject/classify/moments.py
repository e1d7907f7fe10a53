"""Mean and covariance of the pixels of a cube, gathered block by block in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.array.overlap import overlap
from dask.base import compute
from dask.delayed import delayed

from hsreject.classify.one_thread import one_blas_thread
from hsreject.classify.pixels import row_slabs, samples_of

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter of samples: what can be merged without seeing them again.

    Parameters
    ----------
    count : int
        Number of samples n.
    mean : ndarray (n_features,)
        Their mean m.
    scatter : ndarray (n_features, n_features)
        sum_i (x_i - m)(x_i - m)'.
    """

    count: int
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]

    @classmethod
    def of(cls, samples: NDArray[Any]) -> Moments:
        """Return the moments of samples (n_samples, n_features), centred before they are squared.

        Examples
        --------
        >>> Moments.of(np.array([[1.0], [3.0]])).covariance
        array([[2.]])
        """
        count, n_features = samples.shape
        if not count:
            return cls(0, np.zeros(n_features), np.zeros((n_features, n_features)))
        mean = samples.mean(axis=0, dtype=np.float64)
        centred = samples - mean
        return cls(count, mean, centred.T @ centred)

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


def cube_moments(cube: xr.DataArray) -> Moments:
    """Return the moments of the pixels (band, y, x) that have data in every band.

    Dask-backed cubes are read chunk by chunk, each once; the answer is that of the loaded cube up
    to rounding, whatever the chunks and the number of threads.
    """
    (moments,) = _gather(cube, [(0, 0)])
    return moments


def pixel_and_difference_moments(
    cube: xr.DataArray, offset: tuple[int, int]
) -> tuple[Moments, Moments]:
    """Return the moments of the pixels, and those of pixel minus neighbour, in one pass.

    Parameters
    ----------
    cube : DataArray (band, y, x)
        Eager or dask-backed; pairs across the borders of chunks count like all others, pairs in
        which one pixel lacks data do not count.
    offset : (rows, columns)
        Where the neighbour lies: rows 0 or 1, columns -1, 0 or 1, not both 0.
    """
    pixels, differences = _gather(cube, [(0, 0), offset])
    return pixels, differences


def _gather(cube: xr.DataArray, offsets: list[tuple[int, int]]) -> tuple[Moments, ...]:
    if cube.chunks is None:
        return tuple(_block_moments(cube.values, offset) for offset in offsets)
    whole_spectra = cube.data.rechunk({0: -1})
    # one computation, so that every chunk is read once for all
    totals: tuple[Moments, ...] = compute(  # type: ignore[no-untyped-call]  # dask has few types
        *(_lazy_moments(whole_spectra, offset) for offset in offsets)
    )
    return totals


def _lazy_moments(data: Any, offset: tuple[int, int]) -> Any:
    rows, columns = offset
    if any(offset):
        depth = {0: 0, 1: (0, rows), 2: (max(-columns, 0), max(columns, 0))}
        data = overlap(data, depth=depth, boundary="none")  # type: ignore[no-untyped-call]
    parts = [delayed(_block_moments)(block, offset) for block in data.to_delayed().ravel()]
    while len(parts) > 1:  # a fixed tree: deterministic, and few parts are alive at a time
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [delayed(Moments.merge)(first, second) for first, second in pairs] + odd
    return parts[0]


@one_blas_thread()
def _block_moments(values: NDArray[Any], offset: tuple[int, int]) -> Moments:
    n_bands, height, width = values.shape
    rows, columns = offset
    here = slice(max(-columns, 0), width - max(columns, 0))
    there = slice(max(columns, 0), width - max(-columns, 0))
    total = Moments.of(np.empty((0, n_bands)))
    for slab in row_slabs(max(height - rows, 0), width):
        pixels = values[:, slab, here].astype(np.float64)
        if any(offset):
            pixels -= values[:, slab.start + rows : slab.stop + rows, there]
        samples, _ = samples_of(pixels)
        total = total.merge(Moments.of(samples))
    return total
