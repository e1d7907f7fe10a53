"""Trying a prior: what every prior must satisfy, and a sentence for what one does not."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.context.prior import Grid, Prior, Term
from hsreject.context.problem import STRONGEST
from hsreject.context.segsalsa import SOLVERS, SegSALSA, SegSALSAResult
from hsreject.context.solver import into_domain
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.schema import CUBE_DIMS
from hsreject.threads import Threads

Array = NDArray[np.floating[Any]]

STEPS = (0.3, 2.0)  # of the prox, in units of the slope of g
ROUNDING = 1e-9  # in double precision; sums of a small scene are known far better
SINGLE = 1e-3  # in single precision
TOL = 1e-4
SIDE, BLOCK = 48, 8  # pixels of a larger scene, and of a block in its middle
CHANGED = {"add_adjoint": 1, "update_dual": 0}  # which argument a method changes in place
PROPERTIES = {"squared_norm", "strength"}
NUMBERS = {"value", "conjugate", "value_of_field", *PROPERTIES}
LESS_THAN_A_CLASS = 0.05  # of a hidden field, between whose two largest values a label is in doubt
OTHER_LABELS = 0.02  # share of the clear labels of a block that may differ from the whole scene


def check_prior(
    prior: Prior, scene: NDArray[np.floating[Any]] | None = None, *, n_classes: int = 3
) -> None:
    r"""Try a prior on a small scene, and say in words what is wrong with it.

    Everything that the solvers rely on is compared with its definition: that ``forward`` is linear
    and leaves pixels without data alone, that ``adjoint`` is its adjoint and ``squared_norm`` a
    bound of its norm, that g is convex, that ``prox`` minimises its definition, that ``conjugate``
    is :math:`\sup_V \langle V, Y \rangle - g(V)`, that whatever else was overridden agrees with
    these, that no method changes what it is given, that single precision and a class of rejection
    are understood, that both solvers come to certificates that agree, and that a block with its
    halo has the labels of the scene. Where the prior outweighs the data by far (a ``strength`` of
    15 or more, or a constraint) solvers may be slow, and need not converge here.

    Parameters
    ----------
    prior : Prior
        With the parameters to be tried; once with each interesting choice is best.
    scene : array (band, y, x), optional
        An image to try it on, NaN where there is no data. By default two small ones of five bands,
        with and without gaps, and a larger one. Give one where the prior fits only scenes of one
        size.
    n_classes : int
        How many classes the fields have. Say it where the prior has parameters for each class.

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
    _check_declarations(prior)
    for image in _small_scenes() if scene is None else [scene]:
        trial = _Trial(prior, image, n_classes)
        trial.check_operator()
        trial.check_nodata()
        trial.check_norm()
        trial.check_function()
        for step in STEPS:
            trial.check_prox(step)
        trial.check_shortcuts()
        trial.check_spectrum()
        trial.check_single_precision()
        trial.check_rejection_class()
        _check_solution(prior, trial)
    if scene is None:
        large = _Trial(prior, _image(SIDE, SIDE), n_classes)
        large.check_norm()
        _check_blocks(prior, large)


