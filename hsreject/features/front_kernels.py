r"""The kernels of elimination: dense fronts of a symmetric system on the pixels of an image.

A *front* is a dense symmetric matrix over its pivots, which it eliminates, and its ring, the pixels
around that are eliminated later. Row k of the array holds column k of the lower triangle, so that
the innermost loops run along rows. Eliminating p pivots of m pixels leaves

.. math:: F_{22} - L_{21} L_{21}', \quad F_{11} = L_{11} L_{11}', \quad L_{21} L_{11}' = F_{21}

for the ring, which is added to the front of the rectangle around it. GROUP columns are subtracted
at a time from two others: their sums are read and written a fourth as often. BLOCK columns are
eliminated before the rest of the front is touched, which then passes the cache once.

Sides are solved LANES at a time, as rows of LANES numbers. Every loop starts at 0 on a slice of its
own: where an index may be negative, or runs may overlap, the compiler makes no vector instructions
(a factor of ten). Sums have a fixed order, so results do not depend on threads or machines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hsreject.compilation import ONE, ZERO, FloatArray, Number, compiled, inner, kernel

LEAF = 24  # pixels of a rectangle that is not dissected any further
LANES = 32  # sides solved at a time
GROUP = 4
BLOCK = 32


class ImageSystem(NamedTuple):
    """A symmetric, positive definite system on an image."""

    diagonal: NDArray[Any]  # (y, x)
    across: NDArray[Any]  # (y, x - 1): between a pixel and the one to its right
    down: NDArray[Any]  # (y - 1, x)


class Fronts(NamedTuple):
    """The pixels in the order of their elimination, and the fronts they meet in."""

    node: NDArray[np.int32]  # (y, x): place of a pixel in the order, -1 if it is not eliminated
    pixels: NDArray[np.int64]  # (node,): positions in the flattened image
    n_pivots: NDArray[np.int64]  # (front,)
    children: NDArray[np.int64]  # (front,): the first of two, -1 for a leaf
    starts: NDArray[np.int64]  # (front + 1,): of its ring
    ring: NDArray[np.int32]  # nodes
    place: NDArray[np.int32]  # of a ring's pixels, in the front around
    columns: NDArray[np.int64]  # (front + 1,): where its columns of the factor start


@compiled
def dissect(n_rows: int, n_columns: int) -> NDArray[np.int32]:
    """Return the rectangles (front, 8) of an image, nested, each after those within it.

    Of each the rows and columns (start, stop), then those of its pivots: a line across the middle
    of a rectangle, all pixels of a small one (George, SIAM J. Numer. Anal. 10, 1973).
    """
    rectangles = np.empty((n_rows * n_columns + 1, 8), np.int32)
    waiting = np.empty((64, 4), np.int32)
    waiting[0] = np.array([0, n_rows, 0, n_columns], np.int32)
    depth, count = 1, 0
    while depth:
        depth -= 1
        one = waiting[depth].copy()
        top, bottom, left, right = one
        rectangles[count, :4] = one
        rectangles[count, 4:] = one
        height, width = bottom - top, right - left
        if height * width > LEAF:
            waiting[depth] = one
            waiting[depth + 1] = one
            axis = 0 if height >= width else 2
            middle = (one[axis] + one[axis + 1]) // 2
            rectangles[count, 4 + axis : 6 + axis] = np.array([middle, middle + 1], np.int32)
            waiting[depth, axis + 1] = middle
            waiting[depth + 1, axis] = middle + 1
            depth += 2
        count += 1
    return rectangles[:count][::-1].copy()


@compiled
def pivot_pixels(rectangles: NDArray[np.int32], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the pixels of a mask (y, x), flattened, in the order of their elimination."""
    pixels = np.empty(mask.size, np.int64)
    count = 0
    for f in range(len(rectangles)):
        for row in range(rectangles[f, 4], rectangles[f, 5]):
            for column in range(rectangles[f, 6], rectangles[f, 7]):
                if mask[row, column]:
                    pixels[count] = row * mask.shape[1] + column
                    count += 1
    return pixels[:count].copy()


