"""The same problem written for a general conic solver, straight from the objective.

Each prior has its own function here, from the field as a cvxpy expression (pixel, category),
pixels in reading order, to the value of the prior. Nothing of the operators under test is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
from scipy.sparse import lil_array

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
    right_matrix, down_matrix = (matrix.tocsr() for matrix in difference)

    def expression(field: Any) -> Any:
        both = cp.hstack([right_matrix @ field, down_matrix @ field])
        return weight * cp.sum(cp.norm(both, 2, axis=1))

    return expression


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
