r"""A tile: the pixels that are solved together, laid out so that the inner loops vectorise.

A tile holds CHUNK pixels of a row: for each class a run of :math:`\nu` and a run of p. The work
array beside it holds runs of sums and multipliers. Distances between runs are constants and four
classes are taken at a time: only so does the compiler see that the runs do not overlap, and makes
vector instructions of the loops over pixels (a factor of 10 in time).
"""

from __future__ import annotations

import numpy as np

from hsreject.context.kernels.compilation import FloatArray, kernel

CHUNK = 32  # pixels of a tile
GROUP = 4  # classes taken at a time
RUN = 2 * GROUP * CHUNK

# Where the runs of the work array start: sums over the active classes, then c and theta.
COUNT, P, NU, P_NU, P_P, C, THETA, END = (run * CHUNK for run in range(8))
SUM_X, SUM_PX = COUNT, P

ALL_ACTIVE = -1e30  # the theta that makes every class active
NEVER_ACTIVE = -2e30  # the point of the classes that fill up the last group


@kernel
def new_tile(n_classes: int, like: FloatArray) -> FloatArray:
    """Return a tile of harmless pixels, with room for whole groups of classes."""
    n_rounded = (n_classes + GROUP - 1) // GROUP * GROUP
    tile = np.zeros(2 * n_rounded * CHUNK, dtype=like.dtype)
    for k in range(n_rounded):
        for j in range(CHUNK):
            tile[2 * k * CHUNK + j] = 0 if k < n_classes else NEVER_ACTIVE
            tile[(2 * k + 1) * CHUNK + j] = 1 if k < n_classes else 0
    return tile


@kernel
def new_work(like: FloatArray) -> FloatArray:
    """Return the work array of a tile, every class active."""
    work = np.zeros(END, dtype=like.dtype)
    for j in range(CHUNK):
        work[C + j] = 1
        work[THETA + j] = ALL_ACTIVE
    return work
