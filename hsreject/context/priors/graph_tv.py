"""Graph total variation: the pixels of a segment have the same hidden field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.context.kernels.site_row import Steps
from hsreject.context.priors.base import Prior, Term, check_weight
from hsreject.context.priors.partitions import fitting_partitions, given_partitions, superpixels
from hsreject.context.priors.segments import Segments
from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hsreject.context.grid import Grid
    from hsreject.context.workers import Workers

    Array = NDArray[np.floating[Any]]


class GraphTV(Prior):
    r"""Squared distance of each pixel to the mean of its segment, in one or several partitions.

    .. math:: weight \sum_j \sum_i \| z_i - \bar z_{j(i)} \|^2 = weight \sum_j \|(I - M_j) Z\|^2

    :math:`j(i)` is the segment of pixel i in partition j and :math:`M_j` the mean over segments, a
    projector. The pixels of a segment are all tied to each other, however far apart, and not at
    all to those beyond its border: borders between classes cost nothing where segments meet.

    Segments are superpixels of the image unless partitions are given. Pixels without data belong
    to no segment and enter no mean. A label that names pixels on both sides of a gap of nodata
    names two segments: what nodata keeps apart stays independent. Pixels of one label that merely
    do not touch, within one region of data, remain one segment, so that any grouping can be given
    (parcels, clusters).

    Parameters
    ----------
    weight : float, at least 0
        How strongly the pixels of a segment are tied. On Indian Pines 1 to 3.
    n_segments : int or sequence of int, optional
        About how many superpixels the scene has; several numbers are several partitions. By
        default three: superpixels of 180, of 60 and of 20 pixels on average.
    compactness : float, above 0
        The larger, the rounder the superpixels and the less they follow the image: the difference
        of spectra, in standard deviations of the first principal component, that counts as much
        as the distance between neighbouring superpixels.
    n_components : int, at least 1
        How many principal components of the image the superpixels see.
    partitions : array (y, x) of int, or sequence of such arrays, optional
        Partitions to use instead of superpixels; every distinct number is a segment.

    References
    ----------
    R. Achanta et al., "SLIC superpixels compared to state-of-the-art superpixel methods", IEEE
    Trans. Pattern Anal. Mach. Intell. 34, 2012; B. Irving, "maskSLIC", arXiv:1606.09518, 2016
    (footprints with nodata).

    Examples
    --------
    >>> from hsreject.context.grid import Grid
    >>> grid = Grid(np.ones((1, 4), bool), n_classes=2, dtype=np.dtype(float))
    >>> term = GraphTV(weight=3.0, partitions=np.array([[1, 1, 2, 2]])).bind(grid)
    >>> field = np.array([[[1.0, 0.5, 0.0, 0.0], [0.0, 0.5, 1.0, 1.0]]])
    >>> term.value(term.forward(field))
    0.75
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        n_segments: int | Sequence[int] | None = None,
        compactness: float = 1.0,
        n_components: int = 3,
        partitions: NDArray[Any] | xr.DataArray | Sequence[Any] | None = None,
    ) -> None:
        self.weight = check_weight(weight)
        self.n_segments = None if n_segments is None else _counts(n_segments)
        self.compactness = compactness
        self.n_components = n_components
        self.partitions = None if partitions is None else given_partitions(partitions)
        if n_segments is not None and partitions is not None:
            raise InputError("Give either n_segments or partitions, not both.")
        if not 0 < compactness < np.inf:
            raise InputError(f"compactness must be above 0 (got {compactness}).")
        if n_components < 1:
            raise InputError(f"n_components must be at least 1 (got {n_components}).")

    def bind(self, grid: Grid) -> GraphTVTerm:
        """Return the term of this prior on `grid`."""
        if self.partitions is not None:
            return GraphTVTerm(grid, self.weight, fitting_partitions(self.partitions, grid))
        segments = superpixels(
            grid, self.n_segments, n_components=self.n_components, compactness=self.compactness
        )
        return GraphTVTerm(grid, self.weight, segments)


def _counts(n_segments: object) -> tuple[int, ...]:
    numbers = np.atleast_1d(np.asarray(n_segments))
    if numbers.ndim != 1 or not numbers.size or numbers.dtype.kind not in "iu" or numbers.min() < 1:
        raise InputError(
            "n_segments must be a whole number of at least 1 or a list of such numbers "
            f"(got {n_segments!r})."
        )
    return tuple(int(number) for number in numbers)


class GraphTVTerm(Term):
    """Graph TV on a grid. Coefficients are (partition, y, category, x)."""

    def __init__(self, grid: Grid, weight: float, partitions: Sequence[Segments]) -> None:
        super().__init__(grid)
        self.weight = weight
        self.partitions = partitions

    @property
    def squared_norm(self) -> float:
        """The sum over partitions of the squared norm of a projector: 1, or 0."""
        return sum(segments.squared_norm for segments in self.partitions)

    @property
    def strength(self) -> float:
        """A law found by trial, with weights from 0.1 to 100 and one partition or four.

        Duals are 2 weight times distances of at most 1, but also balance the slopes of the data
        term, which do not grow with the weight.
        """
        weight = self.weight * len(self.partitions)
        return min(2 * weight, 0.3 + 0.1 * math.sqrt(weight))

    def forward(self, field: Array) -> Array:
        """Return the distance of each pixel to its segment's mean."""
        return np.stack([segments.distance(field) for segments in self.partitions])

    def adjoint(self, coefficients: Array) -> Array:
        """Return the coefficients less their segments' means, summed over partitions."""
        pairs = zip(self.partitions, coefficients, strict=True)
        field: Array = np.sum([segments.distance(part) for segments, part in pairs], axis=0)
        return field

    def value(self, coefficients: Array) -> float:
        """Return weight times the squared norm."""
        return self.weight * _squared_norm(coefficients)

    def prox(self, coefficients: Array, step: float) -> Array:
        """Shrink everything by one factor."""
        return coefficients / coefficients.dtype.type(1 + 2 * step * self.weight)

    def conjugate(self, dual: Array) -> float:
        """Return the squared norm over 4 weight; with weight 0, infinity unless it is 0."""
        squared = _squared_norm(dual)
        if squared == 0:
            return 0.0
        return squared / (4 * self.weight) if self.weight > 0 else np.inf

    def prox_conjugate(self, dual: Array, step: float) -> Array:
        """Shrink everything by one factor."""
        return dual * dual.dtype.type(self._shrink(step))

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that the term calls."""
        return Segments.kernels

    def add_adjoint(self, dual: Array, field: Array, workers: Workers) -> None:
        """Add H'Y to `field` in place."""
        for segments, part in zip(self.partitions, dual, strict=True):
            segments.add_distance(part, field, workers)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, workers: Workers
    ) -> None:
        """Move Y in place towards the shrunk Y + step H Z."""
        steps = Steps(primal=0.0, dual=step, relaxation=relaxation, site_tolerance=0.0)
        shrink = self._shrink(step)
        for segments, part in zip(self.partitions, dual, strict=True):
            segments.move_dual(part, field, shrink=shrink, steps=steps, workers=workers)

    def value_of_field(self, field: Array, workers: Workers) -> float:
        """Return g(H Z)."""
        squared = sum(segments.squared_distance(field, workers) for segments in self.partitions)
        return self.weight * squared

    def _shrink(self, step: float) -> float:
        return 2 * self.weight / (2 * self.weight + step)


def _squared_norm(coefficients: Array) -> float:
    return float(np.square(coefficients, dtype=np.float64).sum())
