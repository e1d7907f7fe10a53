"""The quadratic step of ADMM: (I + H'H) Z = R."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import LinearOperator, cg

if TYPE_CHECKING:
    from collections.abc import Callable

    from hsreject.context.problem import Array, Problem


def quadratic_step(problem: Problem) -> Callable[[Array, Array], Array]:
    """Return the function (R, first guess) -> Z.

    Where the DCT diagonalises H'H (a whole rectangle, Neumann borders) it is one transform forth
    and back; elsewhere conjugate gradients from the last Z, which need few steps.
    """
    spectra = [term.gram_spectrum() for term in problem.terms]
    known = [spectrum for spectrum in spectra if spectrum is not None]
    if len(known) < len(spectra):
        return _by_conjugate_gradients(problem)
    divisor = (1 + sum(known, start=np.zeros(1)))[:, np.newaxis]

    def by_transform(right: Array, guess: Array) -> Array:
        coefficients = dctn(right, axes=(0, 2), norm="ortho")
        solved: Array = idctn(coefficients / divisor, axes=(0, 2), norm="ortho")
        return solved.astype(guess.dtype)

    return by_transform


def _by_conjugate_gradients(problem: Problem) -> Callable[[Array, Array], Array]:
    shape = problem.probability.shape
    size = problem.probability.size

    def system(flat: Array) -> Array:
        field = flat.reshape(shape)
        return sum((t.adjoint(t.forward(field)) for t in problem.terms), start=field).ravel()

    operator = LinearOperator((size, size), matvec=system, dtype=np.float64)

    def solve(right: Array, guess: Array) -> Array:
        # a tolerance that falls far below what one iteration changes keeps ADMM's own convergence
        flat, _ = cg(operator, right.ravel().astype(float), guess.ravel().astype(float), rtol=1e-9)
        solved: Array = flat.reshape(shape).astype(guess.dtype)
        return solved

    return solve
