r"""The measures as functions of the four counts: plain kernels that broadcast.

The paper splits the samples into accurate and misclassified, kept and rejected. Written with the
number of accurate kept AN, misclassified kept MN, accurate rejected AR, misclassified rejected MR
and :math:`n = AN + MN + AR + MR`:

====================== ========================================== ============================
measure                definition                                 where the definition fails
====================== ========================================== ============================
rejected fraction      :math:`r = (AR + MR) / n`                  never
nonrejected accuracy   :math:`A = AN / (AN + MN)`                 everything rejected: NaN
classification quality :math:`Q = (AN + MR) / n`                  never
rejection quality      :math:`\phi = (MR/AR) / ((MN+MR)/(AN+AR))` see below
cost                   :math:`L = (MN + \rho (AR + MR)) / n`      never
====================== ========================================== ============================

:math:`\phi` is 1 when nothing is rejected; else NaN when the classifier makes no error or only
errors, since the odds among all samples are then 0 or infinite and there is nothing to compare
with; else infinity when nothing accurate is rejected.

Two lines differ from the paper's text: the denominator of A is the number kept, k (the text of
section III-A says n - k), and :math:`\phi` needs its convention when no *accurate* sample is
rejected (the text of section III-C says misclassified).

A new measure is a kernel here and a line in `MEASURES`: curves, bootstrap bands and operating sets
then have it, under its name. The ones below are written once more as a compiled loop for curves, in
:mod:`hsreject.measures.curve_kernels`; tests hold both to the same digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Counts(NamedTuple):
    """The four counts, numbers or arrays that broadcast; shares and weights do as well."""

    accurate_kept: Any
    misclassified_kept: Any
    accurate_rejected: Any
    misclassified_rejected: Any

    @property
    def kept(self) -> Any:
        """Samples kept."""
        return self.accurate_kept + self.misclassified_kept

    @property
    def rejected(self) -> Any:
        """Samples rejected."""
        return self.accurate_rejected + self.misclassified_rejected

    @property
    def accurate(self) -> Any:
        """Accurate samples, kept or rejected."""
        return self.accurate_kept + self.accurate_rejected

    @property
    def misclassified(self) -> Any:
        """Misclassified samples, kept or rejected."""
        return self.misclassified_kept + self.misclassified_rejected

    @property
    def n(self) -> Any:
        """All samples."""
        return self.kept + self.rejected


def share(part: Any, whole: Any) -> Any:
    """Return part / whole, NaN where the whole is nothing."""
    with np.errstate(invalid="ignore"):
        return np.true_divide(part, whole)


def rejected_fraction(counts: Counts) -> Any:
    """Return r, the share of samples that are rejected."""
    return share(counts.rejected, counts.n)


def nonrejected_accuracy(counts: Counts) -> Any:
    """Return A, the share of accurate samples among those kept."""
    return share(counts.accurate_kept, counts.kept)


def classification_quality(counts: Counts) -> Any:
    """Return Q, the share of samples that are kept rightly or rejected rightly."""
    return share(counts.accurate_kept + counts.misclassified_rejected, counts.n)


def rejection_quality(counts: Counts) -> Any:
    """Return phi, the odds of an error among the rejected over the odds among all samples."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.true_divide(counts.misclassified_rejected, counts.accurate_rejected)
        quality = odds / np.true_divide(counts.misclassified, counts.accurate)
    return np.where(np.equal(counts.rejected, 0), 1.0, quality)


def cost(counts: Counts, rejection_cost: Any) -> Any:
    """Return the mean cost of a sample: 1 for an error kept, `rejection_cost` for a rejection."""
    return (counts.misclassified_kept + rejection_cost * counts.rejected) / counts.n


class Measure(NamedTuple):
    """A measure of an operating point: how it is computed and what it means, in a few words."""

    kernel: Callable[[Counts], Any]
    meaning: str


MEASURES = {
    "nonrejected_accuracy": Measure(
        nonrejected_accuracy, "share of accurate samples among the kept (A)"
    ),
    "classification_quality": Measure(classification_quality, "share of right decisions (Q)"),
    "rejection_quality": Measure(
        rejection_quality, "odds of an error among the rejected over those among all (phi)"
    ),
}
