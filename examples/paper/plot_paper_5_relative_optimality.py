"""
Figure 5: every operating point against every other
===================================================

Relative optimality compares two operating points by the samples that change sides between them:
1 if every change is right, -1 if every change is wrong. Each column is a reference point, each
row a point that is compared with it, for the two rejectors of
:ref:`sphx_glr_gallery_paper_plot_paper_3_two_rejectors.py`. The dashed row, the point of largest
classification quality, is nowhere purple: it loses against no other point.

The samples are those of figure 4; their number and seed are ours.
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

maximum = hr.plot.RelativeOptimalityDisplay.from_curve(hr.rejection_curve(correct, first))
ties = hr.plot.RelativeOptimalityDisplay.from_curve(hr.rejection_curve(correct, first - second))

with hr.plot.print_style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.16, 3.0), layout="constrained")
    maximum.plot(left, colorbar=False).set_title("maximum probability")
    ties.plot(right).set_title("breaking ties")
plt.show()
