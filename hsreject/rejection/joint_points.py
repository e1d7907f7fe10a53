"""The operating points of a joint sweep, as the evaluator wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.curve import curve_of_points
from hsreject.measures.point import operating_point
from hsreject.rejection.joint_search import Probe
from hsreject.rejection.joint_sweep import Found, everything_rejected
from hsreject.schema import OPERATING_POINT, reference_pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection.joint_problem import JointProblem


FAILURE_PROBABILITY = "failure_probability"
SCENE_FRACTION = "scene_fraction"


def known_probes(points: xr.Dataset, problem: JointProblem) -> list[Probe]:
    """Return what operating points tell of the fraction that a failure probability rejects."""
    if not isinstance(points, xr.Dataset):
        raise InputError(
            f"points must be a Dataset that operating_points or sweep of this rejector returned "
            f"(got {type(points).__name__})."
        )
    if not {FAILURE_PROBABILITY, SCENE_FRACTION} <= set(points):
        raise InputError(
            f"points must have the variables '{FAILURE_PROBABILITY}' and '{SCENE_FRACTION}' "
            f"(it has: {', '.join(map(str, points))}). Pass what operating_points or sweep of this "
            "rejector returned."
        )
    given = [points[name] for name in (FAILURE_PROBABILITY, SCENE_FRACTION)]
    if any(values.dims != (OPERATING_POINT,) for values in given):
        raise InputError(
            f"points must list '{FAILURE_PROBABILITY}' and '{SCENE_FRACTION}' over "
            f"'{OPERATING_POINT}' (got the dims {given[0].dims} and {given[1].dims})."
        )
    if not ((given[1] >= 0) & (given[1] <= 1)).all():
        raise InputError(
            f"'{SCENE_FRACTION}' of points must lie in [0, 1]. Pass what operating_points or sweep "
            "of this rejector returned."
        )
    pairs = zip(*(values.values.tolist() for values in given), strict=True)
    probes = sorted(Probe(q, fraction) for q, fraction in pairs)
    return [probe for probe in probes if 0 < probe.failure_probability < problem.rejects_all]


def joint_points(
    problem: JointProblem, sweep: list[Found], reference: xr.DataArray | NDArray[Any]
) -> tuple[xr.Dataset, list[Found]]:
    """Return the operating points of a sweep on reference pixels, and the solve behind each.

    The end at which everything is rejected is added. Points are in ascending order of the rejected
    fraction, then of the accurate pixels kept.
    """
    rows = []
    for found in [*sweep, everything_rejected(problem)]:
        used, correct = reference_pixels(problem.label(found.solution), reference)
        rejected = found.solution.confidence[used] < found.threshold
        rows.append((operating_point(correct, rejected), found))
    rows.sort(key=lambda row: (row[0].rejected_fraction, row[0].accurate_kept))
    points = curve_of_points([point for point, _ in rows])
    accuracy = np.array([point.overall_accuracy for point, _ in rows])
    return points.assign(
        overall_accuracy=(
            OPERATING_POINT,
            accuracy,
            {"long_name": "accuracy with nothing rejected"},
        ),
        failure_probability=(
            OPERATING_POINT,
            [float(found.failure_probability) for _, found in rows],
            {"long_name": "probability of classifier failure"},
        ),
        scene_fraction=(
            OPERATING_POINT,
            [_scene_fraction(problem, found) for _, found in rows],
            {"long_name": "share of all pixels with data that is rejected"},
        ),
    ), [found for _, found in rows]


def _scene_fraction(problem: JointProblem, found: Found) -> float:
    return 1.0 if np.isinf(found.threshold) else problem.rejected_fraction(found.solution)
