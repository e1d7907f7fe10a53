"""How large blocks may be, and how many may be worked on at once, within a bound of memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from dask.utils import parse_bytes

from hsreject.errors import InputError
from hsreject.mapping.blocks import PIXELS_OF_A_PIECE, Blocks
from hsreject.threads import usable_cores

PROGRAM = 450_000_000
"""Bytes that everything else takes: libraries, GDAL's cache, a piece of the final maps."""

BYTES_OF_A_PIXEL = 64
"""Of a pixel besides: label, confidence, masks, edge weights, layers of the image."""

BYTES_OF_A_BAND = 16
"""Of a pixel and a band of the piece that is read: file type, mask, single precision."""

SMALLEST_SIDE = 32
SMALLEST_USUAL_SIDE = 512
HALOS_OF_A_SIDE = 16  # a block of 16 halos costs 27 % more than the same pixels without halos


@dataclass(frozen=True)
class Load:
    """What makes a block heavy.

    Parameters
    ----------
    n_bands : int
        Of the scene.
    n_classes : int
        Of the model.
    bytes_of_a_class : int
        Of a pixel and a class: ``context.working_size`` numbers.
    bytes_of_a_pixel : int
        Of a pixel besides.
    """

    n_bands: int
    n_classes: int
    bytes_of_a_class: int
    bytes_of_a_pixel: int = BYTES_OF_A_PIXEL

    @property
    def piece(self) -> int:
        """Bytes of the piece of a window that is read and classified at a time."""
        return PIXELS_OF_A_PIECE * self.n_bands * BYTES_OF_A_BAND

    @property
    def pixel(self) -> int:
        """Bytes of a pixel of a window."""
        return self.n_classes * self.bytes_of_a_class + self.bytes_of_a_pixel

    def of_window(self, rows: int, columns: int) -> int:
        """Return the bytes that a worker needs for a window."""
        return self.piece + rows * columns * self.pixel

    def widest_window(self, memory: int) -> int:
        """Return the side of the largest square window that one worker can work on."""
        return isqrt(max(memory - self.piece, 0) // self.pixel)


@dataclass(frozen=True)
class Share:
    """How a scene is cut, and how many blocks are worked on at once.

    Parameters
    ----------
    blocks : Blocks
    n_workers : int
    """

    blocks: Blocks
    n_workers: int


def share_memory(
    shape: tuple[int, int],
    load: Load,
    *,
    halo: int | None,
    memory: int,
    side: int | None = None,
    n_workers: int | None = None,
) -> Share:
    """Return blocks and workers that stay within `memory`.

    With w workers and blocks of side b in windows of side b + 2 halo::

        memory >= PROGRAM + w (piece + (b + 2 halo)^2 pixel)

        piece = 16 384 pixels * bands * 16 bytes
        pixel = classes * precision * working size of the context + 64 bytes

    The working size is 10 numbers for vector TV, so that a class takes 40 bytes of a pixel in
    single precision (:attr:`hsreject.SegSALSA.working_size`).

    The side is 16 halos and at least 512 pixels, or as much of that as memory allows with one
    worker. It never depends on the number of workers, and so neither does the map; there are as
    many workers as cores and memory allow.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the scene.
    load : Load
        What a pixel costs.
    halo : int or None
        How many pixels around a block decide its map; None: the whole scene does.
    memory : int
        The bound in bytes.
    side : int, optional
        The side of a block, where it is not to be chosen.
    n_workers : int, optional
        At most so many workers; by default the number of cores.

    Examples
    --------
    >>> share = share_memory((20_000, 10_000), Load(200, 16, 40), halo=32, memory=2_000_000_000)
    >>> share.blocks.side, share.blocks.grid, share.blocks.halo
    (512, (40, 20), 32)
    """
    free = memory - PROGRAM
    widest = load.widest_window(free)
    margin = 2 * (halo or 0)
    wanted = side or max(SMALLEST_USUAL_SIDE, HALOS_OF_A_SIDE * (halo or 0))
    if halo is None:
        blocks = _single_block(shape, load, widest)
    else:
        largest = min(wanted, max(shape), widest - margin)
        if largest < min(wanted if side else SMALLEST_SIDE, max(shape)):
            window = min(side or SMALLEST_SIDE, max(shape)) + margin
            least = PROGRAM + load.of_window(window, window)
            raise InputError(
                f"{_megabytes(memory)} are not enough for blocks with a halo of {halo} pixels: at "
                f"least {_megabytes(least)} are needed. Allow more memory"
                f"{', or a smaller block' if side else ''}."
            )
        blocks = Blocks(shape, side=largest, halo=halo)
    rows, columns = (max(sizes) + margin for sizes in blocks.sizes)
    fitting = max(free // load.of_window(rows, columns), 1)
    return Share(blocks, min(n_workers or usable_cores(), fitting, len(blocks)))


def bytes_of(memory: str | float) -> int:
    """Return a number of bytes that may be written like ``"2GB"``.

    Examples
    --------
    >>> bytes_of("1.5 GB"), bytes_of(2e9)
    (1500000000, 2000000000)
    """
    try:
        number = parse_bytes(memory)
    except ValueError:
        number = 0
    if number <= 0:
        raise InputError(f"memory must be a number of bytes like '2GB' (got {memory!r}).")
    return int(number)


def _single_block(shape: tuple[int, int], load: Load, widest: int) -> Blocks:
    n_pixels = shape[0] * shape[1]
    if n_pixels > widest**2:
        least = PROGRAM + load.of_window(*shape)
        raise InputError(
            "The model has a part that needs the whole scene at once (a prior over superpixels, "
            f"or a feature of the place), so the scene cannot be mapped in blocks and needs "
            f"{_megabytes(least)}. Allow so much memory, or train with another prior."
        )
    return Blocks(shape, side=max(shape), halo=0)


def _megabytes(number: int) -> str:
    return f"{-(-number // 1_000_000)} MB"
