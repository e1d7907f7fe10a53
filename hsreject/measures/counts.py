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
"""

from __future__ import annotations

from typing import Any

import numpy as np


def rejected_fraction(kept: Any, rejected: Any) -> Any:
    """Return r, the share of samples that are rejected."""
    return rejected / (kept + rejected)


def nonrejected_accuracy(accurate_kept: Any, kept: Any) -> Any:
    """Return A, the share of accurate samples among those kept; NaN when none is kept."""
    with np.errstate(invalid="ignore"):
        return np.true_divide(accurate_kept, kept)


def classification_quality(accurate_kept: Any, misclassified_rejected: Any, n: Any) -> Any:
    """Return Q, the share of samples that are kept rightly or rejected rightly."""
    return (accurate_kept + misclassified_rejected) / n


def rejection_quality(
    accurate_rejected: Any, misclassified_rejected: Any, accurate: Any, misclassified: Any
) -> Any:
    """Return phi, the odds of an error among the rejected over the odds among all samples."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.true_divide(misclassified_rejected, accurate_rejected)
        quality = odds / np.true_divide(misclassified, accurate)
        hopeless = (np.asarray(accurate) == 0) | (np.asarray(misclassified) == 0)
        quality = np.where(hopeless, np.nan, quality) if np.any(hopeless) else quality
    nothing = np.asarray(accurate_rejected + misclassified_rejected) == 0
    return np.where(nothing, 1.0, quality)


def cost(misclassified_kept: Any, rejected: Any, n: Any, rejection_cost: Any) -> Any:
    """Return the mean cost of a sample: 1 for an error kept, `rejection_cost` for a rejection."""
    return (misclassified_kept + rejection_cost * rejected) / n
