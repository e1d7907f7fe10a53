"""The first largest category of every pixel, in one pass over the field."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.lib.stride_tricks import as_strided

from hsreject.compilation import compiled
from hsreject.schema import label_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 2000  # pixels whose running maxima stay in the nearest cache

_EVERYWHERE = (np.empty(0, np.int32), np.empty(0, np.int64))  # no reference, and no labels in it


class FirstLargest(NamedTuple):
    """Where the first largest category of every pixel stands, and what stands there.

    Attributes
    ----------
    position : array of uint8 or uint16 (...)
        Counted from 0; the number of categories where any value is NaN.
    value : array of float (...)
        The largest value, NaN where any value is.
    beside : array of float (...)
        The value of the other field at the same category; that of category 0 where `value` is NaN.
    """

    position: NDArray[np.unsignedinteger]
    value: NDArray[np.floating]
    beside: NDArray[np.floating]


def first_largest(
    field: NDArray[np.floating], beside: NDArray[np.floating] | None = None
) -> FirstLargest:
    """Return the first largest value along the first axis, and what stands beside it.

    Parameters
    ----------
    field : array (category, ...)
    beside : array of the same shape, optional
        By default the field itself.

    Examples
    --------
    >>> found = first_largest(np.array([[0.2, 0.5, np.nan], [0.8, 0.5, np.nan]]))
    >>> found.position, found.value
    (array([1, 0, 2], dtype=uint8), array([0.8, 0.5, nan]))
    """
    shape = field.shape[1:]
    position, value, other = _scanned(field, beside, math.prod(shape), _EVERYWHERE)[0]
    return FirstLargest(position.reshape(shape), value.reshape(shape), other.reshape(shape))


def first_largest_of_samples(
    field: NDArray[np.floating],
    beside: NDArray[np.floating] | None,
    reference: NDArray[np.integer],
    labels: NDArray[np.integer],
) -> tuple[FirstLargest, NDArray[np.bool_]]:
    """Return what :func:`first_largest` finds at the pixels with a reference, and if it is right.

    Parameters
    ----------
    field, beside
        As for :func:`first_largest`.
    reference : array of int, the shape of a category
        0 where there is no reference.
    labels : array of int (category)
        What the reference calls the categories.

    Returns
    -------
    found : FirstLargest (sample)
        At the pixels with a reference, in row order.
    correct : array of bool (sample)
        Whether the category is that of the reference; False where `value` is NaN.

    Examples
    --------
    >>> field = np.array([[0.2, 0.9, 0.6], [0.8, 0.1, 0.4]])
    >>> reference, labels = np.array([7, 0, 7]), np.array([3, 7])
    >>> found, correct = first_largest_of_samples(field, None, reference, labels)
    >>> found.value, correct
    (array([0.8, 0.6]), array([ True, False]))
    """
    # two types of reference and no more, since the loop is compiled for each
    kind: type[np.signedinteger] = np.int32 if reference.dtype.itemsize <= 2 else np.int64
    wanted = reference.reshape(-1).astype(kind, copy=False)
    names = labels.astype(np.int64, copy=False)
    return _scanned(field, beside, int(np.count_nonzero(reference)), (wanted, names))


def _scanned(
    field: NDArray[np.floating],
    beside: NDArray[np.floating] | None,
    size: int,
    reference: tuple[NDArray[np.signedinteger], NDArray[np.int64]],
) -> tuple[FirstLargest, NDArray[np.bool_]]:
    precision = precision_of(field.dtype)
    field = field.astype(precision, copy=False)
    rows = _rows(field)
    others = rows if beside is None else _rows(beside.astype(precision, copy=False))
    n_categories = len(field)
    n_rows, n_columns = _grid(field.shape[1:])
    if rows[1] == others[1] == n_columns:  # rows adjoin in both, and long runs are read faster
        n_rows, n_columns = 1, n_rows * n_columns
    position = np.empty(size, label_dtype(n_categories))
    value, at_label = np.empty((2, size), precision)
    correct = np.empty(0 if reference is _EVERYWHERE else size, np.bool_)
    _scan(
        (rows, others),
        (n_categories, n_rows, n_columns),
        reference,
        np.empty(2 * CHUNK, precision),
        (position, value, at_label, correct),
    )
    return FirstLargest(position, value, at_label), correct


def precision_of(dtype: np.dtype[Any]) -> np.dtype[np.floating]:
    """Return float32 for float32 and float16, float64 for everything else."""
    return np.dtype(np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else np.float64)


def _grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of a map, or of what is taken as one row."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, math.prod(shape))


def _rows(field: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Return the memory of a field, and the distances in it between rows and categories.

    A field lies in memory as (category, y, x) or, from the context, as (y, category, x), and may be
    a part of another: as long as the pixels of a row are neighbours, nothing is copied.
    """
    cube = field.reshape(len(field), *_grid(field.shape[1:]))
    width = cube.itemsize
    if cube.strides[2] != width or min(cube.strides) < 0 or cube.size == 0:
        cube = np.ascontiguousarray(cube)
    category_step, row_step = (stride // width for stride in cube.strides[:2])
    if cube.flags.c_contiguous:  # the usual case; as_strided takes several times as long
        return cube.reshape(-1), row_step, category_step
    n_categories, n_rows, n_columns = cube.shape
    reach = (n_categories - 1) * category_step + (n_rows - 1) * row_step + n_columns
    memory = as_strided(cube, (max(reach, 0),), (width,), writeable=False)
    return memory, row_step, category_step


@compiled(error_model="numpy")
def _scan(
    fields: tuple[Any, Any],
    shape: tuple[int, int, int],
    references: tuple[Any, Any],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any, Any],
) -> None:
    (planes, row_step, category_step), (others, other_row_step, other_category_step) = fields
    n_categories, n_rows, n_columns = shape
    reference, labels = references
    everywhere = len(labels) == 0
    done = 0
    for row in range(n_rows):
        for start in range(0, n_columns, CHUNK):
            count = min(CHUNK, n_columns - start)
            pixel = row * n_columns + start
            wanted = reference[pixel:][:count]
            if not everywhere and not wanted.any():
                continue
            here = row * row_step + start
            for x in range(count):
                work[x] = planes[here + x]
                work[CHUNK + x] = 0
            for first in range(1, n_categories, 2):
                second = min(first + 1, n_categories - 1)  # the last one again changes nothing
                plane_1 = planes[here + first * category_step :][:count]
                plane_2 = planes[here + second * category_step :][:count]
                _renew(first, second, plane_1, plane_2, work)
            beside = (others[row * other_row_step + start :], other_category_step)
            if everywhere:
                _keep_all(count, pixel, n_categories, beside, work, found)
            else:
                done = _keep_samples(wanted, done, labels, beside, work, found)


