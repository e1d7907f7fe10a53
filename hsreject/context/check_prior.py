"""Trying a prior: what every prior must satisfy, and what to say when one does not."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from hsreject.context.prior import Grid, Prior, Term
from hsreject.context.problem import STRONGEST
from hsreject.context.segsalsa import SOLVERS, SegSALSA
from hsreject.context.solver import into_domain
from hsreject.errors import InputError, NotConvergedWarning, UncheckedWarning
from hsreject.registry import check_count
from hsreject.schema import CUBE_DIMS
from hsreject.threads import Threads

Array = NDArray[np.floating[Any]]

STEPS = (0.01, 0.3, 2.0, 50.0)  # of the prox, in units of the slope of g
ROUNDING = 1e-9  # in double precision; sums of a small scene are known far better
SINGLE = 1e-3  # in single precision
TOL = 1e-4
MAX_ITER = 4000  # weights of a million need up to 3000 on the small scenes
SIDE, SQUARE = 48, 6  # pixels of a larger scene, and of its squares
BLOCK, N_BLOCKS = 64, 4  # pixels and number of the blocks in the middle of a scene with halos
FIELDS = 3  # pixels per unit of strength: smaller fields are lost, wider ones tell halos less apart
EVIDENCE = 1.5  # 76 % of the labels of three classes are right pixel by pixel
SAME_LABELS = 0.985  # at least: those of one field in fifty may fall either way
MOST_WORK, LITTLE_WORK = 2.5e9, 7e7  # about a minute and a second
CHANGED = {"add_adjoint": 1, "update_dual": 0}  # which argument a method changes in place
PROPERTIES = {"squared_norm", "strength"}
NUMBERS = {"value", "conjugate", "value_of_field", *PROPERTIES}


def check_prior(
    prior: Prior, scene: NDArray[np.floating[Any]] | None = None, *, n_classes: int = 3
) -> None:
    r"""Try a prior on a small scene, and say in words what is wrong with it.

    Everything that the solvers rely on is compared with its definition: that ``forward`` is linear
    and leaves pixels without data alone, that ``adjoint`` is its adjoint and ``squared_norm`` a
    bound of its norm, that g is convex, that ``prox`` minimises its definition, that ``conjugate``
    is :math:`\sup_V \langle V, Y \rangle - g(V)`, that whatever else was overridden agrees with
    these, that no method changes what it is given, that single precision and a class of rejection
    are understood, that both solvers converge to certificates that agree, and that blocks with
    their halo have the labels of a scene that is wider than block and halo. Beyond a ``strength``
    of 15, where uneven priors are slow, the gap that must be reached grows with its square.

    The scene for halos has fields whose width grows with the ``strength``, 76 % of whose labels
    the probabilities alone give right. A prior with a parameter ``weight`` is also tried with up
    to 16 times of it, as far as that takes about a second: a halo is a function of the weight.

    Parameters
    ----------
    prior : Prior
        With the parameters to be tried; call it once per interesting choice.
    scene : array (band, y, x), optional
        An image to try it on, NaN where there is no data. By default two small ones of five bands,
        with and without gaps, one of a row, one of a column, and a larger one. Give one where the
        prior fits only scenes of one size.
    n_classes : int
        How many classes the fields have. Say it where the prior has parameters for each class.

    Raises
    ------
    InputError
        With the method at fault and the remedy.

    Warns
    -----
    UncheckedWarning
        If the halo is so wide that a scene for it would take more than a minute.

    See Also
    --------
    hsreject.Prior : what it checks.
    hsreject.load_plugins : makes a checked prior known by name.

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
    if not isinstance(prior, Prior):
        raise InputError(
            f"check_prior tries a prior, such as hsreject.VectorTV(weight=2) (got {prior!r:.60}). "
            "Give it with its parameters: not its class or name."
        )
    for name, least in (("halo", 0), ("working_size", 1), ("n_guide_layers", 0)):
        number = _watched(prior, name, partial(getattr, prior, name))
        if not (name == "halo" and number is None):
            check_count(f"{name} of {type(prior).__name__}", number, least=least)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        for image in _small_scenes() if scene is None else [scene]:
            trial = _Trial(prior, image, n_classes)
            trial.check_members()
            trial.check_solution()
        for n_rows, n_columns in ((1, 9), (9, 1)) if scene is None else ():
            try:
                trial = _Trial(prior, _image(n_rows, n_columns), n_classes)
                trial.check_members()
                trial.solved(max_iter=8)  # a fault would be one of shapes
            except InputError as error:
                narrow = f"On a scene of {n_rows} rows and {n_columns} columns: "
                raise InputError(narrow + str(error)) from error
        if scene is None:
            _Trial(prior, _image(SIDE, SIDE), n_classes).check_norm()
            _check_halo(prior, n_classes)


