"""One partition of the valid pixels, and the distance of each pixel to its segment's mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hsreject.context.kernels.segments import (
    add_distance_rows,
    segment_means,
    squared_distance_rows,
    update_dual_rows,
)
from hsreject.context.regions import connected_regions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hsreject.context.kernels.site_row import Steps
    from hsreject.context.workers import Workers

    Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Segments:
    """A partition, and the operator I - M with M the mean over segments.

    The operator is a symmetric projector: it is its own adjoint and its norm is 1, or 0 where
    every segment has one pixel.

    Parameters
    ----------
    index : array of int32, (y, x)
        Which segment, from 0; the number of segments where there is no data.
    inverse_size : array, (segment + 1,)
        One over the number of pixels of each segment, and a last 0 for pixels without data.
    """

    index: NDArray[np.int32]
    inverse_size: NDArray[np.float64]
    kernels: ClassVar[tuple[Callable[..., Any], ...]] = (
        segment_means,
        add_distance_rows,
        update_dual_rows,
        squared_distance_rows,
    )

    @classmethod
    def from_labels(cls, labels: NDArray[np.integer[Any]], valid: NDArray[np.bool_]) -> Segments:
        """Return the segments that each label names in each connected region of valid pixels.

        Examples
        --------
        >>> labels = np.array([[7, 7, 7, 7]])
        >>> Segments.from_labels(labels, np.array([[True, True, False, True]])).index
        array([[0, 0, 2, 1]], dtype=int32)
        """
        region = connected_regions(valid)[valid].astype(np.int64)
        _, label = np.unique(labels[valid], return_inverse=True)
        pairs = region * (label.max(initial=0) + 1) + label
        _, number, size = np.unique(pairs, return_inverse=True, return_counts=True)
        index = np.full(valid.shape, len(size), np.int32)
        index[valid] = number
        return cls(index, inverse_size=np.append(1.0 / size, 0.0))

    @property
    def squared_norm(self) -> float:
        """The squared norm of the operator."""
        return float((self.inverse_size[:-1] < 1).any())

    def distance(self, field: Array) -> Array:
        """Return (I - M) Z, 0 where there is no data."""
        distance = np.empty_like(field)
        for k in range(field.shape[1]):
            total = np.bincount(
                self.index.ravel(), field[:, k].ravel(), minlength=self.inverse_size.size
            )
            distance[:, k] = field[:, k] - (total * self.inverse_size)[self.index]
        nodata = self.index == self.inverse_size.size - 1
        return np.where(nodata[:, np.newaxis], field.dtype.type(0), distance)

    def add_distance(self, coefficients: Array, field: Array, workers: Workers) -> None:
        """Add (I - M) V to `field` in place."""
        means = self._means(coefficients, workers)

        def add(first: int, last: int) -> None:
            add_distance_rows(coefficients, self.index, means, field, first, last)

        workers.share(len(field), add)

    def move_dual(
        self, dual: Array, field: Array, *, shrink: float, steps: Steps, workers: Workers
    ) -> None:
        """Move Y in place towards shrink (Y + sigma (I - M) Z)."""
        means = self._means(field, workers)

        def move(first: int, last: int) -> None:
            update_dual_rows(dual, field, self.index, means, shrink, steps, first, last)

        workers.share(len(field), move)

    def squared_distance(self, field: Array, workers: Workers) -> float:
        """Return the squared norm of (I - M) Z."""
        means = self._means(field, workers)
        rows = np.empty(len(field))

        def write(first: int, last: int) -> None:
            squared_distance_rows(field, self.index, means, rows, first, last)

        workers.share(len(field), write)
        return float(rows.sum())

    def _means(self, field: Array, workers: Workers) -> NDArray[np.float64]:
        means = np.empty((field.shape[1], self.inverse_size.size))

        def write(first: int, last: int) -> None:
            segment_means(field, self.index, self.inverse_size, means, first, last)

        workers.share(len(means), write)
        return means
