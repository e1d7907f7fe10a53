"""Which classes an experiment leaves out of the training, and whether it can."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from hsreject.errors import InputError
from hsreject.sampling import classes_present
from hsreject.schema import NO_REFERENCE, reference_labels, valid_pixels

if TYPE_CHECKING:
    import xarray as xr

LEAST_TO_TRAIN_ON = 2


def check_hold_outs(hold_outs: object) -> None:
    """Raise unless `hold_outs` lists sets of label values, and at least one."""
    sets = hold_outs if _is_listing(hold_outs) else (None,)
    if not all(_is_listing(hold) and all(map(_is_label, hold)) for hold in sets):
        raise InputError(
            "hold_outs must list the label values that are unknown together, set by set, such as "
            f"[(10, 11), (14,)] (got {hold_outs!r})."
        )
    if not len(sets):
        raise InputError(
            "hold_outs is empty, so there is no class to hold out. Give at least one set, such as "
            "[(10, 11)], or None for each class by itself."
        )


def hold_outs_of(
    hold_outs: Sequence[Sequence[int]] | None, cube: xr.DataArray, labels: xr.DataArray
) -> tuple[tuple[int, ...], ...]:
    """Return the sets of label values to hold out of a scene, or say why it cannot be done.

    Parameters
    ----------
    hold_outs : sequence of sequences of int, or None
        None holds out each class that has data, one at a time.
    cube : DataArray (band, y, x)
        Classes count where it has data.
    labels : DataArray of int (y, x)
    """
    has_data = valid_pixels(cube).values
    present = classes_present(np.where(has_data, reference_labels(labels), NO_REFERENCE))
    if hold_outs is not None:
        for hold in hold_outs:
            _check_one(hold, present)
        return tuple(tuple(map(int, hold)) for hold in hold_outs)
    if len(present) <= LEAST_TO_TRAIN_ON:
        raise InputError(
            "Holding out one class at a time needs labels of at least three classes, two of them "
            f"to train on (with data there are: {_listed(present) or 'none'}). Label more."
        )
    return tuple((value,) for value in present)


def _check_one(hold: Sequence[int], present: list[int]) -> None:
    unknown = sorted(set(hold) - set(present))
    if unknown or not len(hold):
        raise InputError(
            "Classes to hold out must occur in the labels, at pixels with data (not there: "
            f"{_listed(unknown) or 'an empty hold-out'}). There are: {_listed(present) or 'none'}."
        )
    if len(present) - len(set(hold)) < LEAST_TO_TRAIN_ON:
        raise InputError(
            f"Holding out {_listed(hold)} leaves fewer than two classes to train on. "
            "Hold out fewer."
        )


def _is_listing(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _is_label(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
