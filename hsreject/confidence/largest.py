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
_NO_REFERENCE = (np.empty(0, np.uint8), np.empty(0, np.int64))
_NOWHERE, _NOT_ASKED = np.empty(0, np.uint8), np.empty(0, np.bool_)


class FirstLargest(NamedTuple):
    """Where the first largest category of every pixel stands, and what stands there.

    Attributes
    ----------
    position : array of uint8 or uint16 (...)
        Counted from 0; the number of categories where any value is NaN or infinite.
    value : array of float (...)
        The largest value, NaN where any value is NaN or infinite.
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
    # no negative labels: four types of reference, for each of which the loop is compiled
    native = reference.astype(reference.dtype.newbyteorder("="), copy=False)
    wanted = native.reshape(-1).view(f"u{native.itemsize}")
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
    whole_steps = not any(stride % width for stride in cube.strides)  # records may have other ones
    if not whole_steps or cube.strides[2] != width or min(cube.strides) < 0 or cube.size == 0:
        cube = np.ascontiguousarray(cube)
    category_step, row_step = (stride // width for stride in cube.strides[:2])
    for whole in (cube, cube.swapaxes(0, 1)):
        if whole.flags.c_contiguous:  # nearly always; as_strided takes several times as long
            return whole.reshape(-1), row_step, category_step
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
        for chunk in range(0, n_columns, CHUNK):
            start, stop = chunk, min(chunk + CHUNK, n_columns)
            if not everywhere:
                start, stop = _span(reference[row * n_columns :], start, stop)
            count, pixel, here = stop - start, row * n_columns + start, row * row_step + start
            for x in range(count):
                value = planes[here + x]
                work[x] = value + (value - value)
                work[CHUNK + x] = 0
            for first in range(1, n_categories, 3):
                second = min(first + 1, n_categories - 1)  # the last one again changes nothing
                third = min(first + 2, n_categories - 1)
                plane_1 = planes[here + first * category_step :][:count]
                plane_2 = planes[here + second * category_step :][:count]
                plane_3 = planes[here + third * category_step :][:count]
                _renew((first, second, third), (plane_1, plane_2, plane_3), work)
            beside = (others[row * other_row_step + start :], other_step, weight)
            if everywhere:
                _keep_all(count, pixel, n_categories, beside, work, found)
            else:
                wanted = reference[pixel:][:count]
                done = _keep_samples(wanted, done, labels, beside, work, found)


@njit(nogil=True, error_model="numpy", inline="always")
def _span(reference: NDArray[np.unsignedinteger], start: int, stop: int) -> tuple[int, int]:
    """Return where the pixels with a reference begin and end between two places of a row."""
    while start < stop and reference[start] == 0:
        start += 1
    while start < stop and reference[stop - 1] == 0:
        stop -= 1
    return start, stop


# Neighbours mostly share their label, so that little of the other field is read. Places that the
# compiler cannot tell to be positive are unsigned: it would allow for counting from the end.


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
        value[pixel + x] = others[np.uint64(number * category_step + x)]
    for x in range(count):
        largest, number = work[x], np.int32(work[CHUNK + x])
        value[pixel + x] = _blend(largest, value[pixel + x], weight)
        position[pixel + x] = n_categories if np.isnan(largest) else number


@njit(nogil=True, error_model="numpy", inline="always")
def _keep_samples(
    wanted: NDArray[np.unsignedinteger],
    done: int,
    labels: NDArray[np.int64],
    beside: tuple[Any, Any, float],
    work: NDArray[np.floating],
    found: tuple[Any, Any, Any],
) -> int:
    others, category_step, weight = beside
    _, value, correct = found
    count = 0
    sure, right = value[done:], correct[done:]
    for x in range(len(wanted)):
        if wanted[x] != 0:
            largest, number = work[x], np.int32(work[CHUNK + x])
            named = labels[np.uint64(number)] == np.int64(wanted[x])
            place = np.uint64(count)
            sure[place] = others[np.uint64(number * category_step + x)]
            right[place] = named and not np.isnan(largest)
            work[place] = largest
            count += 1
    for sample in range(count):
        sure[sample] = _blend(work[sample], sure[sample], weight)
    return done + count


@njit(nogil=True, error_model="numpy", inline="always")
def _blend(largest: Any, beside: Any, weight: float) -> Any:
    # In float64: near 1 a float32 sum would leave what stands beside only four digits.
    return (np.float64(largest) + weight * np.float64(beside)) / (1 + weight)


@njit(nogil=True, error_model="numpy", inline="always")
def _renew(
    numbers: tuple[int, int, int],
    fields: tuple[Any, Any, Any],
    work: NDArray[np.floating],
) -> None:
    """Take in three more categories.

    Three at a time, numbers as floats, and all results in one array at a fixed distance: only so
    does the compiler make good vector instructions of the loop (a factor of 8 in time).
    """
    number_1 = work.dtype.type(numbers[0])
    number_2 = work.dtype.type(numbers[1])
    number_3 = work.dtype.type(numbers[2])
    plane_1, plane_2, plane_3 = fields
    for x in range(len(plane_1)):
        here_1, here_2, here_3 = plane_1[x], plane_2[x], plane_3[x]
        largest, number = work[x], work[CHUNK + x]
        larger = here_1 > largest
        largest = here_1 if larger else largest
        number = number_1 if larger else number
        larger = here_2 > largest
        largest = here_2 if larger else largest
        number = number_2 if larger else number
        larger = here_3 > largest
        # x - x is 0, or NaN where x is: a NaN stays to the end
        nothing = (here_1 - here_1) + (here_2 - here_2) + (here_3 - here_3)
        work[x] = (here_3 if larger else largest) + nothing
        work[CHUNK + x] = number_3 if larger else number
