"""How a scene is cut into blocks within a bound of memory, and what runs them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dask
from dask.array.core import normalize_chunks
from dask.base import get_scheduler
from dask.utils import parse_bytes

from hsreject.errors import HsrejectError, InputError
from hsreject.registry import check_count
from hsreject.schema import X, Y
from hsreject.threads import one_blas_thread, usable_cores

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from hsreject.mapping.map_model import MapModel

PROGRAM = 450_000_000  # bytes of all else: libraries, GDAL's cache, pieces of the final maps
BYTES_PER_PIXEL = 64  # of a block besides its classes: label, confidence, masks, edge weights
PIECE = 16_384  # pixels read and classified at a time, unless a file stores more together
BYTES_PER_BAND = 10  # per pixel and band of a piece: file type, mask, single precision
LARGEST_PIECE = 200_000_000  # bytes; of what a file stores in larger ones, some rows at a time
NARROWEST_PIECE = 64  # columns
PIECE_SIDES = (8, 4, 2, 1)  # of a piece, in times of what a classifier sees around it
SMALLEST_SIDE = 32
USUAL_SIDE = 512
SECONDS_TO_CONNECT = 10.0  # to a cluster
HALOS_PER_SIDE = 16  # a block of 16 halos costs 27 % more than the same pixels without halos


@dataclass(frozen=True)
class Blocks:
    """How a scene is cut: blocks of nearly equal size, each solved with a halo around it."""

    shape: tuple[int, int]  # rows and columns of the scene
    side: int  # largest number of rows and columns of a block, unless the halo is larger
    halo: int  # how many pixels around a block are solved with it
    n_workers: int  # how many blocks are worked on at once
    piece: tuple[int, int]  # rows and columns that are read and classified at a time
    reach: int = 0  # pixels around a piece that decide about its probabilities
    bytes_left: int = 0  # of the bound of memory

    def __len__(self) -> int:
        return len(self.sizes[0]) * len(self.sizes[1])

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Rows and columns of the blocks: none is smaller than the halo, which so ends within."""
        return tuple(_equal_parts(size, self.side, least=self.halo) for size in self.shape)

    @property
    def depth(self) -> tuple[int, ...]:
        """How far blocks overlap along rows and columns: the halo, or 0 where one block is all."""
        return tuple(self.halo if len(sizes) > 1 else 0 for sizes in self.sizes)

    @property
    def pieces(self) -> tuple[tuple[int, ...], ...]:
        """Rows and columns of the pieces that are read: none is smaller than what is around it."""
        if not self.reach:
            return tuple(normalize_chunks(self.piece, self.shape))
        sides = zip(self.shape, self.piece, strict=True)
        return tuple(_equal_parts(size, side, least=self.reach) for size, side in sides)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What :func:`hsreject.map_scene` may use.

    Parameters
    ----------
    memory : str or float
        Bound of the resident memory of this process, Python and all its threads included, like
        "2GB"; on a cluster, of each worker (formula: ``hsreject.mapping.blocks.cut_scene``).
    block_size : int, optional
        Side of a block in pixels, at least the halo; by default as large as is useful within
        `memory`. The map depends on it a little, on the number of workers not at all.
    n_workers : int, optional
        Blocks to work on at once; by default as many as cores and memory allow.

    See Also
    --------
    hsreject.map_scene : takes it.

    Examples
    --------
    >>> import hsreject as hr
    >>> hr.Resources(memory="500MB", n_workers=1).memory
    '500MB'
    """

    memory: str | float = "2GB"
    block_size: int | None = None
    n_workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("block_size", "n_workers"):
            if (value := getattr(self, name)) is not None:
                check_count(name, value, least=1)


def cut_scene(
    cube: xr.DataArray,
    model: MapModel,
    record: np.dtype[Any],
    resources: Resources,
) -> Blocks:
    """Return blocks and workers that stay within the `memory` of resources.

    With w workers and blocks of side b::

        memory >= PROGRAM + waiting + w (piece + (b + 2 halo)^2 bytes_per_pixel)

        piece = about 16 384 pixels, or one grain of the file, * bands * 10 bytes
        waiting = columns of the scene * (b + 2 halo) * 4 bytes * (classes + 1)

    A pixel takes `bytes_per_pixel` while its block is solved. Once classified, it waits for the
    next row of blocks, whose halo it is part of. Where a classifier looks around, pieces are
    squares of up to 8 times what it sees, and a row of them waits as it was read.

    The side is `block_size`, by default 16 halos and at least 512 pixels, or as much as one worker
    has memory for: it never depends on the number of workers, and so neither does the map. Where
    the whole scene decides about every pixel, there is one block.
    """
    bound, given_side = _bytes(resources.memory), resources.block_size
    n_bands, shape = cube.shape[0], (cube.sizes[Y], cube.sizes[X])
    rejector, n_classes, is_whole = model.rejector, len(model.classes), model.halo is None
    halo, reach = (0 if is_whole else part.halo or 0 for part in (rejector, model.classifier))
    bytes_per_pixel = BYTES_PER_PIXEL + record.itemsize + n_classes * rejector.bytes_per_class
    if is_whole:  # the image itself is kept, and a copy while it is put together
        bytes_per_pixel += 2 * n_bands * max(cube.dtype.itemsize, 4)
    bytes_waiting = 0 if is_whole else 4 * (n_classes + rejector.needs_p_value)
    size = _piece(shape, cube.encoding.get("preferred_chunks", {}), n_bands)
    piece = size[0] * size[1] * n_bands * BYTES_PER_BAND
    # A classifier that looks around reads its surroundings again for every piece. The largest piece
    # that leaves half of the memory to the blocks wastes least.
    for factor in PIECE_SIDES if reach else ():
        size = min(factor * reach, shape[0]), min(factor * reach, shape[1])
        rows, columns = (part + 2 * reach for part in size)
        piece = rows * n_bands * (columns * BYTES_PER_BAND + shape[1] * cube.dtype.itemsize)
        if PROGRAM + piece < bound // 2:
            break

    def needed(blocks: Blocks) -> int:
        sizes = zip(blocks.sizes, blocks.depth, strict=True)
        rows, columns = (max(parts) + 2 * depth for parts, depth in sizes)
        waiting = shape[1] * rows * bytes_waiting
        return PROGRAM + waiting + blocks.n_workers * (piece + rows * columns * bytes_per_pixel)

    largest = min(max(given_side or max(USUAL_SIDE, HALOS_PER_SIDE * halo), halo), max(shape))
    smallest = largest if given_side else min(max(SMALLEST_SIDE, halo), largest)
    sides = [max(shape)] if is_whole else range(largest, smallest - 1, -1)
    # the largest block that one worker can hold; only then as many workers as fit
    cuts = [Blocks(shape, side, halo, 1, size, reach) for side in sides]
    blocks = next((cut for cut in cuts if needed(cut) <= bound), None)
    if blocks is None:
        part = f"blocks with a halo of {halo} pixels"
        remedy = ", or a smaller block" if given_side else ""
        if is_whole:
            part = "the whole scene, and the model cannot map it in blocks"
            remedy = ", or train without superpixels and features of the place"
        here, least = (f"{-(-n // 1_000_000)} MB" for n in (bound, needed(cuts[-1])))
        raise InputError(
            f"{here} are not enough for {part}: at least {least} are needed. Allow more memory"
            f"{remedy}."
        )
    most = min(resources.n_workers or usable_cores(), len(blocks))
    shared = (replace(blocks, n_workers=number) for number in range(most, 0, -1))
    blocks = next(cut for cut in shared if needed(cut) <= bound)
    return replace(blocks, bytes_left=bound - needed(blocks))


def _piece(shape: tuple[int, int], stored: Any, n_bands: int) -> tuple[int, int]:
    """Return rows and columns of a piece: a multiple of the grain, of about `PIECE` pixels."""
    rows, columns = min(stored.get(Y, 1), shape[0]), min(stored.get(X, shape[1]), shape[1])
    columns = min(columns * -(-NARROWEST_PIECE // columns), shape[1])
    rows *= max(PIECE // (rows * columns), 1)
    most = max(LARGEST_PIECE // (columns * n_bands * BYTES_PER_BAND), 1)
    return min(rows, most, shape[0]), columns


def _equal_parts(size: int, largest: int, *, least: int = 0) -> tuple[int, ...]:
    """Return nearly equal parts: few enough for `least`, and as many as `largest` asks for."""
    count = -(-size // largest)
    if least:
        count = max(min(count, size // least), 1)
    return tuple(size * (part + 1) // count - size * part // count for part in range(count))


def _bytes(memory: str | float) -> int:
    with suppress(ValueError):
        if (number := int(parse_bytes(memory))) > 0:
            return number
    raise InputError(f"memory must be a number of bytes like '2GB' (got {memory!r}).")


@contextmanager
def workers(number: int) -> Iterator[bool]:
    """Run dask on that many threads within, unless a scheduler was chosen already; yield whether.

    Each task has one thread for its linear algebra: results do not depend on the number of tasks.
    """
    if get_scheduler() is None:
        with dask.config.set(scheduler="threads", num_workers=number), one_blas_thread():
            yield True
        return
    failures: list[type[Exception]] = [CancelledError]
    with suppress(ImportError):  # schedulers of dask itself do not need it
        from distributed import KilledWorker  # noqa: PLC0415
        from distributed.comm.core import CommClosedError  # noqa: PLC0415

        failures += [KilledWorker, CommClosedError]
    try:
        yield False
    except tuple(failures) as error:
        raise HsrejectError(
            f"The dask cluster failed ({type(error).__name__}). Either its workers died, most "
            "likely for lack of memory: give each more ('dask worker --memory-limit'), or allow "
            "this work less (--memory, in Python Resources(memory=)). Or its scheduler was lost: "
            "start it again. The same command continues from the finished blocks."
        ) from None


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
            "A cluster needs the package distributed. Install it: pip install distributed."
        ) from None
    # We say ourselves what is wrong; after Ctrl-C every task that was waited for would complain.
    for name in ("distributed.client", "distributed.core", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.comm.timeouts.connect": SECONDS_TO_CONNECT}):
        try:
            client = Client(address)
        except (OSError, ValueError) as error:
            raise InputError(
                f"There is no dask scheduler at '{address}' ({type(error).__name__}). Start one "
                "with 'dask scheduler', or leave --cluster out."
            ) from None
        with client:
            yield
