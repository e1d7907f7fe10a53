"""How a scene is cut into blocks within a bound of memory, and what dask runs them on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import dask
from dask.base import get_scheduler
from dask.utils import parse_bytes

from hsreject.errors import InputError
from hsreject.threads import one_blas_thread, usable_cores

PROGRAM = 450_000_000
"""Bytes that everything else takes: libraries, GDAL's cache, pieces of the final maps."""

PIECE = 16_384
"""About how many pixels are read and classified at a time."""

BYTES_PER_BAND = 16
"""Per pixel and band of a piece: file type, mask, single precision."""

BYTES_PER_PIXEL = 64
"""Per pixel of a block besides its classes: label, confidence, masks, edge weights."""

SMALLEST_SIDE = 32
USUAL_SIDE = 512
HALOS_PER_SIDE = 16  # a block of 16 halos costs 27 % more than the same pixels without halos
SECONDS_TO_CONNECT = 10.0


@dataclass(frozen=True)
class Blocks:
    """How a scene is cut: blocks of nearly equal size, each solved with a halo around it.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the scene.
    side : int
        The largest number of rows and columns of a block.
    halo : int
        How many pixels around a block take part in its solution.
    n_workers : int
        How many blocks are worked on at once.

    Examples
    --------
    >>> Blocks((100, 60), side=60, halo=8, n_workers=1).sizes
    ((50, 50), (60,))
    """

    shape: tuple[int, int]
    side: int
    halo: int
    n_workers: int

    def __len__(self) -> int:
        return len(self.sizes[0]) * len(self.sizes[1])

    @property
    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows and columns of the blocks: the chunks of a map."""
        rows, columns = (_equal_parts(size, self.side) for size in self.shape)
        return rows, columns

    @property
    def pieces(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows and columns of the pieces in which a scene is read: whole parts of blocks."""
        rows, columns = self.sizes
        height = max(PIECE // max(columns), 1)
        return tuple(part for size in rows for part in _equal_parts(size, height)), columns


def cut_scene(
    shape: tuple[int, int],
    *,
    n_bands: int,
    bytes_per_pixel: int,
    bytes_waiting: int,
    halo: int | None,
    memory: str | float,
    side: int | None = None,
    n_workers: int | None = None,
) -> Blocks:
    """Return blocks and workers that stay within `memory`.

    With w workers and blocks of side b::

        memory >= PROGRAM + waiting + w (piece + (b + 2 halo)^2 bytes_per_pixel)

        piece = 16 384 pixels * bands * 16 bytes
        waiting = columns of the scene * (b + 2 halo) * bytes_waiting

    Probabilities wait for those of the next row of blocks, whose halo they are.

    The side is 16 halos and at least 512 pixels, or as much of that as memory allows for one
    worker. It never depends on the number of workers, and so neither does the map.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the scene.
    n_bands : int
        Bands of the scene.
    bytes_per_pixel : int
        What a pixel of a block takes while it is solved.
    bytes_waiting : int
        What a pixel takes that was classified and waits for its neighbors.
    halo : int or None
        How many pixels around a block decide its map; None: the whole scene does.
    memory : str or float
        The bound, in bytes or like ``"2GB"``.
    side : int, optional
        The side of a block, where it is not to be chosen.
    n_workers : int, optional
        At most so many workers; by default the number of cores.

    Examples
    --------
    >>> cut = cut_scene((20_000, 10_000), n_bands=200, bytes_per_pixel=704,
    ...                 bytes_waiting=64, halo=32, memory="2GB")
    >>> cut.side, len(cut)
    (512, 800)
    """
    bound = _bytes(memory)
    for name, value in (("block_size", side), ("n_workers", n_workers)):
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1 (got {value}).")
    piece = PIECE * n_bands * BYTES_PER_BAND
    if halo is None:
        least = PROGRAM + piece + shape[0] * shape[1] * bytes_per_pixel
        if least > bound:
            raise InputError(
                "The model has a part that needs the whole scene at once (a prior over "
                "superpixels, or a feature of the place), so the scene cannot be mapped in blocks "
                f"and needs {_megabytes(least)}. Allow so much memory, or train with another prior."
            )
        return Blocks(shape, max(shape), 0, 1)

    def needed(side: int, n_workers: int) -> int:
        window = side + 2 * halo
        waiting = shape[1] * window * bytes_waiting
        return PROGRAM + waiting + n_workers * (piece + window**2 * bytes_per_pixel)

    wanted = min(side or max(USUAL_SIDE, HALOS_PER_SIDE * halo), max(shape))
    smallest = wanted if side else min(SMALLEST_SIDE, wanted)
    fitting = [side for side in range(wanted, smallest - 1, -1) if needed(side, 1) <= bound]
    if not fitting:
        raise InputError(
            f"{_megabytes(bound)} are not enough for blocks with a halo of {halo} pixels: at "
            f"least {_megabytes(needed(smallest, 1))} are needed. Allow more memory"
            f"{', or a smaller block' if side else ''}."
        )
    blocks = Blocks(shape, fitting[0], halo, n_workers or usable_cores())
    n_workers = min(blocks.n_workers, len(blocks))
    while n_workers > 1 and needed(blocks.side, n_workers) > bound:
        n_workers -= 1
    return replace(blocks, n_workers=n_workers)


@contextmanager
def local_threads(n_workers: int) -> Iterator[None]:
    """Run dask on `n_workers` threads within, unless a scheduler was chosen already.

    Each task has one thread for its linear algebra: as many tasks as cores run side by side, and
    results do not depend on how many that are.
    """
    if get_scheduler() is not None:
        yield
        return
    with dask.config.set(scheduler="threads", num_workers=n_workers), one_blas_thread():
        yield


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Run dask on the `dask.distributed` cluster with that address within; None changes nothing."""
    if address is None:
        yield
        return
    try:
        from distributed import Client  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise InputError(
            "A cluster needs the package distributed. Install it: pip install "
            "'hsreject[distributed]'."
        ) from None
    try:
        client: Any = Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no dask scheduler at '{address}' ({type(error).__name__}). Start one with "
            "'dask scheduler', or leave --scheduler out."
        ) from None
    with client:
        yield


def _equal_parts(size: int, largest: int) -> tuple[int, ...]:
    """Return nearly equal parts of a size, none larger than `largest`."""
    count = -(-size // largest)
    return tuple(size * (part + 1) // count - size * part // count for part in range(count))


def _bytes(memory: str | float) -> int:
    """Return a number of bytes that may be written like "2GB"."""
    try:
        number = int(parse_bytes(memory))
    except ValueError:
        number = 0
    if number <= 0:
        raise InputError(f"memory must be a number of bytes like '2GB' (got {memory!r}).")
    return number


def _megabytes(number: int) -> str:
    return f"{-(-number // 1_000_000)} MB"
