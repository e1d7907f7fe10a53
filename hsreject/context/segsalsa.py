"""SegSALSA: the context as one call on labelled objects."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.confidence import label_map
from hsreject.context.admm import ADMM
from hsreject.context.preconditioned_admm import PreconditionedADMM
from hsreject.context.prior import LAYER, Grid, Prior
from hsreject.context.problem import Checkpoint, Problem, likelihood, valid_probability_pixels
from hsreject.context.solver import Journal, Solver
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.notebook import Shown
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import Registry, check_choice, check_count, check_number
from hsreject.schema import (
    CALIBRATED,
    CUBE_DIMS,
    FIELD_DIMS,
    MAP_DIMS,
    check_dims,
    check_same_grid,
    good_bands,
    plain_field,
    reference_labels,
    total_halo,
)
from hsreject.schema.classes import ClassTable
from hsreject.threads import Threads, usable_cores

ArrayT = TypeVar("ArrayT", xr.DataArray, NDArray[Any])

SMALLEST_SHARE = 50_000  # numbers of a field below which a thread costs more than it saves

SOLVERS: Registry[Solver] = Registry(
    "solver", {"preconditioned_admm": PreconditionedADMM, "admm": ADMM}
)


@dataclass(frozen=True, repr=False)
class SegSALSAResult(Shown, Generic[ArrayT]):
    """The hidden field of a scene, and how good it is.

    Arrays are DataArrays if probabilities were given as one, else NumPy arrays.

    Attributes
    ----------
    hidden_field : (category, y, x)
        On the simplex; NaN where there is no data.
    objective : float
        Its objective F.
    gap : float
        An upper bound of F minus the optimum: the certificate, for the probabilities that were
        given and in either precision. Infinite where there is none.
    n_iterations : int
    converged : bool
        Whether the gap is within the tolerance, or below what rounding hides: 8 roundings per
        pixel, 1e-6 in single and 2e-15 in double precision.
    history : tuple of Checkpoint
        Objective and gap at the certificates on the way; the last is that of this result.
    probability : (category, y, x)
        The probabilities that were given.
    """

    hidden_field: ArrayT
    objective: float
    gap: float
    n_iterations: int
    converged: bool
    history: tuple[Checkpoint, ...]
    probability: ArrayT

    @cached_property
    def label(self) -> ArrayT:
        """The first class with the largest value of the hidden field, (y, x).

        ``schema.nodata_label`` where there is no data.
        """
        if isinstance(self.hidden_field, xr.DataArray):
            return label_map(self.hidden_field)
        labels: ArrayT = label_map(xr.DataArray(self.hidden_field, dims=FIELD_DIMS)).values
        return labels

    def _facts(self) -> dict[str, str]:
        n_classes, height, width = self.hidden_field.shape
        return {
            "hidden field": f"{n_classes} classes, {height} x {width} pixels",
            "objective": f"{self.objective:.6g}",
            "relative gap": f"{self.relative_gap:.2g}",
            "iterations": f"{self.n_iterations}",
            "converged": "yes" if self.converged else "no",
        }

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective."""
        return self.history[-1].relative_gap


