"""Radial basis functions: their width, their centres, and their values block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

# Values computed at once: small enough for the processor's cache, large enough for its products.
_BLOCK_VALUES = 2**17


@dataclass(frozen=True)
class Basis:
    """The functions h(x) of a regression: radial basis functions, or the features themselves.

    Parameters
    ----------
    centers : array (function, feature) or None
        Centres of the radial basis functions; None for the features themselves.
    gamma : float or None
        Their inverse squared width.
    """

    centers: FloatArray | None = None
    gamma: float | None = None

    @classmethod
    def radial(
        cls, samples: FloatArray, weight: FloatArray, *, gamma: float | str, n_centers: int | None
    ) -> Basis:
        """Return radial basis functions at the distinct samples, or at `n_centers` of them."""
        width = scale_gamma(samples, weight) if isinstance(gamma, str) else float(gamma)
        if n_centers is None:
            return cls(np.unique(samples, axis=0), width)
        chosen = choose_centers(samples, weight, gamma=width, n_centers=n_centers)
        return cls(samples[chosen], width)

    def values(self, samples: FloatArray) -> FloatArray:
        """Return h(x) of each sample, (sample, function)."""
        if self.centers is None or self.gamma is None:
            return samples
        return radial_basis(samples, self.centers, self.gamma)

    def scores(self, samples: FloatArray, coef: FloatArray) -> FloatArray:
        """Return W'h(x), (sample, category), block by block and in the samples' float type.

        Parameters
        ----------
        samples : array (sample, feature)
            FloatArray, as many as a scene has.
        coef : array (category, function)
            Weights; functions without any are not computed.
        """
        used = np.flatnonzero(coef.any(axis=0))
        weights = np.ascontiguousarray(coef[:, used].T, dtype=samples.dtype)
        if not len(used):
            return np.zeros((len(samples), len(coef)), dtype=samples.dtype)
        if self.centers is None or self.gamma is None:
            return samples[:, used] @ weights if len(used) < len(coef.T) else samples @ weights
        centers = self.centers[used].astype(samples.dtype)
        scores = np.empty((len(samples), len(coef)), dtype=samples.dtype)
        for block in _blocks(len(samples), len(used)):
            np.matmul(radial_basis(samples[block], centers, self.gamma), weights, out=scores[block])
        return scores


def scale_gamma(samples: FloatArray, weight: FloatArray) -> float:
    """Return 1 / (mean squared distance of two samples), or 1 if all samples are equal.

    The weighted mean of |x_i - x_j|^2 over all pairs is twice the sum of the feature variances, so
    functions at this width are neither blind (distances all large) nor flat (all small).

    Examples
    --------
    >>> import numpy as np
    >>> scale_gamma(np.array([[0.0], [2.0]]), np.ones(2))  # distances 0, 2, 2, 0
    0.5
    """
    mean = np.average(samples, axis=0, weights=weight)
    spread = 2 * float(np.average(((samples - mean) ** 2).sum(axis=1), weights=weight))
    return 1 / spread if spread > 0 else 1.0


def choose_centers(
    samples: FloatArray, weight: FloatArray, *, gamma: float, n_centers: int
) -> NDArray[np.intp]:
    """Return the numbers of the samples that span the functions of all samples best.

    A Cholesky decomposition of the kernel matrix with pivoting: each centre is the sample whose
    function the centres before it explain least, the first the one nearest to the mean. Nothing is
    random and nothing depends on the order of the samples. Fewer come back when they explain all.

    Examples
    --------
    >>> import numpy as np
    >>> choose_centers(np.array([[0.0], [0.1], [1.0], [0.45]]), np.ones(4), gamma=1.0, n_centers=3)
    array([3, 2, 0])
    """
    count = min(n_centers, len(samples))
    unexplained = np.ones(len(samples))
    factor = np.zeros((len(samples), count))
    middle = np.average(samples, axis=0, weights=weight)
    pivot = int(np.argmin(((samples - middle) ** 2).sum(axis=1)))
    chosen = np.empty(count, dtype=np.intp)
    for step in range(count):
        if step:
            pivot = int(np.argmax(unexplained))
        if unexplained[pivot] < 1e-10:
            return chosen[:step]
        chosen[step] = pivot
        column = radial_basis(samples, samples[[pivot]], gamma)[:, 0]
        column -= factor[:, :step] @ factor[pivot, :step]
        factor[:, step] = column / np.sqrt(unexplained[pivot])
        unexplained -= factor[:, step] ** 2
        unexplained[pivot] = 0.0
    return chosen


def radial_basis(samples: FloatArray, centers: FloatArray, gamma: float) -> FloatArray:
    """Return exp(-gamma |x_i - c_j|^2), (sample, centre), in the samples' float type.

    Examples
    --------
    >>> import numpy as np
    >>> radial_basis(np.array([[0.0], [1.0]]), np.array([[0.0]]), 1.0).round(3)
    array([[1.   ],
           [0.368]])
    """
    origin = centers.mean(axis=0)  # squares of offsets would cost digits
    samples, centers = samples - origin, centers - origin
    exponent = samples @ (2 * gamma * centers).T
    exponent -= gamma * np.einsum("ij,ij->i", samples, samples)[:, None]
    exponent -= gamma * np.einsum("ij,ij->i", centers, centers)
    np.minimum(exponent, 0.0, out=exponent)  # rounding may bring it above
    return np.exp(exponent, out=exponent)


def _blocks(n_samples: int, n_values: int) -> Iterator[slice]:
    """Yield slices over the samples, so that a block with `n_values` per sample stays small."""
    step = max(1, _BLOCK_VALUES // max(1, n_values))
    for first in range(0, n_samples, step):
        yield slice(first, min(first + step, n_samples))
