"""
Figure 4: three measures say more than one
==========================================

The two rejectors of :ref:`sphx_glr_gallery_paper_plot_paper_3_two_rejectors.py`, at every rejected
fraction. The accuracy of what is kept rises nearly to the end and singles out no point.
Classification quality, the share of right decisions, has a top, which is marked: up to there
rejecting catches more errors than it wastes labels. Rejection quality is the odds of an error among
the rejected samples over those among all; it separates the two rejectors best where little is
rejected.

The number of samples (40,000), their seed and equal numbers per class are ours; the paper does not
give its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

import hsreject as hr

centers = np.array([[-1, 1], [1, 1], [-1, -1], [1, -1]])
reference = np.repeat([0, 1, 2, 3], 10_000)
samples = centers[reference] + np.random.default_rng(0).standard_normal((40_000, 2))
probability = softmax(-((samples[:, np.newaxis] - centers) ** 2).sum(axis=-1) / 2, axis=-1)
correct = probability.argmax(axis=-1) == reference
second, first = np.sort(probability, axis=-1)[:, -2:].T

curves = {
    "maximum probability": hr.rejection_curve(correct, first),
    "breaking ties": hr.rejection_curve(correct, first - second),
}
hr.plot.RejectionCurveDisplay.from_curves(curves).plot()
plt.show()
