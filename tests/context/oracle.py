"""The same problem written for a general conic solver, straight from the objective.

Each prior has its own function here, from the field as a cvxpy expression (pixel, category),
pixels in reading order, to the value of the prior. Nothing of the operators under test is used.
The nuclear norm has a module of its own, :mod:`tests.context.nuclear_oracle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
from scipy.sparse import lil_array, vstack

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def optimum(likelihood: NDArray[np.float64], priors: list[Callable[[Any], Any]]) -> float:
    """Return the optimal objective for likelihoods (category, y, x)."""
    table = likelihood.reshape(len(likelihood), -1).T
    field = cp.Variable(table.shape, nonneg=True)
    data = -cp.sum(cp.log(cp.sum(cp.multiply(table, field), axis=1)))
    objective = cp.Minimize(data + sum(prior(field) for prior in priors))
    problem = cp.Problem(objective, [cp.sum(field, axis=1) == 1])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


def vector_tv(
    shape: tuple[int, int], weight: float, edge_weight: NDArray[np.float64] | None = None
) -> Callable[[Any], Any]:
    """Return vector TV as its docstring defines it; edge weights are (y, 2, x)."""
    right_matrix, down_matrix = _differences(shape, edge_weight)

    def expression(field: Any) -> Any:
        both = cp.hstack([right_matrix @ field, down_matrix @ field])
        return weight * cp.sum(cp.norm(both, 2, axis=1))

    return expression


def _differences(
    shape: tuple[int, int], edge_weight: NDArray[np.float64] | None = None
) -> tuple[Any, Any]:
    n_rows, n_columns = shape
    difference = [lil_array((n_rows * n_columns, n_rows * n_columns)) for _ in range(2)]
    for i in range(n_rows):
        for j in range(n_columns):
            here = i * n_columns + j
            right, down = (1.0, 1.0) if edge_weight is None else edge_weight[i, :, j]
            if j + 1 < n_columns:
                difference[0][here, here] = -right
                difference[0][here, here + 1] = right
            if i + 1 < n_rows:
                difference[1][here, here] = -down
                difference[1][here, here + n_columns] = down
    return difference[0].tocsr(), difference[1].tocsr()


def graph_tv(partitions: list[NDArray[np.int64]], weight: float) -> Callable[[Any], Any]:
    """Return graph TV; partitions are label arrays (y, x).

    The means are variables of their own: the mean of a segment is where the sum of its squared
    distances is least. So the conic solver reaches its tolerance, with means written out it stalls.
    """

    def expression(field: Any) -> Any:
        total = 0
        for partition in partitions:
            labels = np.unique(partition)
            membership = (partition.ravel()[:, np.newaxis] == labels).astype(float)
            means = cp.Variable((labels.size, field.shape[1]))
            total += cp.sum_squares(field - membership @ means)
        return weight * total

    return expression


def patch_jacobian(shape: tuple[int, int], *, patch: int, width: float) -> tuple[Any, Any]:
    """Return the two columns of all Jacobians as matrices (patch * pixel, pixel), for one class."""
    n_rows, n_columns = shape
    offset = range(-(patch // 2), patch // 2 + 1)
    kernel = {(a, b): np.exp(-(a * a + b * b) / (2 * width**2)) for a in offset for b in offset}
    seen = []
    for (a, b), value in kernel.items():
        matrix = lil_array((n_rows * n_columns, n_rows * n_columns))
        for i in range(n_rows):
            for j in range(n_columns):
                if 0 <= i + a < n_rows and 0 <= j + b < n_columns:
                    there = (i + a) * n_columns + j + b
                    matrix[i * n_columns + j, there] = np.sqrt(value / sum(kernel.values()))
        seen.append(matrix)
    stacked = vstack(seen).tocsr()
    right, down = _differences(shape)
    return stacked @ right, stacked @ down
