"""Figure 7 of the paper: the three measures of both rejectors on Indian Pines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.experiments.indian_pines import (
    JOINT,
    N_POINTS,
    both_curves,
    differences,
)
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.measures.choosing import highest_quality_point
from hsreject.measures.summary import accuracy_at
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.style import PAGE_WIDTH, new_row
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import OPERATING_POINT

if TYPE_CHECKING:
    import xarray as xr


def scene_curves_figure(
    n_points: int = N_POINTS, seed: int = 0, progress: ProgressCallback = no_progress
) -> PaperFigure:
    """Indian Pines: the three measures over the rejected fraction, for both rejectors.

    Parameters
    ----------
    n_points : int
        Solves of the joint sweep: its operating points.
    seed : int
        Of the training pixels.
    progress : callable
        Called with (stage, done, total).
    """
    curves = both_curves(n_points=n_points, seed=seed, progress=progress)
    return draw_scene_curves(curves, seed=seed)


def draw_scene_curves(curves: dict[str, xr.Dataset], *, seed: int) -> PaperFigure:
    """Draw the figure from the operating points of both rejectors."""
    figure, axes = new_row(3, PAGE_WIDTH, 2.2)
    RejectionCurveDisplay.from_curves(curves, isolated=[JOINT]).plot(axes)
    said = []
    for name, curve in curves.items():
        best = highest_quality_point(curve)
        kept = float(accuracy_at(curve, 0.1)[0])
        said.append(
            f"{name}: {float(best['classification_quality']):.3f} at r = "
            f"{float(best['rejected_fraction']):.2f}, with A = {kept:.3f} at r = 0.1"
        )
    first = next(iter(curves.values())).isel({OPERATING_POINT: 0})
    n_test = int(first["accurate_kept"] + first["misclassified_kept"])
    return PaperFigure(
        7,
        figure,
        f"Measures over the rejected fraction on {n_test} test pixels of Indian Pines. Filled "
        f"symbols: the largest classification quality. {'. '.join(said)}. Each open symbol of "
        f"{JOINT} is a solve of its own with another probability of classifier failure; nothing is "
        "known between them.",
        f"{differences(seed)} The axis of the rejection quality is scaled to points with at least "
        "2 % rejected; before, a handful of pixels decides it.",
    )
