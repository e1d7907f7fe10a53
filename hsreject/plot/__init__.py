"""Pictures in the manner of scikit-learn: a display keeps its data and draws when asked.

``display.plot(ax)`` draws on the given axes and returns them; without axes it makes a pyplot
figure, as notebooks expect. To save without a display use :func:`new_figure` and
:func:`save_figure`.
"""

from hsreject.plot.break_even_cost import BreakEvenCostDisplay
from hsreject.plot.class_map import ClassMapDisplay, RejectMapDisplay
from hsreject.plot.confidence_map import ConfidenceMapDisplay
from hsreject.plot.confusion import RejectionConfusionDisplay
from hsreject.plot.cost_envelope import CostEnvelopeDisplay
from hsreject.plot.false_color import FalseColorDisplay
from hsreject.plot.operating_set import OperatingSetDisplay
from hsreject.plot.outcome_map import OutcomeMapDisplay
from hsreject.plot.rejection_curve import RejectionCurveDisplay
from hsreject.plot.relative_optimality import RelativeOptimalityDisplay
from hsreject.plot.style import new_figure, new_row, print_style, save_figure

__all__ = [
    "BreakEvenCostDisplay",
    "ClassMapDisplay",
    "ConfidenceMapDisplay",
    "CostEnvelopeDisplay",
    "FalseColorDisplay",
    "OperatingSetDisplay",
    "OutcomeMapDisplay",
    "RejectMapDisplay",
    "RejectionConfusionDisplay",
    "RejectionCurveDisplay",
    "RelativeOptimalityDisplay",
    "new_figure",
    "new_row",
    "print_style",
    "save_figure",
]
