"""
Your own prior beside vector total variation
============================================

In a vineyard, neighbours along a row belong together and neighbours across rows do not. Vector
total variation ties a pixel to both and blurs the rows together. A prior that charges absolute
differences along rows only is a page of code: the operator, its adjoint, and what a difference
costs. SegSALSA knows nothing about it and still certifies the optimum;
:func:`hsreject.check_prior` compares each method with its definition.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

import hsreject as hr


class AlongRows(hr.Prior):
    """Weight times the sum of absolute differences between neighbors of a row."""

    def __init__(self, weight):
        self.weight = weight

    def bind(self, grid):
        return AlongRowsTerm(grid, self.weight)


class AlongRowsTerm(hr.Term):
    squared_norm = 4.0

    def __init__(self, grid, weight):
        super().__init__(grid)
        self.weight = weight
        self.has_edge = (grid.valid[:, :-1] & grid.valid[:, 1:])[:, np.newaxis]

    def forward(self, field):  # (y, category, x)
        return np.diff(field, axis=-1) * self.has_edge

    def adjoint(self, coefficients):
        ends = np.zeros((*coefficients.shape[:-1], 1), coefficients.dtype)
        return -np.diff(coefficients * self.has_edge, axis=-1, prepend=ends, append=ends)

    def value(self, coefficients):
        return self.weight * np.abs(coefficients).sum(dtype=float)

    def prox(self, coefficients, step):
        return np.sign(coefficients) * np.maximum(np.abs(coefficients) - step * self.weight, 0)

    def conjugate(self, dual):
        return 0.0 if np.abs(dual).max(initial=0) <= self.weight * (1 + 1e-5) else np.inf


hr.check_prior(AlongRows(0.7))

# Vines and grass in rows of two pixels, two fields beside them, and a noisy classifier.
truth = np.tile([[1], [1], [2], [2]], (12, 48))
truth[:24, 32:], truth[24:, 32:] = 3, 4
noise = np.random.default_rng(0).standard_normal((4, 48, 48))
probability = softmax(2 * ((np.arange(1, 5)[:, None, None] == truth) + noise), axis=0)

priors = {  # each with the weight that suits it best
    "no context": hr.VectorTV(weight=0),
    "vector TV": hr.VectorTV(weight=0.75),
    "along rows": AlongRows(weight=3),
}
with hr.plot.print_style():
    fig, axes = plt.subplots(1, 4, figsize=(7.16, 2), layout="constrained")
    hr.plot.ClassMapDisplay.from_labels(truth).plot(axes[0], legend=False).set_title("truth")
    for ax, (name, prior) in zip(axes[1:], priors.items(), strict=True):
        label = hr.SegSALSA(prior).solve(probability).label
        hr.plot.ClassMapDisplay.from_labels(label).plot(ax, legend=False)
        ax.set_title(f"{name}, {(label == truth).mean():.0%} right")
plt.show()
