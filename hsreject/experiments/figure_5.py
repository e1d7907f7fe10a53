"""Figure 5 of the paper: relative optimality between all operating points."""

from __future__ import annotations

from hsreject.experiments.figure_4 import synthetic_curves
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.plot.optimality_displays import RelativeOptimalityDisplay
from hsreject.plot.style import PAGE_WIDTH, new_row


def optimality_figure(n_per_class: int = 10_000, seed: int = 0) -> PaperFigure:
    """Four Gaussians: relative optimality between all pairs of operating points.

    Parameters
    ----------
    n_per_class : int
        Samples of each of the four classes.
    seed : int
        Of the random samples.
    """
    curves = synthetic_curves(n_per_class, seed=seed)
    figure, axes = new_row(len(curves), PAGE_WIDTH, 3.0)
    best = []
    for ax, letter, (name, curve) in zip(axes, "ab", curves.items(), strict=True):
        display = RelativeOptimalityDisplay.from_curve(curve)
        display.plot(ax, colorbar=ax is axes[-1]).set_title(f"({letter}) {name}", fontsize=8)
        best.append(f"r = {display.best:.2f} ({name})")
    return PaperFigure(
        5,
        figure,
        "Relative optimality of the point that rejects r1 with respect to the point that rejects "
        f"r0, on {4 * n_per_class} samples of four Gaussians. The dashed line is the point of "
        f"largest classification quality, {' and '.join(best)}: it is nonnegative against all "
        "others.",
        "The paper does not give the number of samples or the random seed. The colours diverge "
        "from white at 0, where both points make equally many right decisions. On the diagonal, "
        "where the formula has no value, a point is compared with itself: 0.",
    )