def _image(n_rows: int, n_columns: int) -> Array:
    image = np.random.default_rng(0).standard_normal((5, n_rows, n_columns))
    image[:, :, n_columns // 2 + 1 :] += 4.0
    return image


def _small_scenes() -> tuple[Array, Array]:
    """Return a whole scene, and one with a hole, a missing corner and a pixel on its own."""
    gaps = _image(7, 9)
    gaps[:, 2:4, 3:5] = np.nan
    gaps[:, -2:, -3:] = np.nan
    gaps[:, -1, -1] = 0.0
    return _image(7, 9), gaps


def _fault(prior: Prior, sentence: str) -> InputError:
    """Return the error of a sentence whose first word is the member at fault."""
    member, what = sentence.split(" ", 1)
    return InputError(f"{member} of {type(prior).__name__} {what}")


def _watched(
    prior: Prior, member: str, call: Callable[..., Any], *arguments: Any, **options: Any
) -> Any:
    """Return what a member returns; say so if it fails, or changes what it was given."""
    arrays = [array for array in arguments if isinstance(array, np.ndarray)]
    before = [array.copy() for array in arrays]
    try:
        returned = call(*arguments, **options)
    except InputError:  # its own message says what is wrong
        raise
    except Exception as error:  # whatever a new prior may raise
        what = f"{member} fails: {type(error).__name__}: {error}. Its shapes and types are at fault"
        raise _fault(prior, what + ", or something that it assumes of the grid.") from error
    for place, (array, old) in enumerate(zip(arrays, before, strict=True)):
        if place != CHANGED.get(member) and not np.array_equal(array, old, equal_nan=True):
            raise _fault(prior, f"{member} changes an array that it is given. Work on a copy.")
    if member in NUMBERS and (not isinstance(returned, Real) or math.isnan(returned)):
        raise _fault(prior, f"{member} must be a number (got {returned!r:.60}).")
    return returned


class _Watched:
    """A prior's term whose members are watched."""

    def __init__(self, prior: Prior, term: Term) -> None:
        self._prior, self._term = prior, term

    def __getattr__(self, name: str) -> Any:
        if name in PROPERTIES or not callable(getattr(type(self._term), name, None)):
            return _watched(self._prior, name, lambda: getattr(self._term, name))
        return partial(_watched, self._prior, name, getattr(self._term, name))


class _Trial:
    """A prior bound to a scene, with random fields and coefficients to try it with."""

    def __init__(self, prior: Prior, image: Array, n_classes: int, n_rejection: int = 0) -> None:
        self.prior, self.image = prior, image
        self.valid: NDArray[np.bool_] = np.asarray(np.isfinite(image).all(axis=0))
        double = np.dtype(np.float64)
        self.grid = Grid(self.valid, n_classes, double, image, n_rejection_classes=n_rejection)
        self.term = self.bound(self.grid)
        self._random = np.random.default_rng(1)
        self.shape = np.shape(self.term.forward(np.zeros(self.grid.shape)))
        point = self.coefficients()
        value, size = self.term.value(point), float(np.abs(point).sum())
        # about how large the slopes of g are, so that any weight is tried alike
        self.slope = value / size if 0 < value < np.inf and size > 0 else 1.0

    def bound(self, grid: Grid) -> Any:
        """Return the prior's term on a grid, watched."""
        parts = (grid.valid, grid.image)
        term = _watched(self.prior, "bind", lambda *_: self.prior.bind(grid), *parts)
        self.require(
            isinstance(term, Term), f"bind must return a Term (got {type(term).__name__})."
        )
        return _Watched(self.prior, term)

    def require(self, holds: object, sentence: str) -> None:
        if not holds:
            raise _fault(self.prior, sentence)

    def field(self) -> Array:
        return self._random.standard_normal(self.grid.shape)

    def distributions(self) -> Array:
        n_rows, n_classes, n_columns = self.grid.shape
        drawn = self._random.dirichlet(np.ones(n_classes), (n_rows, n_columns))
        return np.ascontiguousarray(drawn.transpose(0, 2, 1))

    def coefficients(self, scale: float = 2.0) -> Array:
        return np.asarray(scale * self._random.standard_normal(self.shape))

    def check_members(self) -> None:
        """Compare every member with its definition."""
        self.check_operator()
        self.check_norm()
        self.check_function()
        for step in STEPS:
            self.check_prox(step)
        self.check_shortcuts()
        self.check_single_precision()
        self.check_rejection_class()

    def check_operator(self) -> None:
        """Check that H is linear and leaves nodata alone, and that `adjoint` is its adjoint."""
        term, first, second, dual = self.term, self.field(), self.field(), self.coefficients()
        seen, back = term.forward(first), term.adjoint(dual)
        self.require(
            _close(term.forward(first + 2 * second), seen + 2 * term.forward(second)),
            "forward is not linear: H(A + 2B) is not H A + 2 H B. Put what is not linear into "
            "value.",
        )
        self.require(
            np.array_equal(seen, term.forward(np.where(self.valid[:, None], first, 9.0))),
            "forward depends on pixels without data. Multiply by grid.valid of all pixels it "
            "couples.",
        )
        self.require(
            np.shape(back) == self.grid.shape,
            f"adjoint must return a field of the shape {self.grid.shape} (got {np.shape(back)}).",
        )
        forth, back_again = np.vdot(seen, dual), np.vdot(first, back)
        self.require(
            _close(forth, back_again),
            f"adjoint is not the adjoint of forward: <H Z, V> is {forth:.6g} but <Z, H'V> is "
            f"{back_again:.6g}. Transpose every step of forward, in reverse order.",
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
        self.require(
            largest <= bound * (1 + ROUNDING) < np.inf,
            f"squared_norm is {bound:g}, but H'H has an eigenvalue of {largest:.6g}: the solver "
            "would diverge. Return an upper bound, the largest sum of squares that can meet.",
        )

    def check_function(self) -> None:
        """Check that g is convex, 0 at 0 unless it is a constraint, and not negative."""
        term, zero, one = self.term, np.zeros(self.shape), self.coefficients()
        at_zero = term.value(zero)
        is_zero = abs(at_zero) <= ROUNDING or at_zero == np.inf
        self.require(is_zero, f"value is {at_zero:g} at 0. It must be 0 there.")
        for two in (zero, 3 * one, self.coefficients()):
            mean = 0.5 * (term.value(one) + term.value(two))
            self.require(
                term.value(0.5 * (one + two)) <= mean + ROUNDING * (1 + abs(mean)),
                "value is not convex: halfway between two points it is above their mean. Only "
                "convex priors have the one optimum that the certificate speaks of.",
            )
        conjugate = term.conjugate(zero)
        is_zero = abs(conjugate) <= ROUNDING or min(term.value(one), term.value(-one)) < 0
        self.require(is_zero, f"conjugate is {conjugate:g} at 0. It must be 0 there.")
        field = self.distributions()
        feasible = term.feasible(field)
        self.require(
            _close(np.sum(feasible, axis=1), field.sum(axis=1))
            and np.shape(feasible) == field.shape
            and np.min(feasible) >= 0,
            "feasible must return distributions: at least 0 and with the sum 1 per pixel.",
        )
        value = term.value(term.forward(feasible))
        self.require(
            value < np.inf,
            "value is infinite for a feasible field. Write feasible, and leave room for rounding.",
        )
        self.require(
            value >= -ROUNDING,
            f"value is negative ({value:.3g}) for distributions. Add what makes it at least 0: a "
            "number per pixel does not change the optimum.",
        )

    def check_prox(self, step: float) -> None:
        """Check prox and conjugate at one point.

        U = prox(V) holds if and only if Y = (V - U) / step is a subgradient of g at U, which means
        g(W) >= g(U) + <Y, W - U> for all W, and g(U) + g*(Y) = <U, Y>. Elsewhere
        g(W) + g*(Y) >= <W, Y>, which a ball that is too large fails just outside of the right one.
        """
        term, point, step = self.term, self.coefficients(2 * max(step, 1.0)), step / self.slope
        primal = term.prox(point, step)
        self.require(
            np.shape(primal) == self.shape,
            f"prox must return the shape {self.shape} (got {np.shape(primal)}).",
        )
        dual = (point - primal) / step
        value = term.value(primal)
        # A wrong factor shows along the ray through U, a wrong shape next to it, a wrong minimum
        # far away. All are compared with the tangent at U, which a convex g never falls below.
        near = (primal + 1e-3 * self.coefficients() for _ in range(20))
        far = (self.coefficients() for _ in range(20))
        for other in (0 * point, point, 0.9 * primal, 1.1 * primal, *near, *far):
            least = value + float(np.vdot(dual, other - primal))
            self.require(
                term.value(other) >= least - ROUNDING * (self.slope + abs(value) + abs(least)),
                f"prox does not minimise value(U) + |U - V|^2 / (2 step) for step {step:g}: "
                "another U is better. Derive it from value, with its weight times the step.",
            )
        dual, conjugate = into_domain(term, dual)
        expected = float(np.vdot(primal, dual)) - value
        self.require(
            _close(conjugate, expected, self.slope + abs(value)),
            f"conjugate is {conjugate:.6g} where it should be {expected:.6g}, sup <V, Y> - "
            "value(V). For a norm it is 0 up to the dual norm, else infinite.",
        )
        for outside in (1.001 * dual, 2 * dual, self.slope * self.coefficients(10.0)):
            conjugate = term.conjugate(outside)
            free = term.prox(outside, 1e6 / self.slope)  # where g is 0 whatever the size
            for other in (primal, 100 * primal, 100 * self.coefficients(), 1e3 * free):
                least = float(np.vdot(other, outside)) - term.value(other)
                self.require(
                    conjugate >= least - ROUNDING * (self.slope + abs(least)),
                    f"conjugate is {conjugate:.6g} where sup <V, Y> - value(V) is at least "
                    f"{least:.6g}: certificates would be wrong. For a norm it is infinite outside "
                    "its ball.",
                )

    def check_shortcuts(self) -> None:
        """Check the methods that follow from others and may be overridden to be faster."""
        term, field, point, slope = self.term, self.field(), self.coefficients(), self.slope
        dual = term.prox_conjugate(slope * point, slope)
        summed, moved = field.copy(), dual.copy()
        with Threads(2) as threads:
            term.add_adjoint(dual, summed, threads)
            term.update_dual(moved, field, step=slope, relaxation=1.6, threads=threads)
            value = term.value_of_field(field, threads)
        seen = term.forward(field)
        target = term.prox_conjugate(dual + slope * seen, slope)
        spectrum, waves = term.gram_spectrum(), dctn(field, axes=(0, 2), norm="ortho")
        if spectrum is not None and np.shape(spectrum) == self.valid.shape:
            spectrum = idctn(spectrum[:, None] * waves, axes=(0, 2), norm="ortho")
        for method, actual, expected in (
            ("new_dual", term.new_dual(), np.zeros(self.shape)),
            ("prox_conjugate", dual, slope * (point - term.prox(point, 1 / slope))),
            ("add_adjoint", summed, field + term.adjoint(dual)),
            ("update_dual", moved, dual + 1.6 * (target - dual)),
            ("value_of_field", value, term.value(seen)),
            ("gram_spectrum", spectrum, term.adjoint(seen)),
        ):
            self.require(
                actual is None or _close(actual, expected, min(1.0, slope)),
                f"{method} is not what its docstring in Term defines. Leave it out, or mend it.",
            )
        is_number = 0 <= term.strength < np.inf
        self.require(is_number, f"strength must be a number of at least 0 (got {term.strength!r}).")

    def check_single_precision(self) -> None:
        """Check that single precision stays single, and is as right as it can be."""
        single = self.bound(replace(self.grid, dtype=np.dtype(np.float32)))
        field, point = self.field(), self.coefficients()
        step, slope = float(STEPS[1] / self.slope), float(self.slope)
        for method, first, *others in (
            ("forward", field),
            ("adjoint", point),
            ("prox", point, step),
            ("prox_conjugate", point, slope),
            ("feasible", self.distributions()),
            ("value", point),
        ):
            rounded = getattr(single, method)(first.astype(np.float32), *others)
            dtype = getattr(rounded, "dtype", np.float32) if np.ndim(rounded) else np.float32
            self.require(
                dtype == np.float32,
                f"{method} returns {dtype} for float32. Make arrays of grid.dtype, and multiply by "
                "plain numbers, which keep the precision.",
            )
            expected = getattr(self.term, method)(first, *others)
            is_close = _close(rounded, expected, rounding=SINGLE)
            self.require(is_close, f"{method} is not the same in float32 as in float64.")
        # The conjugate may err upwards, which only widens the gap. Erring downwards would certify
        # an optimum that is not one.
        dual = 1.01 * self.term.prox_conjugate(slope * point, slope)  # of a norm: outside its ball
        bound, least = single.conjugate(dual.astype(np.float32)), self.term.conjugate(dual)
        self.require(
            bound >= least or np.isclose(bound, least, rtol=SINGLE, atol=SINGLE * slope),
            "conjugate is smaller in float32 than in float64: certificates would be wrong.",
        )

    def check_rejection_class(self) -> None:
        """Check that joint rejection, which adds a class, can use the prior."""
        try:
            joint = _Trial(self.prior, self.image, self.grid.n_classes + 1, n_rejection=1)
            joint.check_operator()
            joint.check_function()
            joint.check_prox(1.0)
        except InputError as error:
            raise InputError(
                f"With a class of rejection, as in joint rejection: {error} The field has "
                "grid.n_classes classes, and the last grid.n_rejection_classes are rejection."
            ) from error

    def solved(self, max_iter: int = MAX_ITER, **options: Any) -> Any:
        """Return the solution of random probabilities that favor one class in each square."""
        n_classes, (n_rows, n_columns) = self.grid.n_classes, self.valid.shape
        random = np.random.default_rng(2).dirichlet(np.ones(n_classes), self.valid.shape)
        squares = np.add.outer(np.arange(n_rows) // SQUARE, np.arange(n_columns) // SQUARE)
        random += 0.3 * (squares[..., None] % n_classes == np.arange(n_classes))
        random /= random.sum(axis=-1, keepdims=True)
        probability = np.where(self.valid, random.transpose(2, 0, 1), np.nan)
        solve = SegSALSA(self.prior, tol=TOL, max_iter=max_iter, **options).solve
        return _watched(self.prior, "solving", solve, probability, image=self.image)

    def check_solution(self) -> None:
        """Check that both solvers converge in both precisions, to certificates that agree.

        A prior multiplies the rounding of the field by its strength, so that single precision
        cannot come nearer to the optimum than that. A strong prior with uneven edge weights is
        slow, which is not a fault: with those of an image and strengths of 84, 840 and 840,000 the
        relative gap after 4,000 iterations is 0.001, 0.03 and 1. So it may grow with the square of
        the strength.
        """
        results = []
        strength = max(1.0, self.term.strength)
        target = TOL * max(1.0, strength / STRONGEST) ** 2
        for solver in SOLVERS:
            double = self.solved(solver=solver, dtype="float64")
            single = self.solved(2 * double.n_iterations, solver=solver, dtype="float32")
            for result in (double, single):
                eps = float(np.finfo(result.hidden_field.dtype).eps)
                reached = max(target * result.objective, 8 * eps * self.valid.size * strength)
                if not (result.converged or result.gap <= reached < np.inf):
                    raise InputError(
                        f"SegSALSA with {type(self.prior).__name__} and solver '{solver}' stops at "
                        f"a relative gap of {result.relative_gap:.2g} after {result.n_iterations} "
                        f"iterations in {result.hidden_field.dtype}. Check that forward, prox and "
                        "conjugate also hold in float32, and that strength is right within a "
                        "factor of ten."
                    )
            results += [double, single]
        # Every certificate encloses the same optimum in [objective - gap, objective], so no lower
        # end may lie above an upper end.
        optimum = max(result.objective - result.gap for result in results)
        least = min(result.objective for result in results)
        if optimum > least * (1 + TOL) + TOL:
            raise InputError(
                f"The certificates of {type(self.prior).__name__} contradict each other: the "
                f"optimum is at least {optimum:.6g} by one and at most {least:.6g} by another. "
                "Check that value_of_field is value(forward(field)), and fuse if there is one."
            )


def _check_halo(prior: Prior, n_classes: int) -> None:
    """Check that blocks with the declared halo have the scene's labels, also at larger weights."""
    scene = _HaloScene(prior, n_classes)
    if scene.halo is None:
        return
    if scene.work > MOST_WORK:
        warnings.warn(
            f"The halo of {prior!r}, {scene.halo} pixels, was not checked: that takes a scene of "
            f"{scene.side} x {scene.side} pixels. Check it with a smaller weight.",
            UncheckedWarning,
            stacklevel=3,
        )
        return
    scene.check()
    for factor in (16, 8, 4, 2):
        stronger = _times_weight(prior, factor)
        if stronger is None:
            return
        scene = _HaloScene(stronger, n_classes)
        if scene.halo is not None and scene.work <= LITTLE_WORK:
            scene.check(f" at weight {stronger.weight:g}")  # type: ignore[attr-defined]
            return


def _times_weight(prior: Prior, factor: int) -> Prior | None:
    """Return the same prior with another weight, if it has one and can be made again."""
    names = signature(type(prior)).parameters
    weight = getattr(prior, "weight", None)
    is_number = "weight" in names and isinstance(weight, int | float) and weight > 0
    if not is_number or not all(hasattr(prior, name) for name in names):
        return None
    options: dict[str, Any] = {name: getattr(prior, name) for name in names}
    return type(prior)(**{**options, "weight": factor * options["weight"]})


class _HaloScene:
    """Fields of random classes in noise, as wide as four blocks, their halos and a margin."""

    def __init__(self, prior: Prior, n_classes: int) -> None:
        self.prior, self.n_classes, self.halo = prior, n_classes, prior.halo
        strength = float(_Trial(prior, _image(7, 9), n_classes).term.strength)
        self.field_side = max(SQUARE, round(FIELDS * strength))
        self.first = 2 * self.field_side + (self.halo or 0)  # of the first block
        self.side = 2 * self.first + 2 * BLOCK
        self.work = self.side**3 * prior.working_size

    def probability(self) -> Array:
        """Return the probabilities of Gaussian scores, whose mean is EVIDENCE in the true class."""
        random, side, n_classes = np.random.default_rng(0), self.side, self.n_classes
        n_fields = -(-side // self.field_side)
        classes = random.integers(n_classes, size=(n_fields, n_fields))
        field = np.arange(side) // self.field_side
        of_class = classes[np.ix_(field, field)] == np.arange(n_classes)[:, None, None]
        score = EVIDENCE * (EVIDENCE * of_class + random.standard_normal((n_classes, side, side)))
        powers = np.exp(score - score.max(axis=0))
        return np.asarray(powers / powers.sum(axis=0))

    def check(self, where: str = "") -> None:
        """Compare the labels of blocks, guided but without image, with those of the scene."""
        prior, side, halo, image = self.prior, self.side, self.halo or 0, _image(*[self.side] * 2)
        layers = np.empty((0, side, side))
        if prior.n_guide_layers:
            guide = _watched(prior, "guide", prior.guide, xr.DataArray(image, dims=CUBE_DIMS))
            if not (isinstance(guide, xr.DataArray) and len(guide) == prior.n_guide_layers):
                what = f"guide must have n_guide_layers = {prior.n_guide_layers}."
                raise _fault(prior, what)
            layers = guide.values
        probability, context = self.probability(), SegSALSA(prior, tol=TOL)
        label = _watched(prior, "solving", context.solve, probability, image=image).label
        n_same = 0
        for row, column in product((self.first, self.first + BLOCK), repeat=2):
            part = np.s_[
                ..., row - halo : row + BLOCK + halo, column - halo : column + BLOCK + halo
            ]
            block = _watched(prior, "in_block", context.in_block, layers[part])
            try:
                alone = block.solve(probability[part]).label
            except InputError as error:
                what = f"in_block gives a prior that does not work: {error}"
                raise _fault(prior, what) from error
            inside = alone[halo : halo + BLOCK, halo : halo + BLOCK]
            same = inside == label[row : row + BLOCK, column : column + BLOCK]
            n_same += int(np.count_nonzero(same))
        share = n_same / (N_BLOCKS * BLOCK**2)
        if share < SAME_LABELS:
            raise _fault(
                prior,
                f"halo is {halo} pixels{where}, too small: {100 * share:.1f} % of the labels of "
                "blocks are those of the whole scene. Make it wider, in proportion to the weight "
                "(8 pixels per unit do for total variation), or return None.",
            )


def _close(actual: Any, expected: Any, scale: float = 1.0, rounding: float = ROUNDING) -> bool:
    """Return whether two results agree up to rounding."""
    if np.shape(actual) != np.shape(expected):
        return False
    if np.array_equal(actual, expected):  # both may be infinite
        return True
    size = max(scale, float(np.max(np.abs(expected), initial=0.0)))
    return bool(np.max(np.abs(np.subtract(actual, expected)), initial=0.0) <= rounding * size)
