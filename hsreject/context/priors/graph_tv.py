"""Graph total variation: the pixels of a segment have the same hidden field."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hsreject.context.prior import Grid, Prior, Term
from hsreject.context.problem import Array
from hsreject.errors import InputError
from hsreject.registry import check_count, check_number
from hsreject.schema import MAP_DIMS, check_dims, plain_array
from hsreject.threads import Threads

Labels = NDArray[np.integer[Any]]
SEGMENT_SIZES = (180, 60, 20)  # pixels on average, of the default scales
N_COMPONENTS = 3  # of the image, which superpixels see


class GraphTV(Prior):
    r"""Squared distance of each pixel to the mean of its segment, in one or several partitions.

    .. math:: weight \sum_j \sum_i \| z_i - \bar z_{j(i)} \|^2 = weight \sum_j \|(I - M_j) Z\|^2

    :math:`j(i)` is the segment of pixel i in partition j and :math:`M_j` the mean over segments, a
    projector. The pixels of a segment are all tied to each other, however far apart, and not at
    all to those beyond its border: borders between classes cost nothing where segments meet.

    Segments are superpixels of three principal components of the image unless partitions are
    given; one standard deviation of the first component counts as much as the distance between
    neighboring superpixels. Pixels without data belong to no segment and enter no mean. A label on
    both sides of a gap of nodata names two segments, which stay independent. Pixels of one label
    that merely do not touch are one segment: any grouping can be given (parcels, clusters).

    Parameters
    ----------
    weight : float, at least 0
        How strongly the pixels of a segment are tied. On Indian Pines 1 to 3.
    n_segments : int or sequence of int, optional
        About how many superpixels the scene has; several numbers are several partitions. By
        default three: superpixels of 180, of 60 and of 20 pixels on average.
    partitions : array (y, x) of int, or sequence of such arrays, optional
        Partitions to use instead of superpixels; every distinct number is a segment.

    See Also
    --------
    hsreject.VectorTV : ties neighbors instead of segments.
    hsreject.StructureTensor : looks at patches.
    hsreject.SegSALSA : solves with it.

    References
    ----------
    R. Achanta et al., "SLIC superpixels compared to state-of-the-art superpixel methods", IEEE
    Trans. Pattern Anal. Mach. Intell. 34, 2012; B. Irving, "maskSLIC", arXiv:1606.09518, 2016
    (footprints with nodata).

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import GraphTV, Grid
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
        partitions: NDArray[Any] | xr.DataArray | Sequence[Any] | None = None,
    ) -> None:
        self.weight = check_number("weight", weight, least=0)
        self.n_segments = None
        if n_segments is not None:
            self.n_segments = tuple(np.atleast_1d(np.asarray(n_segments)).tolist())
            for count in self.n_segments or (n_segments,):
                check_count("n_segments", count, least=1)
        self.partitions = None if partitions is None else given_partitions(partitions)
        if n_segments is not None and partitions is not None:
            raise InputError("Give either n_segments or partitions, not both.")

    def bind(self, grid: Grid) -> GraphTVTerm:
        """Return the term of this prior on `grid`."""
        partitions = self.partitions
        if partitions is None:
            image = grid.components(N_COMPONENTS, wanted_by="A prior over superpixels")
            n_pixels = int(grid.valid.sum())
            counts = self.n_segments or [max(1, round(n_pixels / size)) for size in SEGMENT_SIZES]
            partitions = tuple(slic_partition(image, grid.valid, count) for count in counts)
        segments = [Segments.from_labels(labels, grid) for labels in partitions]
        return GraphTVTerm(grid, self.weight, segments)


