"""Calibration pixels: their class is known, and the classifier has not seen them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.schema import as_label_map, check_same_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Calibration:
    """Reference labels from which a rejector learns where to stop rejecting.

    Confidences alone do not tell which threshold reaches an accuracy or is cheapest: that takes
    pixels whose class is known. Training pixels are refused, because a classifier is more certain
    of them than of others.

    Parameters
    ----------
    labels : DataArray or array of int (y, x)
        Reference labels of the calibration pixels, 0 elsewhere.
    training : DataArray or array of int (y, x), or None
        Labels of the training pixels, 0 elsewhere. None if the classifier was trained on another
        scene.

    See Also
    --------
    hsreject.Goal : what is to be met.
    hsreject.Rejector : learns from it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Calibration
    >>> Calibration(np.array([[1, 0, 2]]), training=np.array([[0, 1, 0]])).n_pixels
    2
    >>> Calibration(np.array([[1, 1, 2]]), training=np.array([[0, 1, 0]]))
    Traceback (most recent call last):
    hsreject.errors.InputError: 1 of 3 calibration pixels is also a training pixel...
    """

    labels: xr.DataArray | NDArray[Any]
    _: KW_ONLY
    training: xr.DataArray | NDArray[Any] | None

    def __post_init__(self) -> None:
        labels = as_label_map(self.labels, name="calibration labels")
        object.__setattr__(self, "labels", labels)
        if self.n_pixels == 0:
            raise InputError(
                "There are no calibration pixels: the calibration labels are 0 everywhere. "
                "Give reference labels of pixels that were not used for training."
            )
        if self.training is None:
            return
        training = as_label_map(self.training, name="training labels")
        check_same_grid(labels, training, names=("calibration labels", "training labels"))
        twice = int(((labels.values > 0) & (training.values > 0)).sum())
        if twice:
            raise InputError(
                f"{twice} of {self.n_pixels} calibration pixels "
                f"{'is also a training pixel' if twice == 1 else 'are also training pixels'}, "
                "for which the classifier is overconfident. "
                "Leave them out: labels.where(training == 0, 0)."
            )

    @property
    def n_pixels(self) -> int:
        """Number of calibration pixels."""
        return int((np.asarray(self.labels) > 0).sum())


def needed_calibration(calibration: Calibration | None, goal: str) -> Calibration:
    """Return the calibration, or say that `goal` needs one."""
    if not isinstance(calibration, Calibration):
        raise InputError(
            f"{goal} needs calibration pixels (got {type(calibration).__name__}): pass "
            "calibration=hsreject.Calibration(labels, training=...) with reference labels of "
            "pixels that were not used for training."
        )
    return calibration
