"""Several rejectors on the same pixels, in one table that the evaluator understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.curve import REJECTOR
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.base import Rejector
from hsreject.rejection.joint_points import FAILURE_PROBABILITY, SCENE_FRACTION
from hsreject.schema import OPERATING_POINT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection.calibration import Calibration


def compare_rejectors(
    rejectors: Mapping[str, Rejector],
    maps: xr.Dataset | xr.DataArray | NDArray[Any],
    reference: xr.DataArray | NDArray[Any],
    *,
    calibration: Calibration | None = None,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return the operating points of several rejectors on the same reference pixels.

    With sequential and joint rejection this is what the paper's figures 7 and 8 show: the curves
    side by side, and for each rejector its relative optimality and break-even costs.

    Parameters
    ----------
    rejectors : mapping of str to Rejector
        By the names that they shall have in the table.
    maps : Dataset, DataArray or array
        As for :meth:`Rejector.reject`. With `hidden_field` in it the context is solved only where a
        rejector needs another solve.
    reference : DataArray or array of int (y, x)
        Reference labels of the pixels to evaluate on, 0 elsewhere.
    calibration : Calibration, optional
        For rejectors that learn from pixels of known class; ours do not look at it.
    progress : callable
        Called with (stage, done, total) during long work.

    Returns
    -------
    Dataset over `operating_point`
        One rejector after the other, each by ascending rejected fraction, with the coordinate
        `rejector`. The variables are those of :func:`hsreject.rejection_curve`, `overall_accuracy`
        (which in joint rejection differs from point to point) and `failure_probability` (NaN for
        rejectors that have none).

    Examples
    --------
    >>> from hsreject.measures.optimality import relative_optimality_pairs
    >>> from hsreject.rejection import PixelwiseRejector
    >>> probability = np.array([[[0.9, 0.7, 0.3, 0.2]], [[0.05, 0.2, 0.6, 0.5]],
    ...                         [[0.05, 0.1, 0.1, 0.3]]])
    >>> rules = {name: PixelwiseRejector(name) for name in ("maximum", "margin")}
    >>> points = compare_rejectors(rules, probability, np.array([[1, 2, 2, 2]]))
    >>> margin = points.isel(operating_point=points.rejector.values == "margin")
    >>> margin.rejected_fraction.values
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> relative_optimality_pairs(margin).shape
    (5, 5)
    """
    _check_rejectors(rejectors)
    tables = []
    for name, rejector in rejectors.items():
        points = rejector.operating_points(
            maps, reference, calibration=calibration, progress=progress
        )
        points = points.drop_vars(SCENE_FRACTION, errors="ignore")  # of other pixels than the rest
        if FAILURE_PROBABILITY not in points:
            none = xr.full_like(points["rejected_fraction"], np.nan).assign_attrs(
                long_name="probability of classifier failure"
            )
            points = points.assign({FAILURE_PROBABILITY: none})
        names = np.full(points.sizes[OPERATING_POINT], name)
        tables.append(points.assign_coords({REJECTOR: (OPERATING_POINT, names)}))
    return xr.concat(tables, dim=OPERATING_POINT, combine_attrs="drop_conflicts")


def _check_rejectors(rejectors: object) -> None:
    """Raise unless `rejectors` maps names to rejectors, and at least one."""
    if not isinstance(rejectors, Mapping):
        raise InputError(
            "rejectors must map names to rejectors, such as {'pixelwise': PixelwiseRejector()} "
            f"(got {type(rejectors).__name__})."
        )
    if not rejectors:
        raise InputError("There is no rejector to compare. Give at least one, by name.")
    for name, rejector in rejectors.items():
        if isinstance(rejector, Rejector):
            continue
        is_class = isinstance(rejector, type)
        given = f"the class {rejector.__name__}" if is_class else repr(rejector)
        raise InputError(
            f"Rejector {name!r} must be an object such as PixelwiseRejector() (got {given}). "
            + (f"Write {rejector.__name__}()." if is_class else "Make one from its class.")
        )
