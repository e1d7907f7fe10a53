"""Figure 4 of the paper: the three measures of the synthetic problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.confidence import named_confidence
from hsreject.experiments.figure_3 import REJECTORS
from hsreject.experiments.four_gaussians import FourGaussians
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.measures.choosing import highest_quality_point
from hsreject.measures.curve import rejection_curve
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.style import PAGE_WIDTH, new_row

if TYPE_CHECKING:
    import xarray as xr


def synthetic_curves(n_per_class: int = 10_000, *, seed: int = 0) -> dict[str, xr.Dataset]:
    """Return the curves of both rejectors on the four Gaussians, by name of the rejector.

    Examples
    --------
    >>> curves = synthetic_curves(100)
    >>> list(curves)
    ['maximum probability', 'breaking ties']
    """
    problem = FourGaussians.draw(n_per_class, seed=seed)
    return {
        name: rejection_curve(problem.correct, named_confidence(confidence)(problem.probability))
        for name, confidence in REJECTORS.items()
    }


def curves_figure(n_per_class: int = 10_000, seed: int = 0) -> PaperFigure:
    """Four Gaussians: the three measures over the rejected fraction, for both rejectors.

    Parameters
    ----------
    n_per_class : int
        Samples of each of the four classes.
    seed : int
        Of the random samples.
    """
    curves = synthetic_curves(n_per_class, seed=seed)
    figure, axes = new_row(3, PAGE_WIDTH, 2.2)
    RejectionCurveDisplay.from_curves(curves).plot(axes)
    largest = []
    for name, curve in curves.items():
        best = highest_quality_point(curve)
        quality, fraction = float(best["classification_quality"]), float(best["rejected_fraction"])
        largest.append(f"{quality:.3f} at r = {fraction:.2f} ({name})")
    return PaperFigure(
        4,
        figure,
        f"Measures over the rejected fraction on {4 * n_per_class} samples of four Gaussians. "
        f"Marked: the largest classification quality, {' and '.join(largest)}. Maximum probability "
        "is the best rejector here, because the labels are right with exactly that probability.",
        "The paper does not give the number of samples or the random seed, so the curves agree "
        "up to sampling noise. The axis of the rejection quality is scaled to points with at least "
        "2 % rejected; before, a handful of samples decides it.",
    )
