"""The structure tensor row by row.

Coefficients and duals are (y, patch, direction, category, x): the differences of the pixels of a
patch, to the right and down, each times its `coupling` (y, patch, x), 0 where the patch leaves the
region of its center. A pixel's Jacobian has the two columns "right" and "down" and a row for each
class and pixel of the patch, so all that is needed of it is its 2 x 2 Gram matrix, the structure
tensor, kept as runs of its entries (right, right), (right, down) and (down, down).

Differences are made once per row and shared by all patches that see them: a ring of as many rows as
a patch is high, row r of the scene at r % side. A row's duals pass twice, CHUNK columns at a time,
so that the second time they are in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hsreject.compilation import FloatArray, Number, inner, kernel
from hsreject.context.site_kernels import Steps
from hsreject.context.sweep_kernels import add_pull_row

CHUNK = 256
ACROSS, MIXED, DOWN = 0, CHUNK, 2 * CHUNK  # where the runs of the tensor start


class Patches(NamedTuple):
    """Which edges exist, (y, direction, x), how patches see them, and how wide a patch is."""

    edge_weight: FloatArray
    coupling: FloatArray
    side: int


class PatchScratch(NamedTuple):
    """Room for one thread."""

    rows: FloatArray  # (row % side, direction, category, margin + x + margin), differences
    tensor: FloatArray  # (3 * CHUNK,)


def new_patch_scratch(field: FloatArray, side: int) -> PatchScratch:
    """Return room for one thread that works on a field (y, category, x)."""
    _, n_classes, n_columns = field.shape
    return PatchScratch(
        rows=np.zeros((side, 2, n_classes, n_columns + side - 1), field.dtype),
        tensor=np.zeros(3 * CHUNK, field.dtype),
    )


@kernel
def move_tensor_dual(
    dual: FloatArray,
    field: FloatArray,
    patches: Patches,
    radius: Number,
    steps: Steps,
    scratch: PatchScratch,
    first_row: int,
    last_row: int,
) -> None:
    """Update rows of Y from Zbar: Y <- relaxation proj(Y + sigma H Zbar) + (1 - relaxation) Y."""
    side = patches.side
    reach = side // 2
    for row in range(first_row - reach, last_row + reach):
        # After this row the ring holds the rows from row - side + 1 to row: what the patches of the
        # center row - reach see, and nothing else. Rows beyond the border are cleared, because an
        # older row still stands in their place.
        rows = scratch.rows[(row + side) % side]
        if 0 <= row < field.shape[0]:
            difference_row(field, patches.edge_weight[row], row, reach, rows)
        else:
            clear(rows)
        if row - reach >= first_row:
            tensor_dual_row(dual[row - reach], row - reach, patches, radius, steps, scratch)


@inner
def clear(rows: FloatArray) -> None:
    """Write zeros; loops compile in a fraction of the time that an assignment takes."""
    for direction in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            out = rows[direction, k]
            for i in range(len(out)):
                out[i] = 0


@inner
def difference_row(
    field: FloatArray, edge_weight: FloatArray, row: int, reach: int, out: FloatArray
) -> None:
    """Write the differences of a row to the right and down, (direction, category, x)."""
    below = field[row + 1 if row + 1 < field.shape[0] else row]
    right_weight, down_weight = edge_weight[0], edge_weight[1]
    for k in range(field.shape[1]):
        z, z_below = field[row, k], below[k]
        z_right = z[1:]
        # The margins, and of `right` the last column, are never written and stay 0: no edge is
        # there.
        right, down = out[0, k, reach:], out[1, k, reach:]
        for i in range(len(z_right)):
            right[i] = right_weight[i] * (z_right[i] - z[i])
        for i in range(len(z)):
            down[i] = down_weight[i] * (z_below[i] - z[i])


@inner
def tensor_dual_row(
    dual: FloatArray,
    row: int,
    patches: Patches,
    radius: Number,
    steps: Steps,
    scratch: PatchScratch,
) -> None:
    """Update row `row` of Y, (patch, direction, category, x).

    All that the projection needs of a pixel is its structure tensor, so the chunk is passed twice:
    the first pass measures T = Y + sigma H Zbar, the second moves Y.
    """
    rows, tensor = scratch
    side = patches.side
    sigma = dual.dtype.type(steps.dual)
    keep = dual.dtype.type(1 - steps.relaxation)
    n_patch, _, n_classes, n_columns = dual.shape
    for first in range(0, n_columns, CHUNK):
        last = min(first + CHUNK, n_columns)
        for j in range(len(tensor)):
            tensor[j] = 0
        for moving in range(2):
            for s in range(n_patch):
                # patch pixel s lies s // side - side // 2 rows below its center
                seen = rows[(row + s // side - side // 2 + side) % side]
                # rows of differences begin side // 2 columns before the scene, so the shift of s %
                # side - side // 2 columns becomes s % side
                start = first + s % side
                c = patches.coupling[row, s, first:last]
                for k in range(n_classes):
                    right, down = dual[s, 0, k, first:last], dual[s, 1, k, first:last]
                    to_right, to_below = seen[0, k, start:], seen[1, k, start:]
                    for j in range(len(c)):
                        t = right[j] + sigma * c[j] * to_right[j]
                        u = down[j] + sigma * c[j] * to_below[j]
                        if moving:  # to keep Y + T factor, with the matrices of `projections`
                            y, v = right[j], down[j]
                            right[j] = keep * y + tensor[ACROSS + j] * t + tensor[MIXED + j] * u
                            down[j] = keep * v + tensor[MIXED + j] * t + tensor[DOWN + j] * u
                        else:  # sum up the products of the columns t and u
                            tensor[ACROSS + j] += t * t
                            tensor[MIXED + j] += t * u
                            tensor[DOWN + j] += u * u
            if not moving:
                projections(tensor, radius, steps.relaxation)


@inner
def projections(tensor: FloatArray, radius: Number, relaxation: float) -> None:
    """Replace each tensor by `relaxation` times the matrix that projects its Jacobian.

    The Jacobian J has singular values s1 >= s2 and right singular vectors v1, v2. Its projection
    is J (f2 I + (f1 - f2) v1 v1'), with f = min(1, radius / s).
    """
    for j in range(CHUNK):
        across, down = np.float64(tensor[ACROSS + j]), np.float64(tensor[DOWN + j])
        mixed = np.float64(tensor[MIXED + j])
        apart = np.sqrt((across - down) ** 2 + 4.0 * mixed**2)
        larger = np.sqrt(0.5 * (across + down + apart))
        smaller = np.sqrt(max(0.5 * (across + down - apart), 0.0))
        f1 = relaxation * (radius / larger if larger > radius else 1.0)
        f2 = relaxation * (radius / smaller if smaller > radius else 1.0)
        # No eigenvector is needed: v1 v1' = (I + M / apart) / 2 with M = [[across - down, 2 mixed],
        # [2 mixed, down - across]]. Where apart is 0 the singular values agree, so f1 = f2 and any
        # v1 will do.
        turn = 0.5 * (f1 - f2) / apart if apart > 0 else 0.0
        tensor[ACROSS + j] = 0.5 * (f1 + f2) + turn * (across - down)
        tensor[MIXED + j] = turn * 2.0 * mixed
        tensor[DOWN + j] = 0.5 * (f1 + f2) - turn * (across - down)


@kernel
def add_tensor_pull(
    dual: FloatArray,
    patches: Patches,
    gathered: FloatArray,
    field: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Add H'Y to rows of a field; `gathered` is room for two rows (direction, category, x)."""
    for row in range(max(first_row - 1, 0), last_row):
        here, above = gathered[row % 2], gathered[(row + 1) % 2]
        gather_row(dual, patches, row, here)
        if row >= first_row:
            add_pull_row(here, above[1], patches.edge_weight, row, field[row])


@inner
def gather_row(dual: FloatArray, patches: Patches, row: int, out: FloatArray) -> None:
    """Write the sum of what all patches say of the differences of a row."""
    side = patches.side
    reach = side // 2
    n_rows, n_patch, n_directions, n_classes, n_columns = dual.shape
    clear(out)
    for s in range(n_patch):
        # The adjoint of looking around: a difference asks which centers see it, at the opposite
        # offset.
        center = row - (s // side - reach)
        if not 0 <= center < n_rows:
            continue
        shift = s % side - reach
        start, stop = max(-shift, 0), max(min(n_columns, n_columns - shift), 0)
        c = patches.coupling[center, s, start:stop]
        for direction in range(n_directions):
            seen = dual[center, s, direction]
            for k in range(n_classes):
                y, total = seen[k, start:stop], out[direction, k, start + shift :]
                for i in range(len(y)):
                    total[i] += c[i] * y[i]