class GraphTVTerm(Term):
    r"""Graph TV on a grid: g(H Z) with :math:`g(V) = weight \sum_j \|(I - M_j) V_j\|^2`.

    H copies the valid pixels of the field once per partition: coefficients are (partition,
    category, y, x). The means are left to g, because then :math:`g^*(Y)` is finite only where all
    segments of Y have mean 0: the solver's duals do, and H'Y is their plain sum over partitions.
    """

    def __init__(self, grid: Grid, weight: float, partitions: Sequence[Segments]) -> None:
        super().__init__(grid)
        self.weight = weight
        self.partitions = partitions

    @property
    def squared_norm(self) -> float:
        """H'H is the number of partitions."""
        return float(len(self.partitions))

    @property
    def strength(self) -> float:
        """A rule found by trial, with weights from 0.1 to 100 and one or four partitions.

        Duals are 2 weight times distances of at most 1, but also balance the slopes of the data
        term, which do not grow with the weight.
        """
        weight = self.weight * len(self.partitions)
        return min(2 * weight, 0.3 + 0.1 * math.sqrt(weight))

    def forward(self, field: Array) -> Array:
        """Return the field, 0 where there is no data, once per partition."""
        planes = np.where(self.grid.valid, field.transpose(1, 0, 2), field.dtype.type(0))
        return np.stack([planes] * len(self.partitions))

    def adjoint(self, coefficients: Array) -> Array:
        """Return the sum over partitions, 0 where there is no data."""
        planes = np.where(self.grid.valid, coefficients.sum(axis=0), coefficients.dtype.type(0))
        return planes.transpose(1, 0, 2)

    def value(self, coefficients: Array) -> float:
        """Return weight times the squared distances to the means of the segments."""
        return self.weight * _squared_norm(self._distances(coefficients))

    def prox(self, coefficients: Array, step: float) -> Array:
        """Shrink the distances by one factor and leave the means as they are."""
        part = 2 * step * self.weight / (1 + 2 * step * self.weight)
        return coefficients - coefficients.dtype.type(part) * self._distances(coefficients)

    def conjugate(self, dual: Array) -> float:
        """Return the squared norm over 4 weight; infinity if a mean is not 0 (up to rounding)."""
        if not dual.any():
            return 0.0
        pairs = zip(self.partitions, dual, strict=True)
        means = max(
            np.abs(segments.means(plane)).max() for segments, part in pairs for plane in part
        )
        rounding = 16 * np.finfo(dual.dtype).eps * max(self.weight, dual.max(), -dual.min())
        feasible = self.weight > 0 and means <= rounding
        return _squared_norm(dual) / (4 * self.weight) if feasible else np.inf

    def prox_conjugate(self, dual: Array, step: float) -> Array:
        """Take the means away and shrink the rest by one factor."""
        return dual.dtype.type(self._shrink(step)) * self._distances(dual)

    def add_adjoint(self, dual: Array, field: Array, threads: Threads) -> None:
        """Add H'Y to `field` in place, for a Y that is 0 where there is no data."""

        def add(k: int) -> None:
            field[:, k] += dual[:, k].sum(axis=0)

        self._share_classes(add, threads)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, threads: Threads
    ) -> None:
        """Move Y, whose means are 0, in place towards shrink (Y + step (I - M) Z)."""
        # The means of Y are 0, so (I - M) Y = Y: only the field needs its means taken away, not the
        # dual, which is as many times larger as there are partitions.
        moved = relaxation * self._shrink(step)
        keep, towards = (
            dual.dtype.type(number) for number in (1 - relaxation + moved, moved * step)
        )

        def update(k: int) -> None:
            plane = np.ascontiguousarray(field[:, k])
            for j, segments in enumerate(self.partitions):
                dual[j, k] *= keep
                dual[j, k] += towards * segments.distance(plane)

        self._share_classes(update, threads)

    def value_of_field(self, field: Array, threads: Threads) -> float:
        """Return g(H Z), in double precision."""
        sums = np.empty(field.shape[1])

        def write(k: int) -> None:
            plane = field[:, k].astype(np.float64)
            sums[k] = sum(_squared_norm(segments.distance(plane)) for segments in self.partitions)

        self._share_classes(write, threads)
        return self.weight * float(sums.sum())

    def _share_classes(self, work: Callable[[int], None], threads: Threads) -> None:
        """Call `work` on each class: no sum depends on the threads, and temporaries are small."""

        def classes(first: int, last: int) -> None:
            for k in range(first, last):
                work(k)

        threads.share(self.grid.n_classes, classes)

    def _distances(self, coefficients: Array) -> Array:
        """Return (I - M_j) V_j of all partitions."""
        pairs = zip(self.partitions, coefficients, strict=True)
        return np.stack([[segments.distance(plane) for plane in part] for segments, part in pairs])

    def _shrink(self, step: float) -> float:
        return 2 * self.weight / (2 * self.weight + step)


def _squared_norm(coefficients: Array) -> float:
    numbers = coefficients.ravel()
    return float(np.einsum("i,i->", numbers, numbers, dtype=np.float64))


