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

# kernels want arrays of one type, also where there is nothing to read or to write
_NO_REFERENCE = (np.empty(0, np.int32), np.empty(0, np.int64))
_NOWHERE, _NOT_ASKED = np.empty(0, np.uint8), np.empty(0, np.bool_)


class FirstLargest(NamedTuple):
    """Where the first largest category of every pixel stands, and what stands there.

    Attributes
    ----------
    position : array of uint8 or uint16 (...)
        Counted from 0; the number of categories where any value is NaN.
    value : array of float (...)
        The largest value, NaN where any value is.
    """

    position: NDArray[np.unsignedinteger]
    value: NDArray[np.floating]


def first_largest(
    field: NDArray[np.floating], beside: NDArray[np.floating] | None = None, weight: float = 0.0
) -> FirstLargest:
    """Return the first largest value along the first axis, and where it stands.

    Parameters
    ----------
    field : array (category, ...)
    beside : array of the same shape, optional
        By default the field itself.
    weight : float
        With z the largest value and b what stands beside it, `value` is
        ``(z + weight * b) / (1 + weight)``: by default z itself.

    Examples
    --------
    >>> found = first_largest(np.array([[0.2, 0.5, np.nan], [0.8, 0.5, np.nan]]))
    >>> found.position, found.value
    (array([1, 0, 2], dtype=uint8), array([0.8, 0.5, nan]))
    """
    shape = field.shape[1:]
    size = math.prod(shape)
    position = np.empty(size, label_dtype(len(field)))
    value = np.empty(size, precision_of(field.dtype))
    _scan(*_layout(field, beside, weight), _NO_REFERENCE, (position, value, _NOT_ASKED))
    return FirstLargest(position.reshape(shape), value.reshape(shape))


def first_largest_of_samples(
    field: NDArray[np.floating],
    beside: NDArray[np.floating] | None,
    weight: float,
    reference: NDArray[np.integer],
    labels: NDArray[np.integer],
) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
    """Return what :func:`first_largest` finds where there is a reference, compared with it.

    Parameters
    ----------
    field, beside, weight
        As for :func:`first_largest`.
    reference : array of int, the shape of a category
        0 where there is no reference.
    labels : array of int (category)
        What the reference calls the categories.

    Returns
    -------
    correct : array of bool (sample)
        Whether the category is that of the reference; False where `value` is NaN. In row order.
    value : array of float (sample)

    Examples
    --------
    >>> field = np.array([[0.2, 0.9, 0.6], [0.8, 0.1, 0.4]])
    >>> reference, labels = np.array([7, 0, 7]), np.array([3, 7])
    >>> first_largest_of_samples(field, None, 0.0, reference, labels)
    (array([ True, False]), array([0.8, 0.6]))
    """
    # two types of reference and no more, since the loop is compiled for each
    kind: type[np.signedinteger] = np.int32 if reference.dtype.itemsize <= 2 else np.int64
    wanted = reference.reshape(-1).astype(kind, copy=False)
    names = labels.astype(np.int64, copy=False)
    size = int(np.count_nonzero(reference))
    correct = np.empty(size, np.bool_)
    value = np.empty(size, precision_of(field.dtype))
    _scan(*_layout(field, beside, weight), (wanted, names), (_NOWHERE, value, correct))
    return correct, value


def precision_of(dtype: np.dtype[Any]) -> np.dtype[np.floating]:
    """Return float32 for float32 and float16, float64 for everything else."""
    return np.dtype(np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else np.float64)


def _grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of a map, or of what is taken as one row."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, math.prod(shape))


def _layout(
    field: NDArray[np.floating], beside: NDArray[np.floating] | None, weight: float
) -> tuple[tuple[Any, Any, float], tuple[int, int, int]]:
    """Return what `_scan` needs to know of a field: its memory, and how it is gone through."""
    precision = precision_of(field.dtype)
    field = field.astype(precision, copy=False)
    rows = _rows(field)
    others = rows if beside is None else _rows(beside.astype(precision, copy=False))
    n_rows, n_columns = _grid(field.shape[1:])
    if rows[1] == others[1] == n_columns:  # rows adjoin in both, and long runs are read faster
        n_rows, n_columns = 1, n_rows * n_columns
    return (rows, others, weight), (len(field), n_rows, n_columns)


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
    fields: tuple[Any, Any, float],
    shape: tuple[int, int, int],
    references: tuple[Any, Any],
    found: tuple[Any, Any, Any],
) -> None:
    (planes, row_step, category_step), (others, other_row_step, other_step), weight = fields
    n_categories, n_rows, n_columns = shape
    reference, labels = references
    everywhere = len(labels) == 0
    work = np.empty(2 * CHUNK, planes.dtype)
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
            beside = (others[row * other_row_step + start :], other_step, weight)
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
    beside: tuple[Any, Any, float],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any],
) -> None:
    others, category_step, weight = beside
    position, value, _ = found
    for x in range(count):
        number = np.int32(work[CHUNK + x])
        value[pixel + x] = others[number * category_step + x]
    for x in range(count):
        largest, number = work[x], np.int32(work[CHUNK + x])
        value[pixel + x] = _blend(largest, value[pixel + x], weight)
        position[pixel + x] = n_categories if np.isnan(largest) else number


@njit(nogil=True, error_model="numpy", inline="always")
def _keep_samples(
    wanted: NDArray[np.signedinteger],
    done: int,
    labels: NDArray[np.int64],
    beside: tuple[Any, Any, float],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any],
) -> int:
    others, category_step, weight = beside
    _, value, correct = found
    for x in range(len(wanted)):
        if wanted[x] != 0:
            largest, number = work[x], np.int32(work[CHUNK + x])
            value[done] = _blend(largest, others[number * category_step + x], weight)
            correct[done] = labels[number] == wanted[x] and not np.isnan(largest)
            done += 1
    return done


@njit(nogil=True, error_model="numpy", inline="always")
def _blend(largest: Any, beside: Any, weight: float) -> Any:
    # In float64: near 1 a float32 sum would leave what stands beside only four digits.
    return (np.float64(largest) + weight * np.float64(beside)) / (1 + weight)


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
