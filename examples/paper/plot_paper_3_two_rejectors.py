"""
Figure 3: two ways to be uncertain
==================================

Four clouds of points overlap, and each point gets the label of the nearest centre. Two
rejectors give up a fifth of the labels. *Maximum probability* rejects where the best class is
not probable enough, *breaking ties* where the second class is nearly as probable. They differ
near the origin, where all four classes compete, and far out along the axes, where only two do.

The number of samples and their seed are ours; the paper does not give its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

import hsreject as hr

centers = np.array([[-1, 1], [1, 1], [-1, -1], [1, -1]])
reference = np.repeat([1, 2, 3, 4], 1000)
samples = centers[reference - 1] + np.random.default_rng(0).standard_normal((4000, 2))

# The classes are equally likely, so that their probabilities are known exactly.
probability = softmax(-((samples[:, np.newaxis] - centers) ** 2).sum(axis=-1) / 2, axis=-1)
label = 1 + probability.argmax(axis=-1)
second, first = np.sort(probability, axis=-1)[:, -2:].T
confidence = {"maximum probability": first, "breaking ties": first - second}

shown = {"true classes": reference, "nearest centre": label}
for name, values in confidence.items():
    shown[name] = np.where(values < np.quantile(values, 0.2), 0, label)

colors = np.array(["black", "#56b4e9", "#e69f00", "#117733", "#aa3377"])  # black is rejected
with hr.plot.print_style():
    fig, axes = plt.subplots(1, 4, figsize=(7.16, 2.1), layout="constrained", sharey=True)
    for ax, (name, classes) in zip(axes, shown.items(), strict=True):
        ax.scatter(*samples.T, c=colors[classes], s=2, linewidths=0)
        ax.set(xlim=(-4, 4), ylim=(-4, 4), xticks=[-2, 0, 2], yticks=[-2, 0, 2], aspect="equal")
        ax.set_title(name)
plt.show()
