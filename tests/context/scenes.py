"""Small problems that several tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.context.prior import Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = NDArray[np.float64] if TYPE_CHECKING else Any


def random_probability(shape: tuple[int, int, int], *, seed: int, sharpness: float = 2.0) -> Array:
    """Return random class probabilities (category, y, x)."""
    scores = sharpness * np.random.default_rng(seed).standard_normal(shape)
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=0)


def regions(shape: tuple[int, int, int], *, seed: int, noise: float = 2.0) -> Array:
    """Return probabilities (category, y, x) of noisy vertical stripes, one per class."""
    n_classes, _, n_columns = shape
    scores = noise * np.random.default_rng(seed).standard_normal(shape)
    stripe = np.arange(n_columns) * n_classes // n_columns
    scores += 2.0 * (np.arange(n_classes)[:, None, None] == stripe)
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=0)


def example_image(shape: tuple[int, int, int], *, seed: int) -> Array:
    """Return an image (band, y, x) with two regions and noise."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    noise[:, :, shape[2] // 2 :] += 4.0
    return noise


def grid_of(
    valid: NDArray[np.bool_], *, n_classes: int = 3, dtype: str = "float64", seed: int = 0
) -> Grid:
    """Return a grid with an image of five bands."""
    return Grid(valid, n_classes, np.dtype(dtype), example_image((5, *valid.shape), seed=seed))


def with_hole(n_rows: int = 7, n_columns: int = 9) -> NDArray[np.bool_]:
    """Return a footprint with a hole, a missing corner and a pixel on its own."""
    valid = np.ones((n_rows, n_columns), dtype=bool)
    valid[2:4, 3:5] = False
    valid[-2:, -3:] = False
    valid[-1, -1] = True
    return valid
