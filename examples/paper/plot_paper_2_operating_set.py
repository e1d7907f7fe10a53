"""
Figure 2: what is better whatever a rejection costs
===================================================

A system rejects 20 % of its samples and labels 62.5 % of the others correctly. Which other
systems are better? In the green regions every system is, whatever a rejection costs; in the
orange regions none is. In the white ones it depends on the cost. The black line is where as
many decisions are right as at the reference point: relative optimality 0. What is grey cannot
be reached by rejecting more or less of the same labels, of which 55 % are right.

The borders follow from the formula of relative optimality,
:func:`hsreject.relative_optimality`.
"""

import matplotlib.pyplot as plt

import hsreject as hr

reference = hr.OperatingPoint.from_measures(
    nonrejected_accuracy=0.625, classification_quality=0.65, rejected_fraction=0.2, n=1.0
)
hr.plot.OperatingSetDisplay.from_point(reference).plot()
plt.show()
