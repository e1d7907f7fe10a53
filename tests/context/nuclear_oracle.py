"""The structure tensor with nuclear norm for a conic solver.

The nuclear norm of a Jacobian J is the least of (tr(J W^-1 J') + tr W) / 2 over positive 2 x 2
matrices W, and j W^-1 j' <= t for each row j of J is a cone of 3 x 3 matrices. There are thousands
of these cones, too many to be written with cvxpy in reasonable time: here they are assembled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import clarabel
import numpy as np
from scipy.sparse import block_array, csc_array, csr_array, diags_array, eye_array, kron, vstack

from tests.context.oracle import patch_jacobian

if TYPE_CHECKING:
    from numpy.typing import NDArray


def optimum(likelihood: NDArray[np.float64], weight: float, *, patch: int, width: float) -> float:
    """Return the optimal objective for likelihoods (category, y, x).

    Variables: the field (category, pixel), -log(p'z) of each pixel, the entries w11, w12, w22 of
    each pixel's W, and t of each row (category, patch, pixel).
    """
    n_classes, *shape = likelihood.shape
    n_pixels = shape[0] * shape[1]
    table = likelihood.reshape(n_classes, n_pixels)
    classes, pixels = eye_array(n_classes), eye_array(n_pixels)
    right, down = (
        kron(classes, column)
        for column in patch_jacobian((shape[0], shape[1]), patch=patch, width=width)
    )
    n_rows = right.shape[0]
    centre = kron(np.ones((n_rows // n_pixels, 1)), pixels)  # from a row of J to its pixel
    sizes = [n_classes * n_pixels, n_pixels, 3 * n_pixels, n_rows]

    def rows(**blocks: Any) -> Any:
        names = ("field", "loss", "scale", "bound")
        height = next(iter(blocks.values())).shape[0]
        parts = [
            blocks.get(name, csr_array((height, size)))
            for name, size in zip(names, sizes, strict=True)
        ]
        return block_array([parts])

    entry = [kron(np.eye(3)[[n]], centre) for n in range(3)]  # scale is w11, then w12, then w22
    root = np.sqrt(2)  # the cone takes its off-diagonal entries so
    cone = [
        rows(scale=entry[0]),
        root * rows(scale=entry[1]),
        rows(scale=entry[2]),
        root * rows(field=right),
        root * rows(field=down),
        rows(bound=eye_array(n_rows)),
    ]
    likely = kron(np.ones((1, n_classes)), pixels) @ diags_array(table.ravel())
    exponential = [-rows(loss=pixels), csr_array((n_pixels, sum(sizes))), rows(field=likely)]
    matrix = vstack(
        [
            rows(field=kron(np.ones((1, n_classes)), pixels)),
            rows(field=eye_array(sizes[0])),
            _interleaved(exponential),
            _interleaved(cone),
        ]
    )
    constant = np.zeros(matrix.shape[0])
    constant[:n_pixels] = -1.0  # sums to one: matrix @ x + constant = 0
    constant[n_pixels + sizes[0] + 1 :: 3][:n_pixels] = 1.0
    cones = [
        clarabel.ZeroConeT(n_pixels),
        clarabel.NonnegativeConeT(sizes[0]),
        *[clarabel.ExponentialConeT()] * n_pixels,
        *[clarabel.PSDTriangleConeT(3)] * n_rows,
    ]
    cost = np.concatenate(
        [
            np.zeros(sizes[0]),
            np.ones(n_pixels),
            0.5 * weight * np.repeat([1.0, 0.0, 1.0], n_pixels),
            np.full(n_rows, 0.5 * weight),
        ]
    )
    return _solve(cost, csc_array(-matrix), constant, cones)


def _interleaved(blocks: list[Any]) -> Any:
    """Return the blocks with the first row of each first, then the second of each, and so on."""
    height = blocks[0].shape[0]
    order = np.arange(height * len(blocks)).reshape(len(blocks), height).T.ravel()
    return vstack(blocks).tocsr()[order]


def _solve(cost: Any, matrix: Any, constant: Any, cones: list[Any]) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    no_quadratic = csc_array((cost.size, cost.size))
    solver = clarabel.DefaultSolver(no_quadratic, cost, matrix, constant, cones, settings)
    solution = solver.solve()
    assert str(solution.status) == "Solved"
    return float(solution.obj_val)
