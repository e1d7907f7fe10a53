r"""The certificate: how far at most a field lies above the optimum.

For every field Z on the simplex and all duals Y, with q = H'Y,

.. math:: F(Z) - \min F \ \le\ gap = F(Z) + g^*(Y) - \sum_i \min_z [-\log(p_i'z) + q_i'z]

by Fenchel-Young for g, the minima over the simplex; at the optimum it is 0. Each minimum is bounded
from below by tangents of -log (:mod:`~hsreject.context.kernels.certificate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.kernels.certificate import new_bound_scratch, site_bounds
from hsreject.context.problem import Array, Certificate, Problem

if TYPE_CHECKING:
    from hsreject.context.workers import Workers


def certify(
    problem: Problem, field: Array, duals: tuple[Array, ...], pull: Array, workers: Workers
) -> Certificate:
    """Return objective and gap of a field and duals; `pull` is H'Y, summed over the terms.

    Sums are in double precision, one a row: the same for any number of threads.
    """
    rows = np.empty((field.shape[0], 2))
    workers.share(
        field.shape[0],
        lambda first, last: site_bounds(
            field, problem.probability, pull, new_bound_scratch(field.shape[1]), rows, first, last
        ),
    )
    data, bound = rows.sum(axis=0)
    prior = sum(term.value_of_field(field, workers) for term in problem.terms)
    conjugate = sum(term.conjugate(dual) for term, dual in zip(problem.terms, duals, strict=True))
    return Certificate(objective=float(data + prior), gap=float(data + prior + conjugate - bound))
