"""Training and test pixels: drawn per class, per fraction or by blocks, or given.

Every function returns two label arrays, train and test, that share no pixel and hold 0 where a
pixel is not used. What is drawn depends on the seed and the labels alone: not on the type of the
array, its chunks, the platform or the version of NumPy.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import xarray as xr
from scipy.ndimage import maximum_filter

from hsreject.errors import EmptyClassWarning, InputError
from hsreject.registry import check_count
from hsreject.schema import MAP_DIMS, POLYGON, check_labels, check_same_grid, reference_labels
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Labels = TypeVar("Labels", bound="NDArray[Any] | xr.DataArray")

WITHOUT_TRAINING = "classes_without_training"
WITHOUT_TEST = "classes_without_test"
MEANING = "sampling_meaning"
"""Attribute of a split: one sentence on how it was made and what its accuracy is about."""

_BESIDE = (
    "Training pixels were drawn at random from the labelled ones, so test pixels lie beside them: "
    "the accuracy is that of pixels like these, not of places without labels."
)


def sample_per_class(
    labels: Labels, n_per_class: int = 10, *, seed: int = 0
) -> tuple[Labels, Labels]:
    """Draw `n_per_class` training pixels of each class; the other labelled ones are for testing.

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

    See Also
    --------
    hsreject.sample_fraction : a share of each class.
    hsreject.sample_blocks : keeps test pixels at a distance.
    hsreject.sample_polygons : whole polygons.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import sample_per_class
    >>> labels = np.array([[1, 1, 1, 1], [2, 2, 0, 0]])
    >>> train, test = sample_per_class(labels, 10)
    >>> np.bincount(train.ravel())[1:], np.bincount(test.ravel())[1:]
    (array([2, 1]), array([2, 1]))
    """
    check_count("n_per_class", n_per_class, least=1)
    how = f"per_class n_per_class={n_per_class} seed={seed}"
    return _sample(labels, lambda _size: int(n_per_class), seed, how=how)


def sample_fraction(
    labels: Labels, fraction: float = 0.1, *, seed: int = 0
) -> tuple[Labels, Labels]:
    """Draw a fraction of the pixels of each class for training; the others are for testing.

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

    See Also
    --------
    hsreject.sample_per_class : as many of each class.
    hsreject.sample_blocks : keeps test pixels at a distance.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import sample_fraction
    >>> train, test = sample_fraction(np.repeat([1, 2], [100, 8]), 0.05)
    >>> np.bincount(train)[1:]
    array([5, 1])
    """
    _check_fraction(fraction)
    how = f"fraction {fraction:g} seed={seed}"
    return _sample(labels, lambda size: max(1, int(fraction * size + 0.5)), seed, how=how)


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
        Keep only this many random training pixels of each class. The others in the training blocks
        are then not used at all.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere.

    Returns
    -------
    train, test
        As :func:`sample_per_class`. Classes that are left without training or test pixels are named
        by an `EmptyClassWarning` and in the attributes.

    See Also
    --------
    hsreject.sample_polygons : for digitised labels.
    hsreject.sample_per_class : single pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import sample_blocks
    >>> labels = np.ones((20, 40), dtype=int)
    >>> train, test = sample_blocks(labels, block_size=20, fraction=0.5, buffer=3)
    >>> int(train.sum()), int(test.sum())
    (400, 340)
    """
    values = reference_labels(labels)
    if values.ndim != 2:
        raise InputError(f"labels must have the dims (y, x) (got {values.ndim} dimensions).")
    check_count("block_size", block_size, least=1)
    check_count("buffer", buffer, least=0)
    _check_fraction(fraction)
    if n_per_class is not None:
        check_count("n_per_class", n_per_class, least=1)
    block = _block_of_each_pixel(values.shape, block_size)
    in_train = _choose_blocks(values, block, fraction, seed)[block] & (values > 0)
    # at most `buffer` rows and columns away from a labelled pixel of a training block
    near = maximum_filter(in_train, size=2 * buffer + 1, mode="constant")
    in_test = (values > 0) & ~near
    how = f"blocks size={block_size} fraction={fraction:g} buffer={buffer} seed={seed}"
    meaning = (
        "Training and test pixels lie in different blocks of the scene, more than "
        f"{buffer} pixels apart: the accuracy is that of places without labels."
    )
    if n_per_class is not None:
        in_train = _drawn(np.where(in_train, values, 0), lambda _size: n_per_class, seed)
        how += f" n_per_class={n_per_class}"
    return split_by_masks(labels, in_train, in_test, how=how, meaning=meaning)


