"""Windows of a scene: large scenes are worked on part by part, with some pixels around each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import dask.array as da
import numpy as np
from dask.array.overlap import overlap, trim_internal

from hsreject.schema import X, Y
from hsreject.threads import usable_cores

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import DTypeLike, NDArray

_LARGEST_WHOLE = 2**19  # pixels that are worked on at once
_SIDE = 512  # pixels: of the windows that larger scenes are cut into
_MOST_BYTES = 2.5e9  # of all windows that are worked on at the same time
BYTES_PER_PIXEL = 2000
"""What a window takes per pixel, with its halo, at most."""

Kernel = Callable[["NDArray[Any]"], "NDArray[Any]"]
"""A function of pixels (band, y, x), with those around them, that returns (output, y, x)."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Window:
    """A rectangle of a scene, and the wider one that decides about its pixels."""

    inner: tuple[slice, slice]  # rows and columns in the scene
    outer: tuple[slice, slice]

    @property
    def n_pixels(self) -> int:
        """How many pixels its block has."""
        rows, columns = (side.stop - side.start for side in self.outer)
        return int(rows * columns)

    def block(self, cube: xr.DataArray) -> xr.DataArray:
        """Return the pixels of the wider rectangle, in memory."""
        return cube.isel({Y: self.outer[0], X: self.outer[1]}).compute(scheduler="synchronous")

    def trim(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the pixels of the window out of those (..., y, x) of its block."""
        rows, columns = (
            slice(inner.start - outer.start, inner.stop - outer.start)
            for inner, outer in zip(self.inner, self.outer, strict=True)
        )
        return values[..., rows, columns]

    def locate(
        self, rows: NDArray[np.integer], columns: NDArray[np.integer], *, around: bool
    ) -> tuple[NDArray[np.bool_], tuple[NDArray[np.integer], NDArray[np.integer]]]:
        """Return which pixels of the scene lie in the window, and their place in its block.

        With `around`, those count that lie in the wider rectangle.
        """
        in_rows, in_columns = self.outer if around else self.inner
        inside = (rows >= in_rows.start) & (rows < in_rows.stop)
        inside &= (columns >= in_columns.start) & (columns < in_columns.stop)
        first_row, first_column = (side.start for side in self.outer)
        return inside, (rows[inside] - first_row, columns[inside] - first_column)


def windows_of(cube: xr.DataArray, *, halo: int = 0) -> list[Window]:
    """Return the windows of a scene, row by row; up to half a million pixels it is a single one."""
    shape = cube.sizes[Y], cube.sizes[X]
    whole = shape[0] * shape[1] <= _LARGEST_WHOLE

    def cuts(size: int) -> list[tuple[slice, slice]]:
        side = size if whole else _SIDE
        starts = range(0, size, max(side, 1))
        return [
            (
                slice(start, min(start + side, size)),
                slice(max(start - halo, 0), min(start + side + halo, size)),
            )
            for start in starts
        ]

    return [
        Window((rows, columns), (wide_rows, wide_columns))
        for rows, wide_rows in cuts(shape[0])
        for columns, wide_columns in cuts(shape[1])
    ]


def windows_with(
    places: tuple[NDArray[np.intp], NDArray[np.intp]], cube: xr.DataArray, *, halo: int
) -> list[Window]:
    """Return the windows of a scene that hold any of the pixels at these rows and columns."""
    windows = windows_of(cube, halo=halo)
    return [window for window in windows if window.locate(*places, around=False)[0].any()]


def in_windows(cube: xr.DataArray) -> xr.DataArray:
    """Return a scene in memory if it is a single window, else lazy, so that it is read in parts."""
    if len(windows_of(cube)) == 1:
        return cube.compute()
    if cube.chunks is not None:
        return cube
    return cube.copy(data=da.from_array(cube.values, chunks=(-1, _SIDE, _SIDE), name=False))


def n_workers_of(windows: Sequence[Window], bytes_per_pixel: float) -> int:
    """Return how many windows are worked on at once: as many as cores and 2.5 GB allow."""
    largest = max((window.n_pixels for window in windows), default=1)
    fitting = int(_MOST_BYTES // (largest * bytes_per_pixel))
    return max(min(usable_cores(), len(windows), fitting), 1)


def each_window(
    windows: Sequence[Window],
    work: Callable[[Window], Answer],
    *,
    bytes_per_pixel: float = BYTES_PER_PIXEL,
    progress: Callable[[float, float], None] | None = None,
) -> list[Answer]:
    """Return `work` of each window; several are worked on at the same time."""
    n_workers = n_workers_of(windows, bytes_per_pixel)
    answers = []
    with ThreadPoolExecutor(n_workers) as pool:
        # one window is worked on right here
        results = pool.map(work, windows) if n_workers > 1 else map(work, windows)
        for answer in results:
            answers.append(answer)
            if progress is not None:
                progress(len(answers), len(windows))
    return answers


def on_windows(
    cube: xr.DataArray, kernel: Kernel, *, halo: int, n_outputs: int, dtype: DTypeLike
) -> Any:
    """Return `kernel` of a scene (band, y, x): (n_outputs, y, x).

    It sees windows with `halo` pixels around them. The result is lazy when the scene is.
    """
    windows = windows_of(cube, halo=halo)
    if cube.chunks is not None:
        side = -1 if len(windows) == 1 else _SIDE
        depths = {axis: min(halo, cube.shape[axis]) if len(windows) > 1 else 0 for axis in (1, 2)}
        chunked = cube.data.rechunk((-1, side, side))
        return with_halo(chunked, kernel, {0: 0, **depths}, n_outputs=n_outputs, dtype=dtype)
    if len(windows) == 1:
        return kernel(cube.values)
    answer = np.empty((n_outputs, *cube.shape[1:]), dtype=dtype)
    for window in windows:
        answer[:, *window.inner] = window.trim(kernel(cube.values[:, *window.outer]))
    return answer


def with_halo(
    chunked: Any,
    kernel: Kernel,
    depths: Mapping[int, int],
    *,
    n_outputs: int,
    dtype: DTypeLike,
) -> Any:
    """Return `kernel` of each chunk (band, y, x) of a dask array and what is around it.

    It sees `depths` pixels beyond the chunk along each axis, which are cut off the result.
    """
    wide = overlap(chunked, depth=dict(depths), boundary="none")
    outputs = wide.map_blocks(
        kernel,
        chunks=((n_outputs,), *wide.chunks[1:]),
        dtype=dtype,
        meta=np.empty((0, 0, 0), dtype=dtype),
    )
    return trim_internal(outputs, dict(depths), boundary="none")
