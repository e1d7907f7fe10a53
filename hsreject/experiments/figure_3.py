"""Figure 3 of the paper: the synthetic samples and what the two rejectors reject of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.confidence import named_confidence
from hsreject.experiments.four_gaussians import FourGaussians
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.plot.style import PAGE_WIDTH, new_row, print_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

REJECTORS = {"maximum probability": "maximum", "breaking ties": "margin"}
CLASS_COLORS = ("#56b4e9", "#e69f00", "#117733", "#aa3377")
_REACH = 4.0


def samples_figure(
    n_per_class: int = 1000, rejected_fraction: float = 0.2, seed: int = 0
) -> PaperFigure:
    """Four Gaussians: truth, nearest-centre labels and both rejectors at 20 % rejected.

    Parameters
    ----------
    n_per_class : int
        Samples of each of the four classes.
    rejected_fraction : float
        The share of samples that the rejectors reject.
    seed : int
        Of the random samples.
    """
    problem = FourGaussians.draw(n_per_class, seed=seed)
    figure, axes = new_row(4, PAGE_WIDTH, PAGE_WIDTH / 4 + 0.28)
    with print_style():
        _scatter(axes[0], problem, problem.reference, "(a) true classes")
        _scatter(axes[1], problem, problem.label, "(b) nearest centre")
        for ax, letter, (name, confidence) in zip(axes[2:], "cd", REJECTORS.items(), strict=True):
            value = named_confidence(confidence)(problem.probability)
            rejected = value < np.quantile(value, rejected_fraction)
            _scatter(ax, problem, problem.label, f"({letter}) {name}", rejected=rejected)
    accuracy = problem.correct.mean()
    return PaperFigure(
        3,
        figure,
        f"Four unit Gaussians at (±1, ±1), {problem.correct.size} samples. (a) Class drawn from, "
        f"(b) nearest centre, accuracy {accuracy:.3f} (expected 0.708), (c) the same with "
        f"{100 * rejected_fraction:.0f} % rejected (black) by maximum probability and (d) by "
        "breaking ties. The rejectors differ near the origin, where all four classes are about "
        "equally likely, and far out along the axes, where only two compete.",
        "The paper does not give the number of samples or the random seed, so the samples are "
        f"others: {n_per_class} a class, seed {seed}. The class colours are safe for colour-blind "
        "readers.",
    )


def _scatter(
    ax: Axes,
    problem: FourGaussians,
    classes: NDArray[np.uint8],
    title: str,
    *,
    rejected: NDArray[np.bool_] | None = None,
) -> None:
    colors = np.array(CLASS_COLORS)[classes - 1]
    if rejected is not None:
        colors = np.where(rejected, "#000000", colors)
    ax.scatter(
        problem.samples[:, 0], problem.samples[:, 1], c=colors, s=1.6, linewidths=0, rasterized=True
    )
    ax.set(xlim=(-_REACH, _REACH), ylim=(-_REACH, _REACH), aspect="equal")
    ax.set_title(title, fontsize=8)
    ax.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])