# Neighbours mostly share their label, so that little of the other field is read.


@njit(nogil=True, error_model="numpy", inline="always")
def _keep_all(
    count: int,
    pixel: int,
    n_categories: int,
    other: tuple[Any, Any],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any, Any],
) -> None:
    others, category_step = other
    position, value, beside, _ = found
    for x in range(count):
        number = np.int32(work[CHUNK + x])
        beside[pixel + x] = others[number * category_step + x]
    for x in range(count):
        largest, number = work[x], np.int32(work[CHUNK + x])
        value[pixel + x] = largest
        position[pixel + x] = n_categories if np.isnan(largest) else number


@njit(nogil=True, error_model="numpy", inline="always")
def _keep_samples(
    wanted: NDArray[np.signedinteger],
    done: int,
    labels: NDArray[np.int64],
    other: tuple[Any, Any],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any, Any],
) -> int:
    others, category_step = other
    position, value, beside, correct = found
    for x in range(len(wanted)):
        if wanted[x] != 0:
            largest, number = work[x], np.int32(work[CHUNK + x])
            missing = np.isnan(largest)
            beside[done] = others[number * category_step + x]
            value[done] = largest
            position[done] = len(labels) if missing else number
            correct[done] = labels[number] == wanted[x] and not missing
            done += 1
    return done


@njit(nogil=True, error_model="numpy", inline="always")
def _renew(
    first: int,
    second: int,
    plane_1: NDArray[np.floating],
    plane_2: NDArray[np.floating],
    work: NDArray[np.floating],
) -> None:
    """Take in two more categories.

    Two at a time, numbers as floats, and all results in one array at a fixed distance: only so does
    the compiler make good vector instructions of the loop (a factor of 8 in time).
    """
    number_1, number_2 = work.dtype.type(first), work.dtype.type(second)
    for x in range(len(plane_1)):
        here_1, here_2 = plane_1[x], plane_2[x]
        largest, number = work[x], work[CHUNK + x]
        larger = here_1 > largest
        largest = here_1 if larger else largest
        number = number_1 if larger else number
        larger = here_2 > largest
        # x - x is 0, or NaN where x is: a NaN stays to the end
        work[x] = (here_2 if larger else largest) + ((here_1 - here_1) + (here_2 - here_2))
        work[CHUNK + x] = number_2 if larger else number
