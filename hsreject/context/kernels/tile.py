r"""A tile: the pixels that are solved together, laid out so that the inner loops vectorise.

A tile holds CHUNK pixels of a row: for each class a run of points and a run of likelihoods. A block
is BLOCK of them: tile and work array from its first pixel on, so that index 0 is that pixel. The
work array beside it holds runs of sums and multipliers. Distances between runs are constants and
GROUP classes are taken at a time: only so does the compiler see that the runs do not overlap, and
makes vector instructions of the loops over pixels (a factor of 10 in time).

Measured on rows of 145 pixels and 16 classes, and not better: blocks of 16 pixels, gathering the
unsolved pixels of a chunk into a tile of their own, narrower chunks that stay in the first cache
(their loops are too short), classes taken in pairs in the dual step, fields stored in blocks of
pixels with all of their classes together, loads ahead of need.

Tiles are made in NumPy: allocating arrays inside a kernel would double the time to compile it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hsreject.context.kernels.compilation import FloatArray

CHUNK = 160  # pixels of a tile
BLOCK = 32  # pixels that are solved together
GROUP = 4  # classes taken at a time
RUN = 2 * GROUP * CHUNK


def new_tile(n_classes: int, dtype: np.dtype[Any], *, filler: float) -> FloatArray:
    """Return a tile of points 0 and likelihoods 1, with room for whole groups of classes.

    Lanes beyond the end of a row keep what was there before, so all must hold harmless numbers. The
    classes that fill up the last group have likelihood 0 and the point `filler`.
    """
    n_rounded = -(-n_classes // GROUP) * GROUP
    tile = np.zeros((n_rounded, 2, CHUNK), dtype)
    tile[:n_classes, 1] = 1
    tile[n_classes:, 0] = filler
    return tile.ravel()
