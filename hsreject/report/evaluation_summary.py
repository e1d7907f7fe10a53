"""What people quote of an evaluation, in a few lines of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.measures.summary import accuracy_at, aurc, excess_aurc

if TYPE_CHECKING:
    from hsreject.report.evaluation import Evaluation


def summary_lines(evaluation: Evaluation) -> list[str]:
    """Return pixels, area under the curve and agreement of the kept, one line each.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import evaluate
    >>> label = np.array([[1, 2, 2, 2]])
    >>> result = evaluate(np.array([[1, 1, 2, 0]]), label, np.array([[0.9, 0.3, 0.8, 0.6]]))
    >>> summary_lines(result)[0]
    '3 pixels with reference and data, 0 with reference only'
    """
    samples, kept, curve = evaluation.samples, evaluation.agreement, evaluation.curve
    lines = [
        f"{samples.correct.size} pixels with reference and data, "
        f"{samples.n_without_data} with reference only"
    ]
    lines += _strangers(evaluation)
    if curve is not None:
        lines += [
            f"area under the risk-coverage curve {aurc(curve):.4f}, "
            f"excess {excess_aurc(curve):.4f} (smaller is better)",
            f"A with 10 % rejected: {float(accuracy_at(curve, 0.1)[0]):.4f}{_band(evaluation)}",
        ]
    lines.append(
        f"kept at '{evaluation.shown.name}': average accuracy {kept.average_accuracy:.4f}, "
        f"kappa {kept.kappa:.4f}"
    )
    if kept.unkept_classes:
        gone = ", ".join(evaluation.classes.name_of(value) for value in kept.unkept_classes)
        lines.append(f"rejected completely: {gone}")
    return lines


def _strangers(evaluation: Evaluation) -> list[str]:
    """Return one line about classes that only the labels, or only the reference, have."""
    samples, classes = evaluation.samples, evaluation.classes
    lines = []
    for own, others, what in (
        (samples.label, samples.reference, "labels that the reference does not have, all errors"),
        (samples.reference, samples.label, "reference classes that were never assigned"),
    ):
        values, counts = np.unique(own[~np.isin(own, others)], return_counts=True)
        if values.size:
            named = ", ".join(
                f"{classes.name_of(int(value))} ({count} pixels)"
                for value, count in zip(values, counts, strict=True)
            )
            lines.append(f"{what}: {named}")
    return lines


def _band(evaluation: Evaluation) -> str:
    if evaluation.bands is None:
        return ""
    at = evaluation.bands.sel(rejected_fraction=0.1, method="nearest")
    lower, upper = (float(at[f"nonrejected_accuracy_{end}"]) for end in ("lower", "upper"))
    return f" ({100 * evaluation.bands.attrs['confidence_level']:g} %: {lower:.4f} to {upper:.4f})"