@compiled
def first_children(rectangles: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the first of the two children of each front, -1 for a leaf; the other is before it."""
    children = np.full(len(rectangles), -1)
    waiting = np.empty(len(rectangles), np.int64)
    depth = 0
    for f in range(len(rectangles)):
        if not (rectangles[f, :4] == rectangles[f, 4:]).all():
            children[f] = waiting[depth - 2]
            depth -= 2
        waiting[depth] = f
        depth += 1
    return children


@compiled
def rings(
    rectangles: NDArray[np.int32], node: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return how many pivots each front has, where its ring starts, and the nodes of all rings.

    `node` (y, x) is the place of a pixel in the order of elimination, -1 for one without.
    """
    n_pivots = np.zeros(len(rectangles), np.int64)
    starts = np.zeros(len(rectangles) + 1, np.int64)
    widths = rectangles[:, 1] - rectangles[:, 0] + rectangles[:, 3] - rectangles[:, 2]
    ring = np.empty(2 * widths.sum(), np.int32)
    count = 0
    for f in range(len(rectangles)):
        top, bottom, left, right = rectangles[f, 4:]
        n_pivots[f] = (node[top:bottom, left:right] >= 0).sum()
        top, bottom, left, right = rectangles[f, :4]
        if top > 0:
            count = _listed(node[top - 1, left:right], ring, count)
        if bottom < node.shape[0]:
            count = _listed(node[bottom, left:right], ring, count)
        if left > 0:
            count = _listed(node[top:bottom, left - 1], ring, count)
        if right < node.shape[1]:
            count = _listed(node[top:bottom, right], ring, count)
        starts[f + 1] = count
    return n_pivots, starts, ring[:count].copy()


@inner
def _listed(line: NDArray[np.int32], ring: NDArray[np.int32], count: int) -> int:
    """Append the nodes of a line of pixels, and return how many there are."""
    for node in line:
        if node >= 0:
            ring[count] = node
            count += 1
    return count


@compiled
def places(
    n_pivots: NDArray[np.int64],
    children: NDArray[np.int64],
    starts: NDArray[np.int64],
    ring: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return the place of every pixel of a ring in the front of the rectangle around it."""
    place = np.zeros(ring.size, np.int32)
    local = np.empty(n_pivots.sum(), np.int32)
    first = 0
    for f in range(n_pivots.size):
        if children[f] >= 0:
            for k in range(n_pivots[f]):
                local[first + k] = k
            for k in range(starts[f + 1] - starts[f]):
                local[ring[starts[f] + k]] = n_pivots[f] + k
            for child in (children[f], f - 1):
                for k in range(starts[child], starts[child + 1]):
                    place[k] = local[ring[k]]
        first += n_pivots[f]
    return place


@compiled
def stack_places(
    children: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return where the front around each one lies on a stack, and its own; and the whole depth."""
    above = np.zeros((sizes.size, 2), np.int64)
    deepest = 0
    for f in range(sizes.size - 1, -1, -1):
        if children[f] >= 0:
            own = above[f, 1]
            deepest = max(deepest, own + sizes[f])
            for child in (children[f], f - 1):
                above[child, 0], above[child, 1] = own, own + sizes[f]
    return above, deepest


@kernel
def factorise(
    system: ImageSystem,
    fronts: Fronts,
    factor: FloatArray,
    front: FloatArray,
    waiting: FloatArray,
    local: NDArray[Any],
) -> None:
    """Fill the columns of the factor, front by front; what waits for a parent lies on a stack."""
    first, used = 0, 0
    for f in range(fronts.n_pivots.size):
        p, ring_start = fronts.n_pivots[f], fronts.starts[f]
        n_ring = fronts.starts[f + 1] - ring_start
        m = p + n_ring
        for k in range(m):
            front[k, k:m] = ZERO
        for k in range(p):
            local[first + k] = k
        for k in range(n_ring):
            local[fronts.ring[ring_start + k]] = p + k
        _assemble(front, system, fronts, local, first, p)
        if fronts.children[f] >= 0:
            for child in (f - 1, fronts.children[f]):
                start, stop = fronts.starts[child], fronts.starts[child + 1]
                size = (stop - start) ** 2
                used -= size
                _extend(front, waiting[used : used + size], fronts.place[start:stop])
        _eliminate(front, p, m)
        for k in range(p):
            start = fronts.columns[f] + k * m
            _assign(factor[start + k : start + m], front[k, k:m])
        for k in range(n_ring):
            start = used + k * n_ring
            _assign(waiting[start + k : start + n_ring], front[p + k, p + k : m])
        used += n_ring * n_ring
        first += p


@inner
def _assemble(
    front: FloatArray, system: ImageSystem, fronts: Fronts, local: NDArray[Any], first: int, p: int
) -> None:
    """Put the entries of the pivots into their front, but those with pixels eliminated before."""
    node, across, down = fronts.node, system.across, system.down
    n_rows, n_columns = node.shape
    for k in range(p):
        row, column = divmod(fronts.pixels[first + k], n_columns)
        front[k, k] = system.diagonal[row, column]
        if column > 0 and node[row, column - 1] >= first:
            _put(front, k, local[node[row, column - 1]], across[row, column - 1])
        if column < n_columns - 1 and node[row, column + 1] >= first:
            _put(front, k, local[node[row, column + 1]], across[row, column])
        if row > 0 and node[row - 1, column] >= first:
            _put(front, k, local[node[row - 1, column]], down[row - 1, column])
        if row < n_rows - 1 and node[row + 1, column] >= first:
            _put(front, k, local[node[row + 1, column]], down[row, column])


@inner
def _put(front: FloatArray, one: int, other: int, value: Number) -> None:
    front[min(one, other), max(one, other)] = value


@inner
def _extend(front: FloatArray, child: FloatArray, place: NDArray[Any]) -> None:
    """Add what a child left for its ring to the front around it."""
    for a in range(place.size):
        row = child[a * place.size : (a + 1) * place.size]
        for b in range(a, place.size):
            one, other = place[a], place[b]
            if other >= one:
                front[one, other] += row[b]
            else:
                front[other, one] += row[b]


@inner
def _eliminate(front: FloatArray, p: int, m: int) -> None:
    """Eliminate the first p pixels of a front of m."""
    block = 0
    while block < p:
        stop = min(block + BLOCK, p)
        group = block
        while group < stop:
            end = min(group + GROUP, stop)
            for k in range(group, end):
                for q in range(group, k):
                    _subtract(front[k, k:m], front[q, k:m], front[q, k])
                row, root = front[k, k:m], np.sqrt(front[k, k])
                for i in range(row.size):
                    row[i] = row[i] / root
            _update(front, group, end, end, stop, m)
            group = end
        for j in range(stop, m, 2):
            group = block
            while group < stop:
                end = min(group + GROUP, stop)
                _update(front, group, end, j, min(j + 2, m), m)
                group = end
        block = stop


@inner
def _update(front: FloatArray, group: int, end: int, start: int, stop: int, m: int) -> None:
    """Subtract the products of a group of columns from the columns from `start` to `stop`."""
    j = start
    if end - group == GROUP:
        while j < stop - 1:
            x = front[group:end, j:m]
            _subtract_group(front[j, j:m], front[j + 1, j:m], x)
            j += 2
    while j < stop:
        for k in range(group, end):
            _subtract(front[j, j:m], front[k, j:m], front[k, j])
        j += 1


@inner
def _subtract(row: FloatArray, x: FloatArray, a: Number) -> None:
    for i in range(row.size):
        row[i] = row[i] - x[i] * a


@inner
def _subtract_group(one: FloatArray, other: FloatArray, x: FloatArray) -> None:
    """Subtract the products of GROUP columns from the first column of x and from the second."""
    a0, a1, a2, a3 = x[0, 0], x[1, 0], x[2, 0], x[3, 0]
    b0, b1, b2, b3 = x[0, 1], x[1, 1], x[2, 1], x[3, 1]
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    for i in range(one.size):
        one[i] = (((one[i] - x0[i] * a0) - x1[i] * a1) - x2[i] * a2) - x3[i] * a3
        other[i] = (((other[i] - x0[i] * b0) - x1[i] * b1) - x2[i] * b2) - x3[i] * b3


@kernel
def substitute(
    fronts: Fronts,
    factor: FloatArray,
    above: NDArray[Any],
    sides: FloatArray,
    rows: FloatArray,
    group: FloatArray,
    waiting: FloatArray,
) -> None:
    """Solve for LANES sides, which become the solution: forward through the fronts, and back.

    On the way forward, what waits for a parent lies on a stack; on the way back the fronts around
    a rectangle do, from `above` on.
    """
    n_pivots, starts, place, columns = fronts.n_pivots, fronts.starts, fronts.place, fronts.columns
    first, used = 0, 0
    for f in range(n_pivots.size):
        p = n_pivots[f]
        n_ring = starts[f + 1] - starts[f]
        _copy(rows, 0, sides, first, p)
        rows[p * LANES : (p + n_ring) * LANES] = ZERO
        if fronts.children[f] >= 0:
            for child in (f - 1, fronts.children[f]):
                used -= starts[child + 1] - starts[child]
                for k in range(starts[child + 1] - starts[child]):
                    _add(rows, place[starts[child] + k], waiting, used + k)
        _forward(rows, group, factor[columns[f] : columns[f + 1]], p, p + n_ring)
        _copy(sides, first, rows, 0, p)
        _copy(waiting, used, rows, p, n_ring)
        used += n_ring
        first += p
    for f in range(n_pivots.size - 1, -1, -1):
        p = n_pivots[f]
        n_ring = starts[f + 1] - starts[f]
        first -= p
        _copy(rows, 0, sides, first, p)
        for k in range(n_ring):
            _copy(rows, p + k, waiting, above[f, 0] + place[starts[f] + k], 1)
        _backward(rows, group, factor[columns[f] : columns[f + 1]], p, p + n_ring)
        _copy(sides, first, rows, 0, p)
        if fronts.children[f] >= 0:
            _copy(waiting, above[f, 1], rows, 0, p + n_ring)


@inner
def _forward(rows: FloatArray, group: FloatArray, factor: FloatArray, p: int, m: int) -> None:
    """Solve L y = b for the pivots of a front, and take them out of its ring."""
    k = 0
    while k < p:
        size = GROUP if p - k >= GROUP else 1
        for q in range(k, k + size):
            for earlier in range(k, q):
                _less(rows, q, rows, earlier, factor[earlier * m + q])
            _scale(rows, q, ONE / factor[q * m + q])
        _copy(group, 0, rows, k, size)
        below = rows[(k + size) * LANES : m * LANES]
        x0 = factor[k * m + k + size : (k + 1) * m]
        if size == GROUP:
            x1 = factor[(k + 1) * m + k + size : (k + 2) * m]
            x2 = factor[(k + 2) * m + k + size : (k + 3) * m]
            x3 = factor[(k + 3) * m + k + size : (k + 4) * m]
            _take_out(below, group, x0, x1, x2, x3)
        else:
            for i in range(x0.size):
                _less(below, i, group, 0, x0[i])
        k += size


@inner
def _backward(rows: FloatArray, group: FloatArray, factor: FloatArray, p: int, m: int) -> None:
    """Solve L' x = y for the pivots of a front, given its ring."""
    k = p
    while k > 0:
        size = GROUP if k % GROUP == 0 else 1
        k -= size
        _copy(group, 0, rows, k, size)
        below = rows[(k + size) * LANES : m * LANES]
        x0 = factor[k * m + k + size : (k + 1) * m]
        if size == GROUP:
            x1 = factor[(k + 1) * m + k + size : (k + 2) * m]
            x2 = factor[(k + 2) * m + k + size : (k + 3) * m]
            x3 = factor[(k + 3) * m + k + size : (k + 4) * m]
            _bring_in(group, below, x0, x1, x2, x3)
        else:
            for i in range(x0.size):
                _less(group, 0, below, i, x0[i])
        for q in range(size - 1, -1, -1):
            start = (k + q) * m + k
            for later in range(q + 1, size):
                _less(group, q, group, later, factor[start + later])
            _scale(group, q, ONE / factor[start + q])
        _copy(rows, k, group, 0, size)


@inner
def _take_out(
    below: FloatArray,
    group: FloatArray,
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
) -> None:
    for i in range(x0.size):
        a0, a1, a2, a3 = x0[i], x1[i], x2[i], x3[i]
        for j in range(LANES):
            less = below[i * LANES + j] - group[j] * a0
            less = (less - group[LANES + j] * a1) - group[2 * LANES + j] * a2
            below[i * LANES + j] = less - group[3 * LANES + j] * a3


@inner
def _bring_in(
    group: FloatArray,
    below: FloatArray,
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
) -> None:
    for i in range(x0.size):
        a0, a1, a2, a3 = x0[i], x1[i], x2[i], x3[i]
        for j in range(LANES):
            value = below[i * LANES + j]
            group[j] -= value * a0
            group[LANES + j] -= value * a1
            group[2 * LANES + j] -= value * a2
            group[3 * LANES + j] -= value * a3


@inner
def _assign(to: FloatArray, source: FloatArray) -> None:
    for i in range(to.size):
        to[i] = source[i]


@inner
def _copy(to: FloatArray, row: int, source: FloatArray, other: int, count: int) -> None:
    _assign(
        to[row * LANES : (row + count) * LANES], source[other * LANES : (other + count) * LANES]
    )


@inner
def _add(to: FloatArray, row: int, source: FloatArray, other: int) -> None:
    x, y = to[row * LANES : (row + 1) * LANES], source[other * LANES : (other + 1) * LANES]
    for j in range(LANES):
        x[j] = x[j] + y[j]


@inner
def _less(to: FloatArray, row: int, source: FloatArray, other: int, a: Number) -> None:
    x, y = to[row * LANES : (row + 1) * LANES], source[other * LANES : (other + 1) * LANES]
    for j in range(LANES):
        x[j] = x[j] - y[j] * a


@inner
def _scale(rows: FloatArray, row: int, a: Number) -> None:
    x = rows[row * LANES : (row + 1) * LANES]
    for j in range(LANES):
        x[j] = x[j] * a