def _image(n_rows: int, n_columns: int) -> Array:
    image = np.random.default_rng(0).standard_normal((5, n_rows, n_columns))
    image[:, :, n_columns // 2 + 1 :] += 4.0
    return image


def _small_scenes() -> Iterator[Array]:
    """Yield a whole scene, and one with a hole, a missing corner and a pixel on its own."""
    yield _image(7, 9)
    gaps = _image(7, 9)
    gaps[:, 2:4, 3:5] = np.nan
    gaps[:, -2:, -3:] = np.nan
    gaps[:, -1, -1] = 0.0
    yield gaps


def _fault(method: str, prior: Prior, what: str) -> InputError:
    return InputError(f"{method} of {type(prior).__name__} {what}")


def _watched(prior: Prior, method: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a method returns; say so if it fails, or changes what it was given."""
    arrays = [array for array in arguments if isinstance(array, np.ndarray)]
    before = [array.copy() for array in arrays]
    try:
        returned = call(*arguments)
    except Exception as error:  # whatever a new prior may raise
        if isinstance(error, InputError):  # it says itself what is wrong
            raise
        raise _fault(
            method, prior, f"fails: {type(error).__name__}: {error}. Its shapes and types are at "
            "fault, or something that it takes for granted of the grid."
        ) from error  # fmt: skip
    for place, (array, old) in enumerate(zip(arrays, before, strict=True)):
        if place != CHANGED.get(method) and not np.array_equal(array, old, equal_nan=True):
            raise _fault(method, prior, "changes an array that it is given. Work on a copy.")
    if method in NUMBERS and (not isinstance(returned, Real) or math.isnan(returned)):
        raise _fault(method, prior, f"must be a number (got {returned!r:.60}).")
    return returned


class _Watched:
    """A term whose methods are watched."""

    def __init__(self, prior: Prior, term: Term) -> None:
        self._prior, self._term = prior, term

    def __getattr__(self, name: str) -> Any:
        if name in PROPERTIES or not callable(getattr(type(self._term), name, None)):
            return _watched(self._prior, name, lambda: getattr(self._term, name))
        method = getattr(self._term, name)
        return lambda *arguments, **options: _watched(
            self._prior, name, partial(method, **options), *arguments
        )


def _check_declarations(prior: Prior) -> None:
    """Check what a prior says of itself: numbers of at least 0, or that it does not say."""
    for name, least in (("halo", 0), ("working_size", 1), ("n_guide_layers", 0)):
        said = _watched(prior, name, lambda name=name: getattr(prior, name))
        may_be_none = name == "halo" and said is None
        if not may_be_none and (not isinstance(said, int | np.integer) or said < least):
            raise _fault(name, prior, f"must be a whole number, at least {least} (got {said!r}).")


class _Trial:
    """A prior bound to a scene, with random fields and coefficients to try it with."""

    def __init__(self, prior: Prior, image: Array, n_classes: int) -> None:
        self.prior, self.image = prior, image
        self.valid: NDArray[np.bool_] = np.asarray(np.isfinite(image).all(axis=0))
        self.grid = Grid(self.valid, n_classes, np.dtype(np.float64), image)
        self.term: Any = self.bound(self.grid)
        self._random = np.random.default_rng(1)
        self.shape = np.shape(self.term.forward(np.zeros(self.grid.shape)))
        self.slope = self._slope()

    def bound(self, grid: Grid) -> Any:
        """Return the prior's term on a grid, watched."""
        parts = (grid.valid, grid.image)
        term = _watched(self.prior, "bind", lambda *_: self.prior.bind(grid), *parts)
        if not isinstance(term, Term):
            raise _fault("bind", self.prior, f"must return a Term (got {type(term).__name__}).")
        return _Watched(self.prior, term)

    def _slope(self) -> float:
        """Return about how large the slopes of g are, so that any weight is tried alike."""
        point = self.coefficients()
        value = self.term.value(point)
        size = float(np.abs(point).sum())
        return value / size if 0 < value < np.inf and size > 0 else 1.0

    def field(self) -> Array:
        return self._random.standard_normal(self.grid.shape)

    def coefficients(self, scale: float = 2.0) -> Array:
        return np.asarray(scale * self._random.standard_normal(self.shape))

    def fail(self, method: str, what: str) -> InputError:
        return _fault(method, self.prior, what)

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
        if np.shape(back) != self.grid.shape:
            raise self.fail(
                "adjoint",
                f"must return a field of the shape {self.grid.shape} (got {np.shape(back)}).",
            )
        forth, back_again = np.vdot(term.forward(first), dual), np.vdot(first, back)
        if not _close(forth, back_again):
            raise self.fail(
                "adjoint",
                f"is not the adjoint of forward: <H Z, V> is {forth:.6g} but <Z, H'V> is "
                f"{back_again:.6g}. Transpose every step of forward, in reverse order.",
            )
        start = term.new_dual()
        if np.shape(start) != self.shape or np.any(start):
            raise self.fail("new_dual", f"must return zeros of the shape of H Z, {self.shape}.")

    def check_nodata(self) -> None:
        """Check that pixels without data are coupled with nothing."""
        field = self.field()
        invalid = np.broadcast_to(~self.valid[:, None], field.shape)
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
        """Check that g is convex, 0 at 0 unless it is a constraint, and not negative."""
        term, zero = self.term, np.zeros(self.shape)
        at_zero = term.value(zero)
        if not (abs(at_zero) <= ROUNDING or at_zero == np.inf):
            raise self.fail("value", f"is {at_zero:g} at 0. It must be 0 there.")
        one = self.coefficients()
        values = []
        for two in (zero, 3 * one, self.coefficients()):
            mean = 0.5 * (term.value(one) + term.value(two))
            values.append(mean)
            if not term.value(0.5 * (one + two)) <= mean + ROUNDING * (1 + abs(mean)):
                raise self.fail(
                    "value",
                    "is not convex: halfway between two points it is above their mean. Only convex "
                    "priors have the one optimum that the certificate speaks of.",
                )
        conjugate = term.conjugate(zero)
        if min(values) >= 0 and not abs(conjugate) <= ROUNDING:
            raise self.fail("conjugate", f"is {conjugate:g} at 0. It must be 0 there.")
        field = self.distributions()
        feasible = term.feasible(field)
        if np.shape(feasible) != field.shape or not (
            np.min(feasible) >= 0 and _close(feasible.sum(axis=1), field.sum(axis=1))
        ):
            raise self.fail(
                "feasible", "must return distributions: at least 0 and with the sum 1 per pixel."
            )
        value = term.value(term.forward(feasible))
        if not -ROUNDING <= value < np.inf:
            infinite = "infinite where the field is feasible. Write feasible, and leave value room "
            raise self.fail(
                "value",
                infinite + "for rounding."
                if value > 0
                else f"is negative ({value:.3g}) for distributions. Add what makes it at least 0: "
                "a number per pixel does not change the optimum.",
            )

    def distributions(self) -> Array:
        """Return a random field on the simplex."""
        n_rows, n_classes, n_columns = self.grid.shape
        drawn = self._random.dirichlet(np.ones(n_classes), (n_rows, n_columns))
        field: Array = np.ascontiguousarray(drawn.transpose(0, 2, 1))
        return field

    def check_prox(self, step: float) -> None:
        """Check prox, conjugate and prox of the conjugate at one point.

        U = prox(V) holds if and only if Y = (V - U) / step is a subgradient of g at U, which means
        g(W) >= g(U) + <Y, W - U> for all W, and g(U) + g*(Y) = <U, Y>. Elsewhere
        g(W) + g*(Y) >= <W, Y>, which a ball that is too large fails just outside of the right one.
        """
        term, point, step = self.term, self.coefficients(), step / self.slope
        primal = term.prox(point, step)
        if np.shape(primal) != self.shape:
            raise self.fail("prox", f"must return the shape {self.shape} (got {primal.shape}).")
        dual = (point - primal) / step
        value = term.value(primal)
        near = (primal + 1e-3 * self.coefficients() for _ in range(20))
        far = (self.coefficients() for _ in range(20))
        for other in (0 * point, point, 0.9 * primal, 1.1 * primal, *near, *far):
            least = value + float(np.vdot(dual, other - primal))
            slack = ROUNDING * (self.slope + abs(value) + abs(least))
            if not term.value(other) >= least - slack:
                raise self.fail(
                    "prox",
                    f"does not minimise value(U) + |U - V|^2 / (2 step) for step {step:g}: another "
                    "U is better. Derive it from value, with its weight times the step.",
                )
        dual, conjugate = into_domain(term, dual)
        wanted = float(np.vdot(primal, dual)) - value
        if not _close(conjugate, wanted, self.slope + abs(value)):
            raise self.fail(
                "conjugate",
                f"is {conjugate:.6g} where it should be {wanted:.6g}, sup <V, Y> - value(V). "
                "For a norm it is 0 up to the dual norm, else infinite.",
            )
        for outside in (1.001 * dual, 2 * dual, self.slope * self.coefficients(10.0)):
            known = term.conjugate(outside)
            for other in (primal, 100 * primal, 100 * self.coefficients()):
                least = float(np.vdot(other, outside)) - term.value(other)
                if known < least - ROUNDING * (self.slope + abs(least)):
                    raise self.fail(
                        "conjugate",
                        f"is {known:.6g} where sup <V, Y> - value(V) is at least {least:.6g}: the "
                        "certificate would lie. For a norm it is infinite beyond the dual norm.",
                    )
        moved = term.prox_conjugate(point, step)
        if not _close(moved, point - step * term.prox(point / step, 1 / step)):
            raise self.fail(
                "prox_conjugate", "is not V - step prox(V / step, 1 / step). Leave it out."
            )

    def check_shortcuts(self) -> None:
        """Check the methods that may be overridden to be faster."""
        term, field = self.term, self.field()
        dual = term.prox_conjugate(self.coefficients(self.slope), 0.5 * self.slope)
        summed, moved = field.copy(), dual.copy()
        step = 0.7 * self.slope
        with Threads(2) as threads:
            term.add_adjoint(dual, summed, threads)
            term.update_dual(moved, field, step=step, relaxation=1.6, threads=threads)
            value = term.value_of_field(field, threads)
        target = term.prox_conjugate(dual + step * term.forward(field), step)
        wanted_value = term.value(term.forward(field))
        for method, found, wanted in (
            ("add_adjoint", summed, field + term.adjoint(dual)),
            ("update_dual", moved, dual + 1.6 * (target - dual)),
            ("value_of_field", value, wanted_value),
        ):
            if not _close(found, wanted, min(1.0, self.slope)):
                raise self.fail(
                    method, "is not what its docstring in Term defines. Leave it out, or mend it."
                )
        if not 0 <= term.strength < np.inf:
            raise self.fail("strength", f"must be a number of at least 0 (got {term.strength!r}).")

    def check_spectrum(self) -> None:
        """Check the eigenvalues of H'H on a field of cosines, if they are given."""
        spectrum = self.term.gram_spectrum()
        if spectrum is None:
            return
        n_rows, n_classes, n_columns = self.grid.shape
        for i, j in np.ndindex(n_rows, n_columns):
            row = np.cos(np.pi * i * (np.arange(n_rows) + 0.5) / n_rows)
            column = np.cos(np.pi * j * (np.arange(n_columns) + 0.5) / n_columns)
            wave = np.repeat(np.outer(row, column)[:, None], n_classes, axis=1)
            if np.shape(spectrum) != (n_rows, n_columns) or not _close(
                self.term.adjoint(self.term.forward(wave)), spectrum[i, j] * wave
            ):
                raise self.fail("gram_spectrum", "is not the spectrum of H'H. Return None instead.")

    def check_single_precision(self) -> None:
        """Check that single precision stays single, and is as right as it can be."""
        single = self.bound(replace(self.grid, dtype=np.dtype(np.float32)))
        field, point = self.field(), self.coefficients()
        step, slope = float(STEPS[0] / self.slope), float(self.slope)
        for method, arguments in (
            ("forward", (field,)),
            ("adjoint", (point,)),
            ("prox", (point, step)),
            ("prox_conjugate", (point, slope)),
            ("feasible", (self.distributions(),)),
        ):
            found = getattr(single, method)(arguments[0].astype(np.float32), *arguments[1:])
            if found.dtype != np.float32:
                raise self.fail(
                    method,
                    f"returns {found.dtype} for float32. Make arrays of grid.dtype, and multiply "
                    "by plain numbers, which keep the precision.",
                )
            wanted = getattr(self.term, method)(*arguments)
            if not _close(found, wanted, rounding=SINGLE):
                raise self.fail(method, "is not the same in float32 as in float64.")

    def check_rejection_class(self) -> None:
        """Check that joint rejection, which adds a class, can use the prior."""
        n_classes = self.grid.n_classes + 1
        joint = replace(self.grid, n_classes=n_classes, n_rejection_classes=1)
        try:
            self.bound(joint).value(self.bound(joint).forward(np.ones(joint.shape)))
        except InputError as error:
            raise InputError(
                f"With a class of rejection, as in joint rejection: {error} The field has "
                "grid.n_classes classes, and the last grid.n_rejection_classes are rejection."
            ) from error


def _solved(prior: Prior, trial: _Trial, **options: Any) -> SegSALSAResult[NDArray[Any]]:
    """Return the solution of random probabilities."""
    random = np.random.default_rng(2).dirichlet(np.ones(trial.grid.n_classes), trial.valid.shape)
    probability = np.where(trial.valid, random.transpose(2, 0, 1), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        max_iter = 2000 if trial.term.strength < STRONGEST else 300
        segsalsa = SegSALSA(prior, tol=TOL, max_iter=max_iter, **options)
        result: SegSALSAResult[NDArray[Any]] = _watched(
            prior, "solving", lambda: segsalsa.solve(probability, image=trial.image)
        )
        return result


def _check_solution(prior: Prior, trial: _Trial) -> None:
    """Check that both solvers come to certificates, in both precisions, that agree."""
    results = []
    for solver in SOLVERS:
        for dtype in ("float32", "float64"):
            result = _solved(prior, trial, solver=solver, dtype=dtype)
            slow = not result.converged and trial.term.strength < STRONGEST
            if slow or not math.isfinite(result.gap):
                raise InputError(
                    f"SegSALSA with {type(prior).__name__} and solver '{solver}' stops at a "
                    f"relative gap of {result.relative_gap:.2g} after {result.n_iterations} "
                    f"iterations in {dtype}. Check that forward, prox and conjugate also hold in "
                    "float32, and that strength is right within a factor of ten."
                )
            results.append(result)
    optimum = max(result.objective - result.gap for result in results)
    least = min(result.objective for result in results)
    if optimum > least * (1 + TOL) + TOL:
        raise InputError(
            f"The certificates of {type(prior).__name__} contradict each other: the optimum is at "
            f"least {optimum:.6g} by one and at most {least:.6g} by another. Check that "
            "value_of_field is value(forward(field)), and fuse if there is one."
        )


def _check_blocks(prior: Prior, trial: _Trial) -> None:
    """Check that a block with its halo, guided but without image, has the labels of the scene."""
    halo = prior.halo
    first, last = (SIDE - BLOCK) // 2, (SIDE + BLOCK) // 2
    if halo is None or halo > first:
        return
    context = SegSALSA(prior, tol=TOL)
    layers = np.empty((0, SIDE, SIDE))
    if prior.n_guide_layers:
        cube = xr.DataArray(trial.image, dims=CUBE_DIMS)
        guide = _watched(prior, "guide", lambda: prior.guide(cube))
        if not isinstance(guide, xr.DataArray) or guide.shape[0] != prior.n_guide_layers:
            raise _fault("guide", prior, f"must have n_guide_layers = {prior.n_guide_layers}.")
        layers = guide.values
    whole = _solved(prior, trial)
    part = (slice(None), slice(first - halo, last + halo), slice(first - halo, last + halo))
    block = _watched(prior, "in_block", lambda: context.in_block(layers[part]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        try:
            alone = block.solve(whole.probability[part])
        except InputError as error:
            raise _fault("in_block", prior, f"gives a prior that does not work: {error}") from error
    inside = slice(halo, halo + BLOCK)
    field = whole.hidden_field[:, first:last, first:last]
    clear = np.ptp(np.sort(field, axis=0)[-2:], axis=0) > LESS_THAN_A_CLASS
    differ = (alone.label[inside, inside] != whole.label[first:last, first:last])[clear]
    if differ.size and differ.mean() > OTHER_LABELS:
        raise _fault(
            "halo",
            prior,
            f"of {halo} pixels is too small: {differ.mean():.0%} of the labels of a block are not "
            "those of the scene. Raise it, or return None.",
        )


def _close(found: Any, wanted: Any, scale: float = 1.0, rounding: float = ROUNDING) -> bool:
    """Return whether two results agree but for rounding."""
    if np.shape(found) != np.shape(wanted):
        return False
    if np.array_equal(found, wanted):  # both may be infinite
        return True
    size = max(scale, float(np.max(np.abs(wanted), initial=0.0)))
    return bool(np.max(np.abs(np.subtract(found, wanted)), initial=0.0) <= rounding * size)
