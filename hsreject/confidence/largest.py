"""The first largest category of every pixel, in one pass over the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.lib.stride_tricks import as_strided

from hsreject.schema import label_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 2000  # pixels whose running maxima stay in the nearest cache

_EVERYWHERE = np.empty(0, np.intp)  # kernels want an array, also where there is nothing to select


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
    field: NDArray[np.floating],
    beside: NDArray[np.floating] | None = None,
    *,
    pixels: NDArray[np.intp] | None = None,
) -> FirstLargest:
    """Return the first largest value along the first axis, and what stands beside it.

    Parameters
    ----------
    field : array (category, ...)
    beside : array of the same shape, optional
        By default the field itself.
    pixels : array of int (pixel), optional
        Where to look, as positions in row order, ascending. What is found then has the one axis
        (pixel); by default it is found everywhere.

    Examples
    --------
    >>> found = first_largest(np.array([[0.2, 0.5, np.nan], [0.8, 0.5, np.nan]]))
    >>> found.position, found.value
    (array([1, 0, 2], dtype=uint8), array([0.8, 0.5, nan]))
    """
    precision = precision_of(field.dtype)
    field = field.astype(precision, copy=False)
    n_categories = len(field)
    shape = field.shape[1:] if pixels is None else pixels.shape
    rows = _rows(field)
    others = rows if beside is None else _rows(beside.astype(precision, copy=False))
    n_rows, n_columns = _grid(field.shape[1:])
    if rows[1] == others[1] == n_columns:  # rows adjoin in both, and long runs are read faster
        n_rows, n_columns = 1, n_rows * n_columns
    size = n_rows * n_columns if pixels is None else pixels.size
    position = np.empty(size, label_dtype(n_categories))
    value, at_label = np.empty((2, size), precision)
    _scan(
        (rows, others),
        (n_categories, n_rows, n_columns),
        _EVERYWHERE if pixels is None else pixels,
        pixels is None,
        np.empty(2 * CHUNK, precision),
        (position, value, at_label),
    )
    return FirstLargest(position.reshape(shape), value.reshape(shape), at_label.reshape(shape))


def precision_of(dtype: np.dtype[Any]) -> np.dtype[np.floating]:
    """Return float32 for float32 and float16, float64 for everything else."""
    return np.dtype(np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else np.float64)


def _grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of a map, or of what is taken as one row."""
    return (shape[0], shape[1]) if len(shape) == 2 else (1, int(np.prod(shape)))


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


@njit(nogil=True, cache=True, error_model="numpy")
def _scan(fields, shape, pixels, everywhere, work, found):  # type: ignore[no-untyped-def]
    # In one piece: split into functions, it would take a third longer to compile.
    (planes, row_step, category_step), (others, other_row_step, other_category_step) = fields
    n_categories, n_rows, n_columns = shape
    position, value, beside = found
    done = 0
    for row in range(n_rows):
        for start in range(0, n_columns, CHUNK):
            count = min(CHUNK, n_columns - start)
            pixel = row * n_columns + start
            if not everywhere and (done == len(pixels) or pixels[done] >= pixel + count):
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
            # Neighbours mostly share their label, so that little of the other field is read.
            there = row * other_row_step + start
            n_all = count if everywhere else 0
            for x in range(n_all):
                number = np.int32(work[CHUNK + x])
                beside[pixel + x] = others[there + number * other_category_step + x]
            for x in range(n_all):
                largest, number = work[x], np.int32(work[CHUNK + x])
                value[pixel + x] = largest
                position[pixel + x] = n_categories if np.isnan(largest) else number
            while done < len(pixels) and pixels[done] < pixel + count:
                x = pixels[done] - pixel
                largest, number = work[x], np.int32(work[CHUNK + x])
                beside[done] = others[there + number * other_category_step + x]
                value[done] = largest
                position[done] = n_categories if np.isnan(largest) else number
                done += 1


@njit(nogil=True, error_model="numpy", inline="always")
def _renew(first, second, plane_1, plane_2, work):  # type: ignore[no-untyped-def]
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
