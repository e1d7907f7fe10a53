"""The functions that the sparse regression sees samples by: radial ones, or the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

# Values computed at once: small enough for the processor's cache, large enough for its products.
_BLOCK_VALUES = 2**17
_MOST_CANDIDATES = 2000


@dataclass(frozen=True)
class Basis:
    """The functions h(x) of a regression: radial basis functions, or the features themselves."""

    centers: FloatArray | None = None  # (function, feature); None for the features themselves
    gamma: float | None = None  # inverse squared width

    @classmethod
    def radial(
        cls, samples: FloatArray, weight: FloatArray, *, gamma: float | str, n_centers: int | None
    ) -> Basis:
        """Return radial basis functions at the distinct samples, or at `n_centers` of them."""
        width = scale_gamma(samples, weight) if isinstance(gamma, str) else float(gamma)
        if n_centers is None:
            return cls(np.unique(samples, axis=0), width)
        centers = choose_centers(samples, weight, gamma=width, n_centers=n_centers)
        return cls(samples[centers], width)

    def values(self, samples: FloatArray) -> FloatArray:
        """Return h(x) of each sample, (sample, function); each function is contiguous in memory."""
        if self.centers is None or self.gamma is None:
            return samples
        return radial_basis(self.centers, samples, self.gamma).T

    def scores(self, samples: FloatArray, coef: FloatArray) -> FloatArray:
        """Return W'h(x), (sample, category), block by block and in the samples' float type.

        Functions without a weight in `coef` (category, function) are not computed.
        """
        used = np.flatnonzero(coef.any(axis=0))
        weights = np.ascontiguousarray(coef[:, used].T, dtype=samples.dtype)
        if not len(used):
            return np.zeros((len(samples), len(coef)), dtype=samples.dtype)
        if self.centers is None or self.gamma is None:
            return samples[:, used] @ weights if len(used) < len(coef.T) else samples @ weights
        centers = self.centers[used].astype(samples.dtype)
        scores = np.empty((len(samples), len(coef)), dtype=samples.dtype)
        step = max(1, _BLOCK_VALUES // len(used))
        for first in range(0, len(samples), step):
            block = slice(first, first + step)
            np.matmul(radial_basis(samples[block], centers, self.gamma), weights, out=scores[block])
        return scores


def scale_gamma(samples: FloatArray, weight: FloatArray) -> float:
    """Return 1 / (mean squared distance of two samples), or 1 if all samples are equal.

    The weighted mean of |x_i - x_j|^2 over all pairs is twice the sum of the feature variances.
    """
    mean = np.average(samples, axis=0, weights=weight)
    spread = 2 * float(np.average(((samples - mean) ** 2).sum(axis=1), weights=weight))
    return 1 / spread if spread > 0 else 1.0


def choose_centers(
    samples: FloatArray, weight: FloatArray, *, gamma: float, n_centers: int
) -> NDArray[np.intp]:
    """Return the numbers of the samples that span the functions of all samples best.

    A greedy pivoted Cholesky factorisation: each centre is the one after which least of the kernel
    matrix (its weighted trace) is left outside the span of the centres. Nothing is random. Fewer
    centres come back when they explain everything.
    """
    candidates = np.arange(len(samples))
    if len(samples) > _MOST_CANDIDATES:
        candidates = np.linspace(0, len(samples) - 1, _MOST_CANDIDATES).astype(np.intp)
    weight = weight[candidates]
    kernel = radial_basis(samples[candidates], samples[candidates], gamma)
    count = min(n_centers, len(candidates))
    factor = np.zeros((len(candidates), count))  # kernel - factor @ factor.T is unexplained
    diagonal = np.ones(len(candidates))
    column_norms = weight @ kernel**2
    centers = np.empty(count, dtype=np.intp)
    for step in range(count):
        # With R what is unexplained of the kernel, a centre j takes R_j R_j' / R_jj away from it
        # and lowers the weighted trace by sum_i w_i R_ij^2 / R_jj. Samples that are explained
        # already (R_jj of 0) gain nothing and are not divided by.
        gain = np.where(diagonal > 1e-9, column_norms / np.maximum(diagonal, 1e-9), -np.inf)
        best = int(gain.argmax())
        if gain[best] == -np.inf:
            return candidates[centers[:step]]
        centers[step] = best
        earlier = factor[:, :step]
        column = (kernel[best] - earlier @ earlier[best]) / np.sqrt(diagonal[best])
        pull = weight * column
        # (R_ij - c_i c_j)^2, c the new column, multiplied out: the sums follow without writing R
        shared = kernel @ pull - earlier @ (pull @ earlier)
        column_norms += column * ((pull @ column) * column - 2 * shared)
        factor[:, step] = column
        diagonal -= column**2
    return candidates[centers]


def radial_basis(samples: FloatArray, centers: FloatArray, gamma: float) -> FloatArray:
    """Return exp(-gamma |x_i - c_j|^2), (sample, centre), in the precision of the samples."""
    origin = centers.mean(axis=0)  # squares of offsets would cost digits
    samples, centers = samples - origin, centers - origin
    exponent: FloatArray = samples @ (2 * gamma * centers).T
    exponent -= gamma * np.einsum("ij,ij->i", samples, samples)[:, None]
    exponent -= gamma * np.einsum("ij,ij->i", centers, centers)
    np.minimum(exponent, 0, out=exponent)  # a distance of zero may round to less
    return np.exp(exponent, out=exponent)
