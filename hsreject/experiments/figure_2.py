"""Figure 2 of the paper: what outperforms a reference point whatever a rejection costs."""

from __future__ import annotations

from hsreject.experiments.paper_figure import PaperFigure
from hsreject.measures.point import OperatingPoint
from hsreject.plot.optimality_displays import OperatingSetDisplay
from hsreject.plot.style import PAGE_WIDTH, new_row


def operating_set_figure(
    rejected_fraction: float = 0.2,
    nonrejected_accuracy: float = 0.625,
    classification_quality: float = 0.65,
) -> PaperFigure:
    """Operating set of a reference point, for the three measures.

    Parameters
    ----------
    rejected_fraction, nonrejected_accuracy, classification_quality : float
        The reference point (r, A, Q); the defaults are the paper's.
    """
    reference = OperatingPoint.from_measures(
        nonrejected_accuracy=nonrejected_accuracy,
        classification_quality=classification_quality,
        rejected_fraction=rejected_fraction,
        n=1.0,
    )
    figure, axes = new_row(3, PAGE_WIDTH, 2.45)
    OperatingSetDisplay.from_point(reference).plot(axes)
    return PaperFigure(
        2,
        figure,
        f"Operating set of a classifier that rejects {100 * rejected_fraction:.3g} % of the "
        f"samples with nonrejected accuracy {nonrejected_accuracy:.3g}, classification quality "
        f"{classification_quality:.3g} and rejection quality {reference.rejection_quality:.2f} "
        "(black circle). Green: outperforms it for every rejection cost from 0 to 1 (border: beta "
        "= 1); orange: is outperformed (border: beta = -1); white: depends on the cost. Black "
        "line: beta = 0, as many right decisions as the reference.",
        "Grey marks what no rejection of this classifier reaches: its accuracy without rejection, "
        f"{reference.overall_accuracy:.3g}, limits how many accurate samples can be kept. The "
        "printed figure is not at hand, so the borders come from the formula of beta.",
    )
