"""The reference solver: ADMM as in the papers, short enough to be checked by eye."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import LinearOperator, cg

from hsreject.context.problem import Array, Problem
from hsreject.context.site_kernels import Steps, new_multipliers
from hsreject.context.solver import (
    Journal,
    Solver,
    objective_and_bound,
    settle,
    site_step,
    site_tolerance,
)
from hsreject.registry import check_number
from hsreject.threads import Threads


class ADMM(Solver):
    r"""Alternating direction method of multipliers with one split for each part of the objective.

    The field Z is copied into U (data and simplex) and into :math:`V_j = H_j Z` (priors). With
    scaled multipliers D, penalty :math:`\mu = penalty \cdot L` (L the summed strengths of the
    priors) and over-relaxation :math:`\hat A = \rho A + (1 - \rho) B` of a copy A towards its
    last value B:

    .. math::
        Z &= (I + \sum_j H_j'H_j)^{-1} (U - D_0 + \sum_j H_j'(V_j - D_j)) \\
        U &= siteprox(\hat Z + D_0, 1/\mu), & D_0 &\leftarrow D_0 + \hat Z - U \\
        V_j &= prox_{g_j/\mu}(\widehat{H_j Z} + D_j), & D_j &\leftarrow D_j + \widehat{H_j Z} - V_j

    U is on the simplex and :math:`Y_j = \mu D_j` is a subgradient of :math:`g_j`: up to rounding
    both are feasible, so that there is a certificate at any iteration.

    Parameters
    ----------
    penalty : float, above 0
        Penalty of the splits, in units of L. It changes the speed, not the answer.
    relaxation : float, 1 to below 2
        Over-relaxation rho.

    References
    ----------
    M. Afonso, J. Bioucas-Dias, M. Figueiredo, "An augmented Lagrangian approach to the
    constrained optimization formulation of imaging inverse problems", IEEE Trans. Image Process.
    20, 2011 (SALSA).
    """

    def __init__(self, *, penalty: float = 2.0, relaxation: float = 1.8) -> None:
        self.penalty = check_number("penalty", penalty, above=0)
        self.relaxation = check_number("relaxation", relaxation, least=1, below=2)

    def solve(self, problem: Problem, journal: Journal, threads: Threads) -> Array:
        """Return the field, (y, category, x), whose certificate ends the journal."""
        penalty = self.penalty * problem.strength
        rho = self.relaxation
        quadratic = quadratic_step(problem)
        terms = problem.terms
        field, duals = problem.start()
        site, site_multiplier = field, np.zeros_like(field)
        copies = [term.forward(field) for term in terms]
        multipliers = list(duals)
        while True:
            due = journal.begin_iteration()
            right = site - site_multiplier
            for term, copy, multiplier in zip(terms, copies, multipliers, strict=True):
                right = right + term.adjoint(copy - multiplier)
            field = quadratic(right, field)

            relaxed = rho * field + (1 - rho) * site + site_multiplier
            site = site_prox(relaxed, problem.probability, 1 / penalty, threads)
            # `relaxed` holds the old multiplier already, so what the prox leaves over is the new
            # one. Times the penalty it is a subgradient at the copy: a dual for the certificate.
            site_multiplier = relaxed - site
            for j, term in enumerate(terms):
                relaxed = rho * term.forward(field) + (1 - rho) * copies[j] + multipliers[j]
                copies[j] = term.prox(relaxed, 1 / penalty)
                multipliers[j] = relaxed - copies[j]

            if due:
                duals = tuple(penalty * multiplier for multiplier in multipliers)
                settled = settle(terms, site.copy(), threads)
                if journal.note(*objective_and_bound(problem, settled, duals, threads)):
                    return settled


def site_prox(point: Array, probability: Array, step: float, threads: Threads) -> Array:
    r"""Return, for every pixel of (y, category, x), the prox of data term and simplex at a point.

    .. math:: \arg\min_{x \ge 0,\ 1'x = 1} -\log(p'x) + \|x - \nu\|^2 / (2\,step)
    """
    solved = point.copy()
    steps = Steps(step, 0.0, 1.0, site_tolerance(point, step))
    multipliers = new_multipliers(point.shape, point.dtype)
    site_step(solved, probability, np.zeros_like(point), multipliers, steps, threads)
    return solved


def quadratic_step(problem: Problem) -> Callable[[Array, Array], Array]:
    """Return the function (R, first guess) -> Z that solves (I + H'H) Z = R.

    Where the DCT diagonalises H'H (a whole rectangle, Neumann borders) it is one transform forth
    and back; elsewhere conjugate gradients from the last Z, which need few steps.
    """
    spectra = [s for term in problem.terms if (s := term.gram_spectrum()) is not None]
    divisor = sum(spectra, start=np.ones(1))[:, np.newaxis]
    shape, size = problem.probability.shape, problem.probability.size

    def by_transform(right: Array, guess: Array) -> Array:
        coefficients = dctn(right, axes=(0, 2), norm="ortho")
        solved: Array = idctn(coefficients / divisor, axes=(0, 2), norm="ortho")
        return solved.astype(guess.dtype)

    def system(flat: Array) -> Array:
        field = flat.reshape(shape)
        return sum((t.adjoint(t.forward(field)) for t in problem.terms), start=field).ravel()

    operator = LinearOperator((size, size), matvec=system, dtype=np.float64)

    def by_conjugate_gradients(right: Array, guess: Array) -> Array:
        # a tolerance that falls far below what one iteration changes keeps ADMM's own convergence
        flat, _ = cg(operator, right.ravel().astype(float), guess.ravel().astype(float), rtol=1e-9)
        solved: Array = flat.reshape(shape).astype(guess.dtype)
        return solved

    return by_transform if len(spectra) == len(problem.terms) else by_conjugate_gradients