@dataclass(frozen=True)
class Segments:
    """A partition of the pixels, and the operator I - M with M the mean over segments.

    A pixel without data is a segment of its own: its distance is 0, and it enters no other mean.
    """

    index: NDArray[np.intp]  # (y, x), the segment of each pixel, from 0
    average: csr_array  # (segment, pixel), 1 / size for the pixels of a segment

    @classmethod
    def from_labels(cls, labels: NDArray[np.integer[Any]], grid: Grid) -> Segments:
        """Return the segments that each label names in each connected region of valid pixels."""
        valid = grid.valid
        if labels.shape != valid.shape:
            raise InputError(
                f"A partition must have the shape (y, x) of the scene, {valid.shape} "
                f"(got {labels.shape}). Cut or resample it to the scene first."
            )
        _, label = np.unique(labels[valid], return_inverse=True)
        # one number per pair of region and label: a label on both sides of a gap names two segments
        pairs = grid.regions[valid] * np.int64(label.max(initial=0) + 1) + label
        index = np.empty(valid.shape, np.intp)
        _, index[valid] = np.unique(pairs, return_inverse=True)
        n_invalid = valid.size - label.size
        index[~valid] = index[valid].max(initial=-1) + 1 + np.arange(n_invalid)
        size = np.bincount(index.ravel())
        # Sorted by segment, the pixels of a segment are a row of the sparse matrix as it is stored.
        members = np.argsort(index, axis=None, kind="stable").astype(np.int32)
        ends = np.cumsum(size, dtype=np.int32)
        average = csr_array((np.repeat(1 / size, size), members, np.append(0, ends)))
        return cls(index, average)

    def means(self, plane: Array) -> NDArray[np.float64]:
        """Return the mean of each segment, (segment,), of one class of a field, (y, x)."""
        means: NDArray[np.float64] = self.average @ plane.ravel()
        return means

    def distance(self, plane: Array) -> Array:
        """Return (I - M) Z of one class, (y, x)."""
        distance: Array = plane - np.take(self.means(plane).astype(plane.dtype), self.index)
        return distance


def given_partitions(partitions: Any) -> tuple[Labels, ...]:
    """Return one or several label arrays (y, x), NumPy or xarray, as a tuple of NumPy arrays."""
    are_several = isinstance(partitions, Sequence) or np.ndim(partitions) == 3
    given = tuple(partitions) if are_several else (partitions,)
    arrays = tuple(
        check_dims(part, MAP_DIMS, name="partition").values
        if isinstance(part, xr.DataArray)
        else plain_array(part, name="partition", fill="-1")
        for part in given
    )
    wrong = [a for a in arrays if a.ndim != 2 or a.dtype.kind not in "iu"]
    if wrong or not arrays:
        first = f"{wrong[0].dtype} of shape {wrong[0].shape}" if wrong else "an empty list"
        raise InputError(
            "partitions must be an array of whole numbers with the axes (y, x), one number per "
            f"segment, or a list of such arrays (got {first})."
        )
    return arrays


def slic_partition(
    components: NDArray[np.float64], valid: NDArray[np.bool_], n_segments: int
) -> Labels:
    """Return about `n_segments` SLIC superpixels, (y, x), 0 where there is no data."""
    if n_segments == 1:  # SLIC needs the distance between two
        return valid.astype(np.int64)
    if n_segments >= valid.sum():
        return np.where(valid, np.cumsum(valid).reshape(valid.shape), 0)
    from skimage.segmentation import slic  # noqa: PLC0415 (slow to import, and often not needed)

    rows, columns = (np.flatnonzero(valid.any(axis=axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]  # crops give the same answer
    image = np.moveaxis(components[:, *box], 0, -1)
    spectra = image[valid[box]]
    spread, extent = spectra[:, 0].std(), np.ptp(spectra)
    labels = np.zeros(valid.shape, np.int64)
    with warnings.catch_warnings():
        # on odd footprints some of the seeds that a mask asks for end up without pixels
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
        labels[box] = slic(
            image,
            n_segments,
            spread / extent
            if spread > 0
            else 1.0,  # of the image, which slic divides by its extent
            convert2lab=False,
            start_label=1,
            mask=None if valid[box].all() else valid[box],
            channel_axis=-1,
        )
    return labels
