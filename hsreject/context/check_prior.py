"""Trying a prior: what every prior must satisfy, and a sentence for what one does not."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.context.prior import Grid, Prior, Term
from hsreject.context.segsalsa import SOLVERS, SegSALSA
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]

N_CLASSES = 3
STEPS = (0.3, 2.0)
ROUNDING = 1e-9  # in double precision; sums of a small scene are known far better
TOL = 1e-4


def check_prior(prior: Prior, scene: NDArray[np.floating[Any]] | None = None) -> None:
    r"""Try a prior on a small scene, and say in words what is wrong with it.

    Everything that the solvers rely on is compared with its definition: that ``forward`` is linear
    and leaves pixels without data alone, that ``adjoint`` is its adjoint and ``squared_norm`` a
    bound of its norm, that g is convex with g(0) = 0, that ``prox`` minimises its definition, that
    ``conjugate`` is :math:`\sup_V \langle V, Y \rangle - g(V)`, that whatever else was overridden
    agrees with these, and that both solvers converge to the same certified optimum.

    Parameters
    ----------
    prior : Prior
        With the parameters to be tried; once with each interesting choice is best.
    scene : array (band, y, x), optional
        An image to try it on, NaN where there is no data. By default two small ones of five bands,
        with and without gaps. Give one where the prior fits only scenes of one size.

    Raises
    ------
    InputError
        With the method at fault and the remedy.

    Examples
    --------
    >>> import hsreject as hr
    >>> hr.check_prior(hr.VectorTV(2.0))
    >>> class TooLong(hr.VectorTV):
    ...     def bind(self, grid):
    ...         term = super().bind(grid)
    ...         term.squared_norm = 1.0
    ...         return term
    >>> hr.check_prior(TooLong(2.0))
    Traceback (most recent call last):
    hsreject.errors.InputError: squared_norm of TooLong is 1, but H'H has an eigenvalue of ...
    """
    for image in _small_scenes() if scene is None else [scene]:
        valid: NDArray[np.bool_] = np.asarray(np.isfinite(image).all(axis=0))
        grid = Grid(valid, N_CLASSES, np.dtype(np.float64), image)
        term = prior.bind(grid)
        if not isinstance(term, Term):
            raise InputError(
                f"bind of {type(prior).__name__} must return a Term (got {type(term).__name__})."
            )
        trial = _Trial(type(prior).__name__, term)
        trial.check_operator()
        trial.check_nodata()
        trial.check_norm()
        trial.check_function()
        for step in STEPS:
            trial.check_prox(step)
        trial.check_shortcuts()
        trial.check_spectrum()
        _check_solution(prior, image, valid)


def _small_scenes() -> Iterator[Array]:
    """Yield a whole scene, and one with a hole, a missing corner and a pixel on its own."""
    image = np.random.default_rng(0).standard_normal((5, 7, 9))
    image[:, :, 5:] += 4.0
    yield image
    gaps = image.copy()
    gaps[:, 2:4, 3:5] = np.nan
    gaps[:, -2:, -3:] = np.nan
    gaps[:, -1, -1] = 0.0
    yield gaps


class _Trial:
    """A term, with random fields and coefficients to try it with."""

    def __init__(self, name: str, term: Term) -> None:
        self.name = name
        self.term = term
        self._random = np.random.default_rng(1)
        self.shape = term.forward(np.zeros(term.grid.shape)).shape

    def field(self) -> Array:
        return self._random.standard_normal(self.term.grid.shape)

    def coefficients(self, scale: float = 2.0) -> Array:
        return scale * self._random.standard_normal(self.shape)

    def fail(self, method: str, what: str) -> InputError:
        return InputError(f"{method} of {self.name} {what}")

    def check_operator(self) -> None:
        """Check that H is linear and that `adjoint` is its adjoint."""
        term, first, second, dual = self.term, self.field(), self.field(), self.coefficients()
        if not _close(
            term.forward(first + 2 * second), term.forward(first) + 2 * term.forward(second)
        ):
            raise self.fail(
                "forward",
                "is not linear: H(A + 2B) is not H A + 2 H B. Put what is not linear into value.",
            )
        back = term.adjoint(dual)
        if back.shape != term.grid.shape:
            raise self.fail(
                "adjoint",
                f"must return a field of the shape {term.grid.shape} (got {back.shape}).",
            )
        forth, back_again = np.vdot(term.forward(first), dual), np.vdot(first, back)
        if not _close(forth, back_again):
            raise self.fail(
                "adjoint",
                f"is not the adjoint of forward: <H Z, V> is {forth:.6g} but <Z, H'V> is "
                f"{back_again:.6g}. Transpose every step of forward, in reverse order.",
            )

    def check_nodata(self) -> None:
        """Check that pixels without data are coupled with nothing."""
        field = self.field()
        invalid = np.broadcast_to(~self.term.grid.valid[:, None], field.shape)
        if not np.array_equal(
            self.term.forward(field), self.term.forward(np.where(invalid, 9.0, field))
        ):
            raise self.fail(
                "forward",
                "depends on pixels without data. Multiply by grid.valid of all pixels it couples.",
            )

    def check_norm(self) -> None:
        """Check the bound of the norm, from below by power iteration."""
        field, largest = self.field(), 0.0
        for _ in range(200):
            norm = float(np.linalg.norm(field))
            if norm == 0:
                break
            field = self.term.adjoint(self.term.forward(field / norm))
            largest = float(np.linalg.norm(field))
        bound = self.term.squared_norm
        if not largest <= bound * (1 + ROUNDING) < np.inf:
            raise self.fail(
                "squared_norm",
                f"is {bound:g}, but H'H has an eigenvalue of {largest:.6g}: the solver would "
                "diverge. Return an upper bound, the largest sum of squares that can meet.",
            )

    def check_function(self) -> None:
        """Check that g is convex, and 0 at 0 like its conjugate."""
        term, zero = self.term, np.zeros(self.shape)
        for method, at_zero in (("value", term.value(zero)), ("conjugate", term.conjugate(zero))):
            if not abs(at_zero) <= ROUNDING:
                raise self.fail(method, f"is {at_zero:g} at 0. It must be 0 there.")
        one = self.coefficients()
        for two in (zero, 3 * one, self.coefficients()):
            mean = 0.5 * (term.value(one) + term.value(two))
            if not term.value(0.5 * (one + two)) <= mean + ROUNDING * (1 + abs(mean)):
                raise self.fail(
                    "value",
                    "is not convex: halfway between two points it is above their mean. Only convex "
                    "priors have the one optimum that the certificate speaks of.",
                )

    def check_prox(self, step: float) -> None:
        """Check prox, conjugate and prox of the conjugate at one point.

        U = prox(V) holds if and only if Y = (V - U) / step is a subgradient of g at U, which means
        g(W) >= g(U) + <Y, W - U> for all W, and g(U) + g*(Y) = <U, Y>.
        """
        term, point = self.term, self.coefficients()
        primal = term.prox(point, step)
        dual = (point - primal) / step
        value = term.value(primal)
        near = (primal + 1e-3 * self.coefficients() for _ in range(20))
        far = (self.coefficients() for _ in range(20))
        for other in (0 * point, point, 0.9 * primal, 1.1 * primal, *near, *far):
            least = value + float(np.vdot(dual, other - primal))
            if not term.value(other) >= least - ROUNDING * (1 + abs(value) + abs(least)):
                raise self.fail(
                    "prox",
                    f"does not minimise value(U) + |U - V|^2 / (2 step) for step {step:g}: another "
                    "U is better. Derive it from value, with its weight times the step.",
                )
        conjugate, wanted = term.conjugate(dual), float(np.vdot(primal, dual)) - value
        if not _close(conjugate, wanted, 1 + abs(value)):
            raise self.fail(
                "conjugate",
                f"is {conjugate:.6g} where it should be {wanted:.6g}, sup <V, Y> - value(V). "
                "For a norm it is 0, with room for rounding, up to the dual norm, else infinite.",
            )
        moved = term.prox_conjugate(point, step)
        if not _close(moved, point - step * term.prox(point / step, 1 / step)):
            raise self.fail(
                "prox_conjugate", "is not V - step prox(V / step, 1 / step). Leave it out."
            )

    def check_shortcuts(self) -> None:
        """Check the methods that may be overridden to be faster."""
        term, field = self.term, self.field()
        dual = term.prox_conjugate(self.coefficients(1.0), 0.5)
        summed, moved = field.copy(), dual.copy()
        with Threads(2) as threads:
            term.add_adjoint(dual, summed, threads)
            term.update_dual(moved, field, step=0.7, relaxation=1.6, threads=threads)
            value = term.value_of_field(field, threads)
        target = term.prox_conjugate(dual + 0.7 * term.forward(field), 0.7)
        for method, found, wanted in (
            ("add_adjoint", summed, field + term.adjoint(dual)),
            ("update_dual", moved, dual + 1.6 * (target - dual)),
            ("value_of_field", value, term.value(term.forward(field))),
        ):
            if not _close(found, wanted):
                raise self.fail(
                    method, "is not what its docstring in Term defines. Leave it out, or mend it."
                )

    def check_spectrum(self) -> None:
        """Check the eigenvalues of H'H on a field of cosines, if they are given."""
        spectrum = self.term.gram_spectrum()
        if spectrum is None:
            return
        n_rows, n_classes, n_columns = self.term.grid.shape
        for i in range(n_rows):
            for j in range(n_columns):
                row = np.cos(np.pi * i * (np.arange(n_rows) + 0.5) / n_rows)
                column = np.cos(np.pi * j * (np.arange(n_columns) + 0.5) / n_columns)
                wave = np.repeat(np.outer(row, column)[:, None], n_classes, axis=1)
                if not _close(self.term.adjoint(self.term.forward(wave)), spectrum[i, j] * wave):
                    raise self.fail(
                        "gram_spectrum", "is not the spectrum of H'H. Return None instead."
                    )


