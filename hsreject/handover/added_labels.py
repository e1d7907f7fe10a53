"""Answers to `hsreject next`: further training pixels, of known classes or of new ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike

import numpy as np
import xarray as xr

from hsreject.certification.sample import CHOSEN, NONE_OF_THESE_TEXT, Sample, open_sample
from hsreject.errors import HsrejectWarning, InputError
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE, POLYGON, attach_classes, class_table
from hsreject.schema.classes import ClassTable

Pair = tuple[xr.DataArray, xr.DataArray]


def added_labels(
    paths: Sequence[str | PathLike[str]], labels: xr.DataArray, *, new_classes: Sequence[str] = ()
) -> xr.DataArray:
    """Return the labels of points that were asked for, on the grid of a reference; 0 elsewhere.

    Points that nobody has labelled, or could, are left out. A class that the reference does not
    have must be named in `new_classes`; it takes the next free number.
    """
    added = np.zeros(labels.shape, dtype=labels.dtype)
    for path in paths:
        points = _answers(path, labels)
        table, names = class_table(labels), [points.classes.name_of(v) for v in points.reference]
        strange = sorted({*names} - {*table.names, *new_classes})
        if strange:
            raise InputError(
                f"{path} has {', '.join(map(repr, strange))}, which the labels of the run do not "
                f"have (they have {', '.join(table.names)}). Correct the name, or make it a class: "
                f"--new-class '{strange[0]}'.{nearest(strange[0], list(table.names))}"
            )
        used = {*table.values, *points.reference.tolist()}
        columns = (points.classes.values, points.classes.names, points.classes.colors)
        entries = [entry for entry in zip(*columns, strict=True) if entry[0] in used]
        labels = attach_classes(labels, ClassTable(*zip(*entries, strict=True)))
        added[points.row, points.column] = points.reference
    return attach_classes(labels.copy(data=added), class_table(labels))


def _answers(path: str | PathLike[str], labels: xr.DataArray) -> Sample:
    """Return the points of a file that have a class."""
    with warnings.catch_warnings():  # of classes that a map does not know: the caller asks
        warnings.simplefilter("ignore", HsrejectWarning)
        points = open_sample(path, labels)
    if points.design is not None and points.design.kind != CHOSEN:
        raise InputError(
            f"{path} is a {points.design.kind} sample, drawn to judge a map: once it has trained "
            "one it promises nothing. Keep it for 'hsreject certify' and 'hsreject assess', and "
            "ask for points to train on with 'hsreject next'."
        )
    names = [points.classes.name_of(v) if v > 0 else "" for v in points.reference.tolist()]
    answered = np.array([name not in {"", NONE_OF_THESE_TEXT} for name in names])
    if not answered.any():
        raise InputError(
            f"None of the {len(points)} points of {path} has a class. Fill in the column "
            "'reference', for example on the page of 'hsreject label'."
        )
    return points.select(answered)


def with_added(train: xr.DataArray, test: xr.DataArray, added: xr.DataArray) -> Pair:
    """Return a split that trains on further pixels, too, and never tests on them."""
    there = added.values != NO_REFERENCE
    parts = (np.where(there, added.values, train.values), np.where(there, 0, test.values))
    train, test = (attach_classes(train.copy(data=part), class_table(added)) for part in parts)
    if POLYGON in train.coords:  # each point is a polygon of its own
        numbers = train[POLYGON].values.copy()
        numbers[there] = numbers.max() + 1 + np.arange(int(there.sum()))
        polygon = {POLYGON: (train[POLYGON].dims, numbers)}
        train, test = train.assign_coords(polygon), test.assign_coords(polygon)
    return train, test
