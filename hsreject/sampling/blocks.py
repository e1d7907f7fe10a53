"""Spatially disjoint training and test pixels: whole blocks, with a gap between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import maximum_filter

from hsreject.errors import InputError
from hsreject.sampling.classwise import check_fraction, draw, random_keys
from hsreject.sampling.split import Labels, classes_present, label_values, split_by_masks

if TYPE_CHECKING:
    from numpy.typing import NDArray


def sample_blocks(
    labels: Labels,
    *,
    block_size: int = 16,
    fraction: float = 0.3,
    buffer: int = 4,
    n_per_class: int | None = None,
    seed: int = 0,
) -> tuple[Labels, Labels]:
    """Draw whole blocks of the image for training; test pixels keep a distance from them.

    Random training pixels have test pixels for neighbours, which lets location alone classify well.
    Here the image is cut into square blocks. Blocks are drawn for training, classes with the fewest
    blocks first, until each class has `fraction` of its pixels in them or no further block fits:
    never more than half of any class. A labelled pixel outside of them is for testing when it is
    more than `buffer` rows or columns away from every labelled pixel of the training blocks.

    Parameters
    ----------
    labels : DataArray or array of int, dims (y, x)
        Reference labels, 0 where there is none.
    block_size : int
        Side of a block in pixels, at least 1. A class that lies within one block cannot be in both
        parts, so small fields need small blocks.
    fraction : float
        Part of each class that is wanted for training, above 0 and at most 0.5.
    buffer : int
        Width of the gap in pixels, 0 or larger. Features that look at a neighbourhood of radius r
        need a gap of at least 2 r.
    n_per_class : int, optional
        Keep only so many random training pixels of each class. The others in the training blocks
        are then not used at all.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere.

    Returns
    -------
    train, test
        As :func:`sample_per_class`. Classes that are left without training or test pixels are named
        by an `EmptyClassWarning` and in the attributes.

    Examples
    --------
    >>> labels = np.ones((20, 40), dtype=int)
    >>> train, test = sample_blocks(labels, block_size=20, fraction=0.5, buffer=3)
    >>> int(train.sum()), int(test.sum())
    (400, 340)
    """
    values = label_values(labels)
    _check(values, block_size=block_size, buffer=buffer, n_per_class=n_per_class)
    check_fraction(fraction)
    blocks = _block_of_each_pixel(values.shape, block_size)
    chosen = _choose_blocks(values, blocks, fraction, seed)
    in_blocks = chosen[blocks] & (values > 0)
    in_test = (values > 0) & ~_widened(in_blocks, buffer)
    in_train = in_blocks if n_per_class is None else _thinned(values, in_blocks, n_per_class, seed)
    how = f"blocks size={block_size} fraction={fraction:g} buffer={buffer} seed={seed}"
    if n_per_class is not None:
        how += f" n_per_class={n_per_class}"
    return split_by_masks(labels, in_train, in_test, how=how)


def _check(values: NDArray[Any], *, block_size: int, buffer: int, n_per_class: int | None) -> None:
    if values.ndim != 2:
        raise InputError(f"labels must have the dims (y, x) (got {values.ndim} dimensions).")
    for name, value, least in (
        ("block_size", block_size, 1),
        ("buffer", buffer, 0),
        ("n_per_class", 1 if n_per_class is None else n_per_class, 1),
    ):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(
                f"{name} must be a whole number of pixels, at least {least} (got {value!r})."
            )


def _block_of_each_pixel(shape: tuple[int, ...], block_size: int) -> NDArray[np.intp]:
    row, column = np.indices(shape) // block_size
    return np.asarray(row * -(-shape[1] // block_size) + column, dtype=np.intp)


def _choose_blocks(
    values: NDArray[Any], blocks: NDArray[np.intp], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Return which blocks are for training, as a mask over block numbers."""
    n_blocks = int(blocks.max(initial=-1)) + 1
    counts = np.array(
        [np.bincount(blocks[values == v], minlength=n_blocks) for v in classes_present(values)]
    ).reshape(-1, n_blocks)
    most = counts.sum(axis=1) // 2
    wanted = np.minimum(np.floor(fraction * counts.sum(axis=1) + 0.5), most)
    order = np.argsort(random_keys(n_blocks, seed), kind="stable")
    chosen = np.zeros(n_blocks, dtype=bool)
    inside = np.zeros(len(counts), dtype=np.intp)
    for row in np.argsort(np.count_nonzero(counts, axis=1), kind="stable"):
        for block in order[counts[row, order] > 0]:
            if inside[row] >= wanted[row]:
                break
            if not chosen[block] and np.all(inside + counts[:, block] <= most):
                chosen[block] = True
                inside += counts[:, block]
    return chosen


def _widened(mask: NDArray[np.bool_], distance: int) -> NDArray[np.bool_]:
    """Return the pixels at most `distance` rows and columns away from a pixel of `mask`."""
    return np.asarray(maximum_filter(mask, size=2 * distance + 1, mode="constant"), dtype=bool)


def _thinned(
    values: NDArray[Any], mask: NDArray[np.bool_], count: int, seed: int
) -> NDArray[np.bool_]:
    inside = np.where(mask, values, 0)
    kept = np.zeros(values.size, dtype=bool)
    for value in classes_present(inside):
        kept[draw(inside, value, count, seed)] = True
    return kept.reshape(values.shape)
