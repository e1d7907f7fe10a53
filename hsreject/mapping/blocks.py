"""How a scene is cut into blocks within a bound of memory."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from dask.array.core import normalize_chunks
from dask.utils import parse_bytes

from hsreject.errors import InputError
from hsreject.registry import check_count
from hsreject.threads import usable_cores

PROGRAM = 450_000_000  # bytes of all else: libraries, GDAL's cache, pieces of the final maps
PIECE = 16_384  # pixels read and classified at a time, unless a file stores more together
BYTES_PER_BAND = 10  # per pixel and band of a piece: file type, mask, single precision
LARGEST_PIECE = 200_000_000  # bytes; of what a file stores in larger ones, some rows at a time
NARROWEST_PIECE = 64  # columns
PIECE_SIDES = (8, 4, 2, 1)  # of a piece, in times of what a classifier sees around it
SMALLEST_SIDE = 32
USUAL_SIDE = 512
HALOS_PER_SIDE = 16  # a block of 16 halos costs 27 % more than the same pixels without halos

Sizes = tuple[tuple[int, ...], tuple[int, ...]]
"""Rows and columns of parts of a scene: the chunks of a map."""


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
    def sizes(self) -> Sizes:
        """The blocks; none is smaller than the halo, which so never reaches beyond the next."""
        rows, columns = (_equal_parts(size, self.side, least=self.halo) for size in self.shape)
        return rows, columns

    @property
    def pieces(self) -> Sizes:
        """The pieces in which a scene is read, with the grain of its file.

        None is smaller than what is around it, as for the blocks.
        """
        if not self.reach:
            rows, columns = normalize_chunks(self.piece, self.shape)
        else:
            rows, columns = (
                _equal_parts(size, largest, least=self.reach)
                for size, largest in zip(self.shape, self.piece, strict=True)
            )
        return rows, columns

    @property
    def depth(self) -> tuple[int, int]:
        """How far blocks overlap along rows and columns: the halo, or 0 where one block is all."""
        down, across = (self.halo if len(sizes) > 1 else 0 for sizes in self.sizes)
        return down, across


def cut_scene(  # noqa: PLR0913 (all but one are options)
    shape: tuple[int, int],
    *,
    n_bands: int,
    bytes_per_pixel: int,
    bytes_waiting: int,
    halo: int | None,
    memory: str | float,
    grain: tuple[int, int] | None = None,
    reach: int = 0,
    item_size: int = 4,
    side: int | None = None,
    n_workers: int | None = None,
) -> Blocks:
    """Return blocks and workers that stay within `memory`, in bytes or like "2GB".

    With w workers and blocks of side b::

        memory >= PROGRAM + waiting + w (piece + (b + 2 halo)^2 bytes_per_pixel)

        piece = about 16 384 pixels, or one `grain` of the file, * bands * 10 bytes
        waiting = columns of the scene * (b + 2 halo) * bytes_waiting

    A pixel takes `bytes_per_pixel` while its block is solved, and `bytes_waiting` once it is
    classified and waits for the next row of blocks, whose halo it is part of. Where a classifier
    looks `reach` pixels around, pieces are squares of 8 times that (or less, where memory is
    scarce), and a row of them waits as it was read, `item_size` bytes per band.

    The side is `side`, by default 16 halos and at least 512 pixels, or as much of that as memory
    allows for one worker. It never depends on the number of workers, and so neither does the map:
    as many as `n_workers` (by default the number of cores) are taken as memory then allows. A
    `halo` of None means that the whole scene decides about every pixel: there is one block.
    """
    bound = _bytes(memory)
    for name, value in (("block_size", side), ("n_workers", n_workers)):
        if value is not None:
            check_count(name, value, least=1)
    size = _piece(shape, grain or (1, shape[1]), n_bands)
    piece = size[0] * size[1] * n_bands * BYTES_PER_BAND
    # A classifier that looks around reads its surroundings again for every piece. The largest piece
    # that leaves half of the memory to the blocks wastes least.
    for factor in PIECE_SIDES if reach else ():
        size = min(factor * reach, shape[0]), min(factor * reach, shape[1])
        rows, columns = (side + 2 * reach for side in size)
        piece = rows * n_bands * (columns * BYTES_PER_BAND + shape[1] * item_size)
        if PROGRAM + piece < bound // 2:
            break
    if halo is None:
        left = bound - PROGRAM - piece - shape[0] * shape[1] * bytes_per_pixel
        if left < 0:
            raise InputError(
                "The model has a part that needs the whole scene at once (a prior over "
                "superpixels, or a feature of the place), so the scene cannot be mapped in blocks "
                f"and needs {_megabytes(bound - left)}. Allow that much memory, or train without "
                "that part."
            )
        return Blocks(shape, max(shape), 0, 1, size, reach, left)

    def needed(blocks: Blocks) -> int:
        rows, columns = (
            max(sizes) + 2 * depth for sizes, depth in zip(blocks.sizes, blocks.depth, strict=True)
        )
        waiting = shape[1] * rows * bytes_waiting
        return PROGRAM + waiting + blocks.n_workers * (piece + rows * columns * bytes_per_pixel)

    largest = min(max(side or max(USUAL_SIDE, HALOS_PER_SIDE * halo), halo), max(shape))
    smallest = largest if side else min(max(SMALLEST_SIDE, halo), largest)
    # the largest block that one worker can hold; only then as many workers as fit
    cuts = [Blocks(shape, side, halo, 1, size, reach) for side in range(largest, smallest - 1, -1)]
    blocks = next((cut for cut in cuts if needed(cut) <= bound), None)
    if blocks is None:
        raise InputError(
            f"{_megabytes(bound)} are not enough for blocks with a halo of {halo} pixels: at "
            f"least {_megabytes(needed(cuts[-1]))} are needed. Allow more memory"
            f"{', or a smaller block' if side else ''}."
        )
    most = min(n_workers or usable_cores(), len(blocks))
    shared = (replace(blocks, n_workers=number) for number in range(most, 0, -1))
    blocks = next(cut for cut in shared if needed(cut) <= bound)
    return replace(blocks, bytes_left=bound - needed(blocks))


def _piece(shape: tuple[int, int], grain: tuple[int, int], n_bands: int) -> tuple[int, int]:
    """Return rows and columns of a piece: a multiple of the grain, of about `PIECE` pixels."""
    rows, columns = (min(part, size) for part, size in zip(grain, shape, strict=True))
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


def _megabytes(number: int) -> str:
    return f"{-(-number // 1_000_000)} MB"
