r"""Products and distances of pixels in single precision: the same bits wherever a pixel stands.

Libraries of linear algebra add up in an order that depends on the place of a pixel in the array:
maps would depend on their blocks. Here every pixel adds up its numbers in their order.

Pixels are taken in *panels* of PANEL = 256, copied so that every band or feature is a run of PANEL
numbers: sums stay in the first cache. The innermost loops run over the pixels of a panel and become
vector instructions. GROUP runs are taken at a time, and two features of a product, which saves most
of the reading and writing of sums: as quick as a library for 60 features of 200 bands. Runs are
slices of their own, or the compiler would not see that they do not overlap (a factor of ten).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.compilation import ZERO, FloatArray, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

PANEL = 256  # pixels
GROUP = 4  # bands or features
_INFINITE = np.float32(np.inf)


def product(weights: NDArray[Any], spectra: NDArray[Any]) -> NDArray[np.float32]:
    """Return weights (feature, band) @ spectra (band, pixel)."""
    n_features, n_pixels = len(weights), spectra.shape[1]
    rows = _padded(weights, 2)
    panel = np.zeros((rows.shape[1], PANEL), dtype=np.float32)
    sums = np.empty((len(rows), PANEL), dtype=np.float32)
    features = np.empty((n_features, n_pixels), dtype=np.float32)
    for start in range(0, n_pixels, PANEL):
        part = spectra[:, start : start + PANEL]
        panel[: part.shape[0], : part.shape[1]] = part
        _product(rows, panel, sums)
        features[:, start : start + PANEL] = sums[:n_features, : part.shape[1]]
    return features


def nearest_squares(features: NDArray[Any], samples: NDArray[Any]) -> NDArray[np.float32]:
    r"""Return :math:`\min_i \|x - s_i\|^2` of pixels x (feature, pixel), s_i `samples[i]`."""
    n_pixels = features.shape[1]
    rows = _padded(samples, 1)
    panel = np.zeros((rows.shape[1], PANEL), dtype=np.float32)
    total, smallest = np.empty((2, PANEL), dtype=np.float32)
    squares = np.empty(n_pixels, dtype=np.float32)
    for start in range(0, n_pixels, PANEL):
        part = features[:, start : start + PANEL]
        panel[: part.shape[0], : part.shape[1]] = part
        _nearest(rows, panel, total, smallest)
        squares[start : start + PANEL] = smallest[: part.shape[1]]
    return squares


def _padded(rows: NDArray[Any], n_rows_at_once: int) -> NDArray[np.float32]:
    """Return rows in single precision, followed by zeros up to whole groups."""
    lacking = (-rows.shape[0] % n_rows_at_once, -rows.shape[1] % GROUP)
    return np.pad(rows.astype(np.float32), [(0, size) for size in lacking])


@kernel
def _product(weights: FloatArray, panel: FloatArray, sums: FloatArray) -> None:
    for k in range(0, weights.shape[0], 2):
        first, second = sums[k], sums[k + 1]
        first[:] = ZERO
        second[:] = ZERO
        for b in range(0, weights.shape[1], GROUP):
            x0, x1, x2, x3 = panel[b], panel[b + 1], panel[b + 2], panel[b + 3]
            v0, v1, v2, v3 = weights[k, b], weights[k, b + 1], weights[k, b + 2], weights[k, b + 3]
            w0, w1 = weights[k + 1, b], weights[k + 1, b + 1]
            w2, w3 = weights[k + 1, b + 2], weights[k + 1, b + 3]
            for j in range(PANEL):
                first[j] = (((first[j] + v0 * x0[j]) + v1 * x1[j]) + v2 * x2[j]) + v3 * x3[j]
                second[j] = (((second[j] + w0 * x0[j]) + w1 * x1[j]) + w2 * x2[j]) + w3 * x3[j]


@kernel
def _nearest(
    samples: FloatArray, panel: FloatArray, total: FloatArray, smallest: FloatArray
) -> None:
    smallest[:] = _INFINITE
    for i in range(samples.shape[0]):
        total[:] = ZERO
        for f in range(0, samples.shape[1], GROUP):
            x0, x1, x2, x3 = panel[f], panel[f + 1], panel[f + 2], panel[f + 3]
            s0, s1, s2, s3 = samples[i, f], samples[i, f + 1], samples[i, f + 2], samples[i, f + 3]
            for j in range(PANEL):
                d0, d1, d2, d3 = x0[j] - s0, x1[j] - s1, x2[j] - s2, x3[j] - s3
                total[j] = (((total[j] + d0 * d0) + d1 * d1) + d2 * d2) + d3 * d3
        for j in range(PANEL):
            smallest[j] = min(smallest[j], total[j])