def _check_solution(prior: Prior, image: Array, valid: NDArray[np.bool_]) -> None:
    """Check that both solvers converge, and to the same optimum."""
    name = type(prior).__name__
    random = np.random.default_rng(2).dirichlet(np.ones(N_CLASSES), valid.shape)
    probability = np.where(valid, random.transpose(2, 0, 1), np.nan)
    objectives = []
    for solver in SOLVERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            result = SegSALSA(prior, solver=solver, tol=TOL).solve(probability, image=image)
        if not result.converged:
            raise InputError(
                f"SegSALSA with {name} and solver '{solver}' stops at a relative gap of "
                f"{result.relative_gap:.2g} after {result.n_iterations} iterations. Check that "
                "forward, prox and conjugate also hold in float32, and that strength is right "
                "within a factor of ten."
            )
        objectives.append(result.objective)
    if not abs(objectives[0] - objectives[1]) <= 2 * TOL * max(map(abs, objectives)) + TOL:
        raise InputError(
            f"The solvers disagree about the optimum with {name}: {objectives[0]:.6g} and "
            f"{objectives[1]:.6g}. Check that value_of_field is value(forward(field))."
        )


def _close(found: Any, wanted: Any, scale: float = 1.0) -> bool:
    """Return whether two results agree but for rounding."""
    if np.shape(found) != np.shape(wanted):
        return False
    size = max(scale, float(np.max(np.abs(wanted), initial=0.0)))
    return bool(np.max(np.abs(np.subtract(found, wanted)), initial=0.0) <= ROUNDING * size)
