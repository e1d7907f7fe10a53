"""A split of labelled pixels into train and test, and the report of classes that got none."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import EmptyClassWarning, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Labels = TypeVar("Labels", bound="NDArray[Any] | xr.DataArray")

SAMPLING = "sampling"
WITHOUT_TRAINING = "classes_without_training"
WITHOUT_TEST = "classes_without_test"


def given_split(train: Labels, test: Labels) -> tuple[Labels, Labels]:
    """Return a train/test split that somebody else has made, after checking it.

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

    Examples
    --------
    >>> train, test = given_split(np.array([[1, 0, 2, 0]]), np.array([[0, 1, 0, 2]]))
    >>> test
    array([[0, 1, 0, 2]])
    """
    chosen = label_values(train, name="train"), label_values(test, name="test")
    if chosen[0].shape != chosen[1].shape:
        raise InputError(
            f"train and test must lie on one grid (got the shapes {chosen[0].shape} and "
            f"{chosen[1].shape})."
        )
    if isinstance(train, xr.DataArray) and isinstance(test, xr.DataArray):
        schema.check_same_grid(train, test, names=("train", "test"))
        _check_same_classes(train, test)
    shared = int(np.count_nonzero((chosen[0] > 0) & (chosen[1] > 0)))
    if shared:
        raise InputError(
            f"train and test share {shared} pixels. Set the labels of one of them to 0 there."
        )
    return _split((train, test), chosen, np.concatenate([c.ravel() for c in chosen]), how="given")


def split_by_masks(
    labels: Labels, in_train: NDArray[np.bool_], in_test: NDArray[np.bool_], *, how: str
) -> tuple[Labels, Labels]:
    """Return `labels` where each mask holds and 0 elsewhere, with the report of empty classes."""
    values = label_values(labels)
    zero = values.dtype.type(0)
    chosen = np.where(in_train, values, zero), np.where(in_test, values, zero)
    return _split((labels, labels), chosen, values, how=how)


def label_values(labels: NDArray[Any] | xr.DataArray, *, name: str = "labels") -> NDArray[Any]:
    """Return reference labels as a NumPy array in which only pixels of a class are above 0."""
    if isinstance(labels, xr.DataArray):
        labels = schema.check_labels(labels, name=name)
        values = np.asarray(labels.values)
    else:
        values = np.asarray(labels)
        schema.check_label_type(values.dtype, name=name)
    return schema.reference_values(values, fill=schema.fill_value(labels), name=name)


def classes_present(values: NDArray[Any]) -> list[int]:
    """Return the classes that have a pixel, ascending."""
    return [int(value) for value in np.unique(values) if value > 0]


def _split(
    templates: tuple[Labels, Labels],
    chosen: tuple[NDArray[Any], NDArray[Any]],
    everything: NDArray[Any],
    *,
    how: str,
) -> tuple[Labels, Labels]:
    present = classes_present(everything)
    if not present:
        raise InputError("There is no labelled pixel to sample: every label is 0.")
    empty = {
        name: sorted(set(present) - set(classes_present(part)))
        for name, part in zip((WITHOUT_TRAINING, WITHOUT_TEST), chosen, strict=True)
    }
    _warn_of_empty_classes(empty, templates[0], everything)
    if not isinstance(templates[0], xr.DataArray):
        return cast("tuple[Labels, Labels]", chosen)
    attrs: dict[str, Any] = {SAMPLING: how, **{name: v for name, v in empty.items() if v}}
    labelled = tuple(
        schema.check_labels(cast("xr.DataArray", template)).copy(data=part).assign_attrs(attrs)
        for template, part in zip(templates, chosen, strict=True)
    )
    return cast("tuple[Labels, Labels]", labelled)


def _warn_of_empty_classes(
    empty: dict[str, list[int]], template: NDArray[Any] | xr.DataArray, values: NDArray[Any]
) -> None:
    table = ClassTable.from_attrs(template.attrs) if isinstance(template, xr.DataArray) else None
    for name, kind in ((WITHOUT_TRAINING, "training"), (WITHOUT_TEST, "test")):
        if not empty[name]:
            continue
        listed = []
        for value in empty[name]:
            count = np.count_nonzero(values == value)
            size = f"{count} pixel" if count == 1 else f"{count} pixels"
            called = f"{table.name_of(value)}, {size}" if table else size
            listed.append(f"{value} ({called})")
        message = f"No {kind} pixel for class {', '.join(listed)}."
        warnings.warn(message, EmptyClassWarning, stacklevel=5)


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
