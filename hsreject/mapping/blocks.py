"""Blocks of a scene, each in a window that is wider by a halo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hsreject.errors import InputError
from hsreject.schema import X, Y

PIXELS_OF_A_PIECE = 16_384
"""About how many pixels of a window are read and classified at a time."""


@dataclass(frozen=True)
class Span:
    """A block along one axis: `start` to `stop` inside a window `first` to `last`."""

    first: int
    start: int
    stop: int
    last: int

    @property
    def window(self) -> slice:
        """The window, in pixels of the scene."""
        return slice(self.first, self.last)

    @property
    def inside(self) -> slice:
        """The block, in pixels of the window."""
        return slice(self.start - self.first, self.stop - self.first)


@dataclass(frozen=True)
class Block:
    """A block of a scene: its number and where it lies."""

    number: int
    y: Span
    x: Span

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the block, halo aside."""
        return (self.y.stop - self.y.start, self.x.stop - self.x.start)


@dataclass(frozen=True)
class Blocks:
    """How a scene is cut: blocks of nearly equal size, their windows clipped to the scene.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the scene.
    side : int
        The largest number of rows and columns of a block.
    halo : int
        How many pixels a window has around its block.

    Examples
    --------
    >>> blocks = Blocks((100, 60), side=60, halo=8)
    >>> blocks.grid, [block.shape for block in blocks]
    ((2, 1), [(50, 60), (50, 60)])
    >>> next(iter(blocks)).y.window
    slice(0, 58, None)
    """

    shape: tuple[int, int]
    side: int
    halo: int

    def __post_init__(self) -> None:
        if self.side < 1 or self.halo < 0:
            raise InputError(f"A block needs a side of at least 1 pixel (got {self.side}).")

    def __len__(self) -> int:
        return self.grid[0] * self.grid[1]

    def __iter__(self) -> Iterator[Block]:
        columns = self._spans(1)
        for row, y in enumerate(self._spans(0)):
            for column, x in enumerate(columns):
                yield Block(row * len(columns) + column, y, x)

    @property
    def grid(self) -> tuple[int, int]:
        """Number of blocks along y and x."""
        rows, columns = (-(-size // self.side) for size in self.shape)
        return (rows, columns)

    @property
    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows and columns of the blocks."""
        rows, columns = (
            tuple(span.stop - span.start for span in self._spans(axis)) for axis in (0, 1)
        )
        return (rows, columns)

    @property
    def chunks(self) -> dict[str, tuple[int, ...]]:
        """How a lazily read scene should be cut: no chunk crosses the border of a window.

        Windows are then read without a pixel that they do not need, and in pieces of about
        `PIXELS_OF_A_PIECE`.
        """
        columns = _between(self._cuts(1))
        height = max(PIXELS_OF_A_PIECE // max(columns, default=1), 1)
        rows: list[int] = []
        for size in _between(self._cuts(0)):
            n_pieces = -(-size // height)
            rows += _between([size * piece // n_pieces for piece in range(n_pieces + 1)])
        return {Y: tuple(rows), X: tuple(columns)}

    def _spans(self, axis: int) -> list[Span]:
        size, count = self.shape[axis], self.grid[axis]
        edges = [size * number // count for number in range(count + 1)]
        return [
            Span(max(start - self.halo, 0), start, stop, min(stop + self.halo, size))
            for start, stop in pairwise(edges)
        ]

    def _cuts(self, axis: int) -> list[int]:
        spans = self._spans(axis)
        return sorted({place for span in spans for place in (span.first, span.last)})


def _between(cuts: list[int]) -> list[int]:
    return [stop - start for start, stop in pairwise(cuts)]
