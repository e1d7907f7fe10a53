"""The first largest category of every pixel, in one pass over the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from hsreject.schema import label_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 2000  # pixels whose running maxima stay in the nearest cache


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
    precision = precision_of(field.dtype)
    field = field.astype(precision, copy=False)
    n_categories, shape = len(field), field.shape[1:]
    rows = _rows(field)
    others = rows if beside is None else _rows(beside.astype(precision, copy=False))
    n_rows, n_columns = _grid(shape)
    if rows[1] == others[1] == n_columns:  # rows adjoin in both, and long runs are read faster
        n_rows, n_columns = 1, n_rows * n_columns
    position = np.empty((n_rows, n_columns), label_dtype(n_categories))
    value, at_label = np.empty((2, n_rows, n_columns), precision)
    _scan(rows, others, n_categories, np.empty(3 * CHUNK, precision), position, value, at_label)
    return FirstLargest(position.reshape(shape), value.reshape(shape), at_label.reshape(shape))


def precision_of(dtype: np.dtype[Any]) -> np.dtype[np.floating]:
    """Return float32 for float32 and float16, float64 for everything else."""
    return np.dtype(np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else np.float64)


def _grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of a map, or of what is taken as one row."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, int(np.prod(shape)))


def _rows(field: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Return a field as a flat array, and the distances in it between rows and categories.

    A field comes as (category, y, x) in memory or, from the context, as (y, category, x): neither
    is copied.
    """
    n_rows, n_columns = _grid(field.shape[1:])
    if field.ndim == 3:
        by_row = field.transpose(1, 0, 2)
        if by_row.flags.c_contiguous and not field.flags.c_contiguous:
            return by_row.reshape(-1), len(field) * n_columns, n_columns
    return np.ascontiguousarray(field).reshape(-1), n_columns, n_rows * n_columns


@njit(nogil=True, cache=True, error_model="numpy")
def _scan(field, other, n_categories, work, position, value, beside):  # type: ignore[no-untyped-def]
    planes, row_step, category_step = field
    others, other_row_step, other_category_step = other
    n_rows, n_columns = value.shape
    for row in range(n_rows):
        for start in range(0, n_columns, CHUNK):
            count = min(CHUNK, n_columns - start)
            here = row * row_step + start
            there = row * other_row_step + start
            for x in range(count):
                work[x] = planes[here + x]
                work[CHUNK + x] = others[there + x]
                work[2 * CHUNK + x] = 0
            for first in range(1, n_categories, 2):
                second = min(first + 1, n_categories - 1)  # the last one again changes nothing
                _renew(
                    first,
                    second,
                    planes[here + first * category_step :][:count],
                    planes[here + second * category_step :][:count],
                    others[there + first * other_category_step :][:count],
                    others[there + second * other_category_step :][:count],
                    work,
                )
            for x in range(count):
                largest = work[x]
                value[row, start + x] = largest
                beside[row, start + x] = work[CHUNK + x]
                found = np.int32(work[2 * CHUNK + x])
                position[row, start + x] = n_categories if np.isnan(largest) else found


@njit(nogil=True, error_model="numpy", inline="always")
def _renew(  # type: ignore[no-untyped-def]
    first, second, plane_1, plane_2, other_1, other_2, work
):
    """Take in two more categories.

    Two at a time, numbers as floats, and all results in one array at fixed distances: only so does
    the compiler make good vector instructions of the loop (a factor of 8 in time).
    """
    number_1, number_2 = work.dtype.type(first), work.dtype.type(second)
    for x in range(len(plane_1)):
        here_1, here_2 = plane_1[x], plane_2[x]
        there_1, there_2 = other_1[x], other_2[x]
        largest, there, number = work[x], work[CHUNK + x], work[2 * CHUNK + x]
        larger = here_1 > largest
        largest = here_1 if larger else largest
        there = there_1 if larger else there
        number = number_1 if larger else number
        larger = here_2 > largest
        # x - x is 0, or NaN where x is: a NaN stays to the end
        work[x] = (here_2 if larger else largest) + ((here_1 - here_1) + (here_2 - here_2))
        work[CHUNK + x] = there_2 if larger else there
        work[2 * CHUNK + x] = number_2 if larger else number