def deal_folds(
    labels: NDArray[Any], n_folds: int, *, seed: int = 0, most: int | None = None
) -> NDArray[np.intp]:
    """Deal labelled pixels into folds, class by class; return their numbers, -1 for none.

    A pixel without a label (0) is in no fold, and neither is the only pixel of a class: whichever
    fold is left out, every class keeps a pixel. The folds differ in size by one pixel at most.
    With `most`, no more than this many pixels are dealt in all (but two of each class).
    """
    check_count("n_folds", n_folds, least=2)
    fold = np.full(labels.size, -1, dtype=np.intp)
    classes = _classes_present(labels)
    share = labels.size if most is None else max(most // max(len(classes), 1), 2)
    dealt = 0
    for value in classes:
        members = np.flatnonzero(labels == value)
        if members.size < 2:
            continue
        order = np.argsort(random_keys(members.size, seed, value), kind="stable")[:share]
        fold[members[order]] = (dealt + np.arange(order.size)) % n_folds
        dealt += order.size
    return fold.reshape(labels.shape)


def given_split(train: Labels, test: Labels) -> tuple[Labels, Labels]:
    """Check a train/test split from elsewhere, and take it.

    Benchmarks publish their split as two label files: open both and pass them here.

    Parameters
    ----------
    train, test : DataArray or array of int, dims (y, x)
        Labels of the training and of the test pixels, 0 where a pixel is not used. They lie on one
        grid, share no pixel and mean the same classes.

    Returns
    -------
    train, test
        The same labels. Classes that only one of them has are named by an `EmptyClassWarning` and
        in the attributes `classes_without_training` and `classes_without_test`.

    See Also
    --------
    hsreject.sample_per_class : draws one.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import given_split
    >>> train, test = given_split(np.array([[1, 0, 2, 0]]), np.array([[0, 1, 0, 2]]))
    >>> test
    array([[0, 1, 0, 2]])
    """
    halves = reference_labels(train, name="train"), reference_labels(test, name="test")
    if halves[0].shape != halves[1].shape:
        raise InputError(
            f"train and test must lie on one grid (got the shapes {halves[0].shape} and "
            f"{halves[1].shape})."
        )
    if isinstance(train, xr.DataArray) and isinstance(test, xr.DataArray):
        check_same_grid(train, test, names=("train", "test"))
        _check_same_classes(train, test)
    shared = int(np.count_nonzero((halves[0] > 0) & (halves[1] > 0)))
    if shared:
        raise InputError(
            f"train and test share {shared} pixels. Set the labels of one of them to 0 there."
        )
    meaning = "Training and test pixels were given: the accuracy is that of pixels like the test's."
    everything = np.concatenate([part.ravel() for part in halves])
    return _split(_one_numbering(train, test), halves, everything, how="given", meaning=meaning)


def _classes_present(values: NDArray[Any]) -> list[int]:
    """List the classes that have a pixel, ascending."""
    return [int(value) for value in np.unique(values) if value > 0]


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction <= 0.5:
        raise InputError(
            f"fraction must be above 0 and at most 0.5 (got {fraction!r}): "
            "at least half of every class is left for testing."
        )


def random_keys(count: int, seed: int, *stream: int) -> NDArray[np.uint64]:
    """Draw `count` random keys of one of the streams of a seed.

    Raw words of a bit generator: NumPy promises that these never change, while the methods of its
    `Generator` may draw differently in another version.
    """
    check_count("seed", seed, least=0)
    words = np.random.PCG64(np.random.SeedSequence([int(seed), *stream])).random_raw(count)
    return np.asarray(words, dtype=np.uint64)


def _drawn(values: NDArray[Any], quota: Callable[[int], int], seed: int) -> NDArray[np.bool_]:
    """Draw `quota(size)` random pixels of each class of that size."""
    mask = np.zeros(values.size, dtype=bool)
    for value in _classes_present(values):
        positions = np.flatnonzero(values == value)
        # a stream per class: what is drawn of one does not change when another gains pixels
        order = np.argsort(random_keys(positions.size, seed, value), kind="stable")
        mask[positions[order[: quota(positions.size)]]] = True
    return mask.reshape(values.shape)


def _sample(
    labels: Labels, quota: Callable[[int], int], seed: int, *, how: str
) -> tuple[Labels, Labels]:
    """Draw the split whose training pixels are `quota(size)` of a class, at most half of it."""
    values = reference_labels(labels)
    in_train = _drawn(values, lambda size: min(quota(size), size // 2), seed)
    return split_by_masks(labels, in_train, (values > 0) & ~in_train, how=how, meaning=_BESIDE)


def _block_of_each_pixel(shape: tuple[int, ...], block_size: int) -> NDArray[np.intp]:
    row, column = np.indices(shape) // block_size
    return np.asarray(row * -(-shape[1] // block_size) + column, dtype=np.intp)


def _choose_blocks(
    values: NDArray[Any], blocks: NDArray[np.intp], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Draw which blocks are for training, as a mask over block numbers.

    Blocks come in one random order. Class after class, rare ones first, takes the next block that
    leaves every class at least half of its pixels, until it has its quota.
    """
    n_blocks = int(blocks.max(initial=-1)) + 1
    counts = np.array(
        [np.bincount(blocks[values == v], minlength=n_blocks) for v in _classes_present(values)]
    ).reshape(-1, n_blocks)
    most = counts.sum(axis=1) // 2
    quota = np.minimum(np.floor(fraction * counts.sum(axis=1) + 0.5), most)
    order = np.argsort(random_keys(n_blocks, seed), kind="stable")
    is_training = np.zeros(n_blocks, dtype=bool)
    inside = np.zeros(len(counts), dtype=np.intp)
    # A class that lies in few blocks has few to choose from, so it goes first; common ones get part
    # of their quota along the way. `most` counts for all classes at every step, so that none loses
    # more than half of its pixels to training, whichever class takes the block.
    for row in np.argsort(np.count_nonzero(counts, axis=1), kind="stable"):
        for block in order[counts[row, order] > 0]:
            if inside[row] >= quota[row]:
                break
            if not is_training[block] and np.all(inside + counts[:, block] <= most):
                is_training[block] = True
                inside += counts[:, block]
    return is_training


def split_by_masks(
    labels: Labels,
    in_train: NDArray[np.bool_],
    in_test: NDArray[np.bool_],
    *,
    how: str,
    meaning: str,
    tested: bool = True,
) -> tuple[Labels, Labels]:
    """Keep `labels` where each mask holds, 0 elsewhere; not `tested`: none is missed there."""
    values = reference_labels(labels)
    zero = values.dtype.type(0)
    split = np.where(in_train, values, zero), np.where(in_test, values, zero)
    return _split((labels, labels), split, values, how=how, meaning=meaning, tested=tested)


def _split(
    templates: tuple[Labels, Labels],
    parts: tuple[NDArray[Any], NDArray[Any]],
    everything: NDArray[Any],
    *,
    how: str,
    meaning: str,
    tested: bool = True,
) -> tuple[Labels, Labels]:
    """Make both parts of a split, in the type of their templates, and report empty classes."""
    present = _classes_present(everything)
    if not present:
        raise InputError("There is no labelled pixel to sample: every label is 0.")
    empty = {
        name: sorted(set(present) - set(_classes_present(part)))
        for name, part in zip((WITHOUT_TRAINING, WITHOUT_TEST), parts, strict=True)
        if tested or name == WITHOUT_TRAINING
    }
    _warn_of_empty_classes(empty, templates[0], everything)
    if not isinstance(templates[0], xr.DataArray):
        return cast("tuple[Labels, Labels]", parts)
    named = {name: values for name, values in empty.items() if values}
    attrs: dict[str, Any] = {"sampling": how, MEANING: meaning, **named}
    labelled = tuple(
        check_labels(cast("xr.DataArray", template)).copy(data=part).assign_attrs(attrs)
        for template, part in zip(templates, parts, strict=True)
    )
    return cast("tuple[Labels, Labels]", labelled)


def _warn_of_empty_classes(
    empty: dict[str, list[int]], template: NDArray[Any] | xr.DataArray, values: NDArray[Any]
) -> None:
    table = ClassTable.from_attrs(template.attrs) if isinstance(template, xr.DataArray) else None
    for name, kind in ((WITHOUT_TRAINING, "training"), (WITHOUT_TEST, "test")):
        if not empty.get(name):
            continue
        names = []
        for value in empty[name]:
            count = np.count_nonzero(values == value)
            size = f"{count} pixel" if count == 1 else f"{count} pixels"
            called = f"{table.name_of(value)}, {size}" if table else size
            names.append(f"{value} ({called})")
        message = f"No {kind} pixel for class {', '.join(names)}."
        warnings.warn(message, EmptyClassWarning, stacklevel=5)


def _one_numbering(train: Labels, test: Labels) -> tuple[Labels, Labels]:
    """Give both parts of a given split one numbering of their polygons, if they have any."""
    if not isinstance(train, xr.DataArray) or not isinstance(test, xr.DataArray):
        return train, test
    parts = check_labels(train), check_labels(test)
    if all(POLYGON in part.coords for part in parts):
        ours, theirs = (np.where(part > 0, part[POLYGON], 0) for part in parts)
        numbers = np.where(theirs > 0, theirs + ours.max(initial=0), ours)
        numbered = [part.assign_coords({POLYGON: (MAP_DIMS, numbers)}) for part in parts]
    else:
        numbered = [part.drop_vars(POLYGON, errors="ignore") for part in parts]
    return cast("tuple[Labels, Labels]", tuple(numbered))


def _check_same_classes(train: xr.DataArray, test: xr.DataArray) -> None:
    tables = ClassTable.from_attrs(train.attrs), ClassTable.from_attrs(test.attrs)
    if tables[0] is None or tables[1] is None:
        return
    for value in set(tables[0].values) & set(tables[1].values):
        if tables[0].name_of(value) != tables[1].name_of(value):
            raise InputError(
                f"Class {value} is '{tables[0].name_of(value)}' in train but "
                f"'{tables[1].name_of(value)}' in test. Give both one class table."
            )
