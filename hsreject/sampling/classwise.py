"""Random pixels of each class: so many, or such a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError
from hsreject.sampling.split import Labels, classes_present, label_values, split_by_masks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def sample_per_class(
    labels: Labels, n_per_class: int = 10, *, seed: int = 0
) -> tuple[Labels, Labels]:
    """Draw `n_per_class` training pixels of each class; the other labelled pixels are for testing.

    A class with fewer than twice as many pixels gives half of them (rounded down). The draw of a
    class depends on its own pixels and the seed only, and a larger number keeps the pixels of a
    smaller one.

    Parameters
    ----------
    labels : DataArray or array of int, dims (y, x)
        Reference labels, 0 where there is none.
    n_per_class : int
        Training pixels of each class, at least 1.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere.

    Returns
    -------
    train, test
        Labels of the type of `labels`, 0 where a pixel is not used; they share no pixel. Classes
        without a training pixel are named by an `EmptyClassWarning` and in the attributes.

    Examples
    --------
    >>> labels = np.array([[1, 1, 1, 1], [2, 2, 0, 0]])
    >>> train, test = sample_per_class(labels, 10)
    >>> np.bincount(train.ravel())[1:], np.bincount(test.ravel())[1:]
    (array([2, 1]), array([2, 1]))
    """
    if not isinstance(n_per_class, int | np.integer) or n_per_class < 1:
        raise InputError(
            f"n_per_class must be a whole number of pixels, at least 1 (got {n_per_class!r})."
        )
    how = f"per_class n_per_class={n_per_class} seed={seed}"
    return _sample(labels, lambda size: min(int(n_per_class), size), seed, how=how)


def sample_fraction(
    labels: Labels, fraction: float = 0.1, *, seed: int = 0
) -> tuple[Labels, Labels]:
    """Draw a fraction of the pixels of each class for training, the others are for testing.

    At least one pixel of every class that has two, and at most half of a class.

    Parameters
    ----------
    labels : DataArray or array of int, dims (y, x)
        Reference labels, 0 where there is none.
    fraction : float
        Part of each class that is for training, above 0 and at most 0.5.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere.

    Returns
    -------
    train, test
        As :func:`sample_per_class`.

    Examples
    --------
    >>> train, test = sample_fraction(np.repeat([1, 2], [100, 8]), 0.05)
    >>> np.bincount(train)[1:]
    array([5, 1])
    """
    check_fraction(fraction)
    return _sample(
        labels,
        lambda size: max(1, int(fraction * size + 0.5)),
        seed,
        how=f"fraction {fraction:g} seed={seed}",
    )


def check_fraction(fraction: float) -> None:
    """Raise unless `fraction` leaves at least half of a class for testing."""
    if not 0 < fraction <= 0.5:
        raise InputError(
            f"fraction must be above 0 and at most 0.5 (got {fraction!r}): "
            "at least half of every class is left for testing."
        )


def random_keys(count: int, seed: int, *stream: int) -> NDArray[np.uint64]:
    """Return `count` random keys of one of the streams of a seed.

    Raw words of a bit generator: NumPy promises that these never change, while the methods of its
    `Generator` may draw differently in another version.
    """
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number, 0 or larger (got {seed!r}).")
    words = np.random.PCG64(np.random.SeedSequence([int(seed), *stream])).random_raw(count)
    return np.asarray(words, dtype=np.uint64)


def draw(values: NDArray[Any], value: int, count: int, seed: int) -> NDArray[np.intp]:
    """Return the flat positions of `count` random pixels that have the label `value`."""
    positions = np.flatnonzero(values == value)
    order = np.argsort(random_keys(positions.size, seed, value), kind="stable")
    return np.asarray(positions[order[:count]], dtype=np.intp)


def _sample(
    labels: Labels, wanted: Callable[[int], int], seed: int, *, how: str
) -> tuple[Labels, Labels]:
    values = label_values(labels)
    in_train = np.zeros(values.size, dtype=bool)
    for value in classes_present(values):
        size = int(np.count_nonzero(values == value))
        in_train[draw(values, value, min(wanted(size), size // 2), seed)] = True
    mask = in_train.reshape(values.shape)
    return split_by_masks(labels, mask, (values > 0) & ~mask, how=how)