@dataclass(frozen=True)
class SegSALSA:
    r"""Segmentation with context: the hidden field that balances class probabilities and priors.

    .. math:: \min_Z \sum_i -\log(p_i'z_i) + \sum_j g_j(H_j Z), \qquad z_i \ge 0,\ 1'z_i = 1

    The problem is convex. It is solved to a certified gap, so the answer does not depend on solver,
    number of threads or layout beyond the tolerance.

    Parameters
    ----------
    prior : Prior or sequence of Prior
        What is believed about neighbors; several are added up.
    solver : str or Solver
        A name in ``hsreject.context.segsalsa.SOLVERS``, or an object with its own options.
    tol : float, above 0
        The gap to reach, as a fraction of the objective. At 1e-3 over 99.9 % of the labels are
        those of the optimum; take 1e-4 where fractions are read off the field.
    max_iter : int
        Where to stop in any case, with a warning that says how far it got.
    class_prior : sequence of float, optional
        One number per class: turns probabilities into likelihoods, probability / prior.
    n_threads : int, optional
        Threads; by default as many as the scene can use. The answer is the same for any number.
    dtype : {"float32", "float64"}
        Precision of the fields. Objective and gap are those of the field that is returned, each
        pixel divided by its sum, and are always formed and summed in double precision, and the gap
        includes how far probabilities and edge weights may have been rounded (2 roundings per
        pixel and one of the objective). So it bounds the truth in both precisions; only
        probabilities below 1e-38 are 0 in the single one. A prior multiplies the rounding of the
        field by its weight: beyond weights of about 100 single precision does not reach a relative
        gap of 1e-4.

    See Also
    --------
    hsreject.VectorTV : the usual prior.
    hsreject.SequentialRejector : rejects by the hidden field.
    hsreject.JointRejector : rejects while solving.

    References
    ----------
    J. Bioucas-Dias, F. Condessa, J. Kovacevic, "Alternating direction optimization for image
    segmentation using hidden Markov measure field models", Proc. SPIE 9019, 2014.

    Examples
    --------
    A pixel that disagrees with all its neighbors:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> probability = np.full((2, 5, 5), 0.2)
    >>> probability[0] = 0.8
    >>> probability[:, 2, 2] = [0.4, 0.6]
    >>> result = hr.SegSALSA(hr.VectorTV(weight=1.0)).solve(probability)
    >>> result.label[2]
    array([1, 1, 1, 1, 1], dtype=uint8)
    >>> result.converged, result.gap <= 1e-3 * result.objective
    (True, True)
    """

    prior: Prior | Sequence[Prior]
    _: KW_ONLY
    solver: str | Solver = "preconditioned_admm"
    tol: float = 1e-3
    max_iter: int = 2000
    class_prior: Sequence[float] | None = None
    n_threads: int | None = None
    dtype: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        given = [self.prior] if isinstance(self.prior, Prior) else self.prior
        several = isinstance(given, Sequence) and all(isinstance(prior, Prior) for prior in given)
        if not (several and given):
            raise InputError(
                f"prior must be a Prior or a list of at least one (got {self.prior!r}). "
                "For example SegSALSA(VectorTV(weight=2))."
            )
        check_number("tol", self.tol, above=0)
        check_count("max_iter", self.max_iter, least=1)
        check_choice("dtype", self.dtype, ("float32", "float64"))
        if self.n_threads is not None:
            check_count("n_threads", self.n_threads, least=1)
        self._solver  # noqa: B018  # says now, not when it is used, that there is no such solver

    @cached_property
    def _solver(self) -> Solver:
        if isinstance(self.solver, Solver):
            return self.solver
        return SOLVERS.create(self.solver)

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The priors as a tuple."""
        return (self.prior,) if isinstance(self.prior, Prior) else tuple(self.prior)

    @property
    def halo(self) -> int | None:
        """How many pixels around a block decide its labels; None: the whole scene does."""
        return total_halo(prior.halo for prior in self.priors)

    @property
    def working_size(self) -> int:
        """How many numbers per pixel and class solving takes, temporaries included.

        The fields, and what each prior needs; the readable solver keeps copies of every term.
        """
        copies = 1 if isinstance(self._solver, PreconditionedADMM) else 9
        return 6 + copies * sum(prior.working_size for prior in self.priors)

    def guide(self, image: xr.DataArray) -> xr.DataArray | None:
        """Return what the priors take from the image of a whole scene, (layer, y, x), or None.

        Blocks of a scene need it: cut it as the scene is cut, and give each part to
        :meth:`in_block`.
        """
        guides = [prior.guide(image) for prior in self.priors if prior.n_guide_layers]
        return xr.concat(guides, dim=LAYER) if guides else None

    def in_block(self, layers: NDArray[Any]) -> SegSALSA:
        """Return this context for one block, with its part (layer, y, x) of the guide."""
        # The layers of all priors are one stack, in their order; a prior that needs none gets an
        # empty part, because its end repeats that of the one before.
        ends = np.cumsum([prior.n_guide_layers for prior in self.priors])
        parts = zip(self.priors, np.split(layers, ends[:-1]), strict=True)
        return replace(self, prior=tuple(prior.in_block(part) for prior, part in parts))

    def check_blocks(self, n_bands: int, n_classes: int) -> None:
        """Raise where a prior could not be solved on blocks of another scene.

        Blocks see what :meth:`guide` takes from the image, not the image, and no training labels.
        It is tried on a few random pixels.
        """
        if self.halo is None:  # such scenes are solved whole, with their image
            return
        pixels = np.random.default_rng(0).standard_normal((n_bands, 8, 8))
        valid = np.ones((8, 8), dtype=bool)
        guide = self.guide(xr.DataArray(pixels, dims=CUBE_DIMS))
        layers = np.empty((0, 8, 8)) if guide is None else guide.values
        for prior in self.in_block(layers).priors:
            try:
                prior.bind(Grid(valid, n_classes, np.dtype(self.dtype)))
            except InputError as error:
                raise InputError(
                    f"{type(prior).__name__} cannot map other scenes in blocks: {error} State "
                    "n_guide_layers, guide and in_block, or no halo, so that scenes stay whole."
                ) from error

    def solve(
        self,
        probability: ArrayT,
        *,
        image: xr.DataArray | NDArray[Any] | None = None,
        train: xr.DataArray | NDArray[Any] | None = None,
        n_rejection_classes: int = 0,
        progress: ProgressCallback = no_progress,
    ) -> SegSALSAResult[ArrayT]:
        """Return the hidden field of a scene.

        Parameters
        ----------
        probability : DataArray or array, (category, y, x)
            Class probabilities from anywhere: at least 0, sum 1, NaN in all classes where there
            is no data. A lazy one is computed.
        image : DataArray or array, (band, y, x), optional
            The image, for priors that look at it. Bands marked bad are left out of its principal
            components.
        train : DataArray or array of int, (y, x), optional
            The training labels, for priors that learn from them; 0 where there is none.
        n_rejection_classes : int
            How many of the categories, the last ones, are rejection; for priors that treat them
            differently.
        progress : ProgressCallback
            Called at every iteration.

        Returns
        -------
        SegSALSAResult
            Hidden field and labels, with the objective, its certificate and the way there.
        """
        labelled = None
        if isinstance(probability, xr.DataArray):
            labelled = check_dims(probability, FIELD_DIMS, name="probability")
        values = plain_field(probability if labelled is None else labelled, name="probability")
        valid = valid_probability_pixels(values)
        attributes = (array.attrs for array in (labelled, train) if isinstance(array, xr.DataArray))
        grid = Grid(
            valid,
            len(values),
            np.dtype(self.dtype),
            image=_on_grid_of(labelled, valid, image, CUBE_DIMS, name="image"),
            good_bands=good_bands(image) if isinstance(image, xr.DataArray) else None,
            n_rejection_classes=n_rejection_classes,
            classes=next(filter(None, map(ClassTable.from_attrs, attributes)), None),
            train=_on_grid_of(labelled, valid, train, MAP_DIMS, name="train"),
        )
        try:
            field, journal = self._solve_on(grid, values, progress)
        except (ValueError, IndexError) as error:
            if isinstance(error, InputError) or not n_rejection_classes:
                raise
            raise InputError(
                f"A prior does not take the class of rejection that joint rejection adds: {error}. "
                "The field has grid.n_classes classes, of which the last grid.n_rejection_classes "
                "are rejection; hsreject.check_prior names the method at fault."
            ) from error
        hidden_field: Any = field.transpose(1, 0, 2)
        if not valid.all():
            hidden_field = np.where(valid, hidden_field, hidden_field.dtype.type(np.nan))
        if labelled is not None:
            hidden_field = labelled.copy(data=hidden_field).rename("hidden_field")
            hidden_field.attrs.pop(CALIBRATED, None)  # only the probabilities were
        last = journal.history[-1]
        return SegSALSAResult(
            hidden_field=hidden_field,
            objective=last.objective,
            gap=last.gap,
            n_iterations=last.n_iterations,
            converged=journal.converged,
            history=tuple(journal.history),
            probability=probability if labelled is None else labelled,
        )

    def _solve_on(
        self, grid: Grid, probability: NDArray[Any], progress: ProgressCallback
    ) -> tuple[NDArray[Any], Journal]:
        problem = Problem(
            probability=likelihood(probability, grid.valid, self.class_prior, self.dtype),
            terms=tuple(prior.bind(grid) for prior in self.priors),
        )
        journal = Journal(problem, self.tol, self.max_iter, progress)
        useful = max(1, min(usable_cores(), problem.probability.size // SMALLEST_SHARE))
        with Threads(self.n_threads or useful) as threads:
            field = self._solver.solve(problem, journal, threads)
        if not journal.converged:
            last = journal.history[-1]
            blurred = last.gap < problem.rounding * sum(term.strength for term in problem.terms)
            remedy = " Take dtype='float64': rounding decides at such a weight." if blurred else ""
            reached = (
                f"at a relative gap of {last.relative_gap:.2g}: the objective is at most that far "
                "above the optimum. Raise max_iter, or tol if this is near enough."
                if last.relative_gap < math.inf
                else "without a certificate: objective or bound are not finite. Take a smaller "
                "weight, or raise max_iter."
            )
            warnings.warn(
                f"SegSALSA stopped after {self.max_iter} iterations {reached}{remedy}",
                NotConvergedWarning,
                stacklevel=3,
            )
        return field, journal


def _on_grid_of(
    labelled: xr.DataArray | None,
    valid: NDArray[np.bool_],
    array: xr.DataArray | NDArray[Any] | None,
    dims: tuple[str, ...],
    *,
    name: str,
) -> NDArray[Any] | None:
    """Return the values of an image or of labels that lie on the grid of the probabilities."""
    if array is None:
        return None
    if isinstance(array, xr.DataArray):
        array = check_dims(array, dims, name=name)
        if labelled is not None:
            check_same_grid(labelled, array, names=("probability", name))
    if dims == MAP_DIMS:
        array = reference_labels(array, name=name)
    else:
        array = plain_field(array, name=name)
    if array.ndim != len(dims) or array.shape[-2:] != valid.shape:
        raise InputError(
            f"{name} must have the axes ({', '.join(dims)}) and the grid of probability, "
            f"{valid.shape} (got shape {array.shape})."
        )
    return array
