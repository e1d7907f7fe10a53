"""Pictures as scikit-learn makes them: a display holds its data and draws on request.

``display.plot(ax)`` draws on the given axes and returns them; without axes it makes a pyplot
figure, as notebooks expect. To save without a display use :func:`new_figure` and
:func:`save_figure`.
"""

from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import INFRARED, NATURAL, ConfidenceMapDisplay, FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay, OutcomeMapDisplay, RejectMapDisplay
from hsreject.plot.optimality_displays import OperatingSetDisplay, RelativeOptimalityDisplay
from hsreject.plot.promise_displays import AreaDisplay, CertificateDisplay
from hsreject.plot.reliability_display import ReliabilityDisplay
from hsreject.plot.style import PAGE_WIDTH, new_figure, new_row, print_style, save_figure

__all__ = [
    "INFRARED",
    "NATURAL",
    "PAGE_WIDTH",
    "AreaDisplay",
    "BreakEvenCostDisplay",
    "CertificateDisplay",
    "ClassMapDisplay",
    "ConfidenceMapDisplay",
    "CostEnvelopeDisplay",
    "FalseColorDisplay",
    "OperatingSetDisplay",
    "OutcomeMapDisplay",
    "RejectMapDisplay",
    "RejectionCurveDisplay",
    "RelativeOptimalityDisplay",
    "ReliabilityDisplay",
    "new_figure",
    "new_row",
    "print_style",
    "save_figure",
]
