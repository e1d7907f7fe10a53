"""Graph total variation: the pixels of a segment have the same hidden field."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.context.prior import Grid, Prior, Term, check_weight
from hsreject.errors import InputError
from hsreject.schema import MAP_DIMS, check_dims

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hsreject.threads import Threads

    Array = NDArray[np.floating[Any]]

Labels = np.ndarray[tuple[int, ...], np.dtype[np.integer[Any]]]
PIXELS_OF_A_SEGMENT = (180, 60, 20)  # on average, of the default scales


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
        as the distance between neighboring superpixels.
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
    >>> from hsreject.context.prior import Grid
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
        partitions = self.partitions or superpixels(
            grid, self.n_segments, n_components=self.n_components, compactness=self.compactness
        )
        return GraphTVTerm(
            grid, self.weight, [Segments.from_labels(labels, grid) for labels in partitions]
        )


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

    def add_adjoint(self, dual: Array, field: Array, threads: Threads) -> None:
        """Add H'Y to `field` in place."""
        for segments, part in zip(self.partitions, dual, strict=True):
            for k, distance in segments.distances(part):
                field[:, k] += distance

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, threads: Threads
    ) -> None:
        """Move Y in place towards the shrunk Y + step H Z, class by class to save memory."""
        number = dual.dtype.type
        sigma, keep = number(step), number(1 - relaxation)
        scale = number(relaxation * self._shrink(step))
        for segments, part in zip(self.partitions, dual, strict=True):
            for k, distance in segments.distances(field):
                target = part[:, k] + sigma * distance.astype(dual.dtype)
                part[:, k] = keep * part[:, k] + scale * target

    def value_of_field(self, field: Array, threads: Threads) -> float:
        """Return g(H Z)."""
        planes = (part for segments in self.partitions for _, part in segments.distances(field))
        return self.weight * sum(_squared_norm(plane) for plane in planes)

    def _shrink(self, step: float) -> float:
        return 2 * self.weight / (2 * self.weight + step)


def _squared_norm(coefficients: Array) -> float:
    return float(np.square(coefficients, dtype=np.float64).sum())


@dataclass(frozen=True)
class Segments:
    """A partition of the valid pixels, and the operator I - M with M the mean over segments.

    The operator is a symmetric projector: it is its own adjoint and its norm is 1, or 0 where
    every segment has one pixel. `index` (y, x) numbers the segments from 0, and pixels without data
    have the number after the last; their `inverse_size` is 0.
    """

    index: NDArray[np.intp]
    inverse_size: NDArray[np.float64]  # (segment + 1,)

    @classmethod
    def from_labels(cls, labels: NDArray[np.integer[Any]], grid: Grid) -> Segments:
        """Return the segments that each label names in each connected region of valid pixels."""
        if labels.shape != grid.valid.shape:
            raise InputError(
                f"A partition must have the shape (y, x) of the scene, {grid.valid.shape} "
                f"(got {labels.shape}). Cut or resample it to the scene first."
            )
        region = grid.regions[grid.valid].astype(np.int64)
        _, label = np.unique(labels[grid.valid], return_inverse=True)
        pairs = region * (label.max(initial=0) + 1) + label
        _, number, size = np.unique(pairs, return_inverse=True, return_counts=True)
        index = np.full(grid.valid.shape, len(size), np.intp)
        index[grid.valid] = number
        return cls(index, inverse_size=np.append(1.0 / size, 0.0))

    @property
    def squared_norm(self) -> float:
        """The squared norm of the operator."""
        return float((self.inverse_size[:-1] < 1).any())

    def distance(self, field: Array) -> Array:
        """Return (I - M) Z, 0 where there is no data."""
        distance = np.empty_like(field)
        for k, plane in self.distances(field):
            distance[:, k] = plane
        return distance

    def distances(self, field: Array) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield each class k and its plane of (I - M) Z, (y, x), in double precision."""
        nodata = np.nonzero(self.index == self.inverse_size.size - 1)
        numbers = self.index.ravel()
        for k in range(field.shape[1]):
            total = np.bincount(numbers, field[:, k].ravel(), minlength=self.inverse_size.size)
            mean = np.take(total * self.inverse_size, self.index)
            distance = np.subtract(field[:, k], mean, dtype=np.float64)
            distance[nodata] = 0
            yield k, distance


def given_partitions(partitions: object) -> tuple[Labels, ...]:
    """Return one or several label arrays (y, x), NumPy or xarray, as a tuple of NumPy arrays."""
    single = isinstance(partitions, xr.DataArray | np.ndarray) and partitions.ndim == 2
    if not single and not isinstance(partitions, Sequence | np.ndarray):
        raise InputError(
            "partitions must be an array of segment labels (y, x) or a list of such arrays "
            f"(got {type(partitions).__name__})."
        )
    arrays: Sequence[Any] = [partitions] if single else list(partitions)  # type: ignore[call-overload]  # checked above
    if not arrays:
        raise InputError("partitions is empty. Give at least one array of segment labels (y, x).")
    return tuple(_checked(array) for array in arrays)


def _checked(partition: Any) -> Labels:
    if isinstance(partition, xr.DataArray):
        partition = check_dims(partition, MAP_DIMS, name="partition").values
    labels = np.asarray(partition)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise InputError(
            "A partition must be an array of whole numbers with the axes (y, x), one number per "
            f"segment (got {labels.dtype} of shape {labels.shape})."
        )
    return labels


def superpixels(
    grid: Grid, n_segments: Sequence[int] | None, *, n_components: int, compactness: float
) -> tuple[Labels, ...]:
    """Return SLIC segments of the leading components of the image, one partition per scale."""
    components = grid.components(n_components, wanted_by="A prior over superpixels")
    if n_segments is None:
        n_pixels = int(grid.valid.sum())
        n_segments = [max(1, round(n_pixels / size)) for size in PIXELS_OF_A_SEGMENT]
    return tuple(slic_partition(components, grid.valid, count, compactness) for count in n_segments)


def slic_partition(
    components: NDArray[np.float64], valid: NDArray[np.bool_], n_segments: int, compactness: float
) -> Labels:
    """Return about `n_segments` superpixels, (y, x), 0 where there is no data.

    `compactness` is in standard deviations of the first of the components (component, y, x).
    """
    n_pixels = int(valid.sum())
    if n_segments == 1:  # SLIC needs the distance between two
        return valid.astype(np.int64)
    if n_segments >= n_pixels:
        return np.where(valid, np.cumsum(valid).reshape(valid.shape), 0)
    rows, columns = (np.flatnonzero(valid.any(axis=axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]  # crops give the same answer
    image = np.moveaxis(components[:, *box], 0, -1)
    spectra = image[valid[box]]
    spread, extent = spectra[:, 0].std(), np.ptp(spectra)
    labels = np.zeros(valid.shape, np.int64)
    labels[box] = _slic(
        image,
        n_segments,
        compactness * (spread / extent if spread > 0 else 1.0),  # slic divides by the extent
        None if valid[box].all() else valid[box],
    )
    return labels


def _slic(
    image: NDArray[np.float64], n_segments: int, compactness: float, mask: NDArray[np.bool_] | None
) -> Any:
    from skimage.segmentation import slic  # noqa: PLC0415 (slow to import, and often not needed)

    with warnings.catch_warnings():
        # on odd footprints some of the seeds that a mask asks for end up without pixels
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
        return slic(
            image,
            n_segments,
            compactness,
            convert2lab=False,
            start_label=1,
            mask=mask,
            channel_axis=-1,
        )
