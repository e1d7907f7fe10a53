"""What a map with rejection amounts to, as parts of a page: the answer, tables, maps and curves.

Everything is taken from one :class:`Evaluation` of the map as it is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.classes import ClassTable
from hsreject.measures.choosing import cheapest_operating_point
from hsreject.measures.confusion import confusion_matrix
from hsreject.measures.cost import break_even_cost
from hsreject.measures.point import OperatingPoint, share
from hsreject.plot.map_displays import (
    ClassMapDisplay,
    OutcomeMapDisplay,
)
from hsreject.report import figures
from hsreject.report.page import Fact, Headline, Picture, Section, Swatch, Table
from hsreject.schema import DECISION, REFERENCE

if TYPE_CHECKING:
    from hsreject.report.evaluation import Evaluation

HOW_GOOD, WHERE, HOW_MUCH = "How good is it?", "Where?", "How much to reject?"
NO_DATA = Swatch("var(--line)", "no data")
_COSTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_NAMED_CONFUSIONS = 3
_LARGEST_MATRIX = 60  # classes


def percent(value: float, digits: int = 1) -> str:
    """Return a share as a percentage; what is not known is a dash."""
    return "-" if np.isnan(value) else f"{100 * value:.{digits}f} %"


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """Return a share in percent, with its interval where that is known."""
    lower, upper = interval
    known = "" if np.isnan(lower) else f" ({100 * lower:.1f} to {100 * upper:.1f})"
    return "-" if np.isnan(value) else f"{100 * value:.1f}{known}"


def _span(interval: tuple[float, float]) -> str:
    lower, upper = interval
    return "" if np.isnan(lower) else f"95 % interval: {100 * lower:.1f} to {100 * upper:.1f}"


def errors_caught(point: OperatingPoint) -> float:
    """Return the share of the errors that are rejected."""
    return float(share(point.misclassified_rejected, point.misclassified))


def headline(
    evaluation: Evaluation,
    *,
    beside: Sequence[Fact] = (),
    promise: str = "",
    notes: Sequence[str] = (),
    link: tuple[str, str] | None = None,
) -> Headline:
    """Return what the map is worth, in a sentence and in numbers."""
    shown, nothing = evaluation.shown, evaluation.points[0]
    point, kept, pixels = shown.point, evaluation.kept_share, evaluation.measured_on
    facts = (
        Fact(
            percent(kept),
            "of the scene is kept",
            f"and {percent(1 - point.rejected_fraction)} of the {point.n:,} {pixels}",
        ),
        Fact(
            percent(point.nonrejected_accuracy),
            "of what is kept is right",
            _span(evaluation.interval(shown)),
        ),
        Fact(
            percent(point.overall_accuracy),
            "with nothing rejected",
            _span(evaluation.interval(nothing)),
        ),
        Fact(
            percent(errors_caught(point)),
            "of the errors are caught",
            f"{point.misclassified_rejected:,} of {point.misclassified:,} wrong {pixels} are "
            f"rejected, with {point.accurate_rejected:,} right ones",
        ),
        *beside,
    )
    side = evaluation.resampling().block_size
    said = (
        f"Intervals come from resampled blocks of {side:g} x {side:g} pixels, since neighbours err "
        "together."
    )
    if link is not None:
        said += " Those of the explorer take pixels for independent, and are narrower."
    return Headline(
        statement(evaluation), facts, promise, evaluation.warnings, (*notes, said), link
    )


def statement(evaluation: Evaluation) -> str:
    """Return what the map is worth, in two sentences."""
    point = evaluation.shown.point
    return (
        f"The map keeps {percent(evaluation.kept_share)} of the scene. Of the "
        f"{evaluation.measured_on} that it keeps, {percent(point.nonrejected_accuracy)} are right; "
        f"with nothing rejected it would be {percent(point.overall_accuracy)}."
    )


def point_table(evaluation: Evaluation) -> Table:
    """Return the operating points of an evaluation, side by side."""
    rows = []
    for named in evaluation.points:
        point = named.point
        rows.append(
            (
                named.name,
                percent(point.rejected_fraction),
                with_interval(point.nonrejected_accuracy, evaluation.interval(named)),
                percent(errors_caught(point)),
                f"{100 * point.classification_quality:.1f}",
                f"{point.rejection_quality:.2f}",
                "" if np.isnan(point.threshold) else f"{point.threshold:.4g}",
                "" if np.isnan(named.cost) else f"{named.cost:.4f}",
            )
        )
    headings = (
        "operating point",
        "rejected",
        "A (95 % interval)",
        "errors caught",
        "Q",
        "phi",
        "threshold",
        "cost",
    )
    caption = (
        "A: accuracy of what is kept, in percent. Q: share of right decisions (right labels kept, "
        "wrong ones rejected). phi: the odds of an error among the rejected over the odds among "
        "all. All on the reference pixels."
    )
    return Table(headings, tuple(rows), caption)


def class_tables(evaluation: Evaluation) -> tuple[Table, ...]:
    """Return what becomes of each class, and the confusion matrix where a page has room for it."""
    matrix, classes = evaluation.confusion, evaluation.classes
    samples = evaluation.samples
    whole = confusion_matrix(samples.reference, samples.label, classes=classes)
    values = matrix[REFERENCE].values
    decided = matrix.sel({DECISION: values}).values
    rows = []
    for place, name in enumerate(classes.names):
        n, kept = int(matrix.values[place].sum()), int(decided[place].sum())
        n_right = int(whole.values[place, place])
        rows.append(
            (
                name,
                f"{n:,}",
                percent(share(kept, n)),
                percent(share(int(decided[place, place]), kept)),
                percent(share(n_right, n)),
                _confusions(decided[place], place, classes.names),
            )
        )
    table = Table(
        ("class", "pixels", "kept", "right if kept", "right of all", "confused with"),
        tuple(rows),
        f"Shares of the {evaluation.measured_on} of each class; confusions of those kept.",
        title="Class by class",
        colors=tuple(classes.colors),
        wordy=True,
    )
    return (table,) if len(classes) > _LARGEST_MATRIX else (table, _matrix(matrix.values, classes))


def _matrix(counts: NDArray[np.integer], classes: ClassTable) -> Table:
    """Return the confusion matrix with the rejected column."""
    shades = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    cells = ([f"{count:,}" if count else "" for count in row] for row in counts.tolist())
    return Table(
        ("reference", *classes.names, "rejected"),
        tuple((name, *row) for name, row in zip(classes.names, cells, strict=True)),
        "Rows are the reference, columns what the map says. Shade: share of the row.",
        title="Confusion matrix",
        colors=tuple(classes.colors),
        shades=tuple(map(tuple, shades.tolist())),
    )


def _confusions(kept: NDArray[np.integer], place: int, names: Sequence[str]) -> str:
    """Name what the kept pixels of a class are mistaken for, most often first."""
    wrong = kept.copy()
    wrong[place] = 0
    order = np.argsort(-wrong, kind="stable")[:_NAMED_CONFUSIONS]
    return ", ".join(f"{names[other]} ({wrong[other]:,})" for other in order if wrong[other])


def where(
    evaluation: Evaluation,
    drawn: figures.Pictures,
    *,
    name: str = "map",
    text: str = "",
    others: Sequence[Picture] = (),
) -> Section:
    """Return the maps of an evaluation, and `others`, with one legend for all class maps."""
    maps, classes = evaluation.maps, evaluation.classes
    label, rejected = maps["label"], evaluation.rejected
    decided = ClassMapDisplay.from_labels(label, classes=classes).paint()
    reference = ClassMapDisplay.from_labels(maps["reference"], classes=classes).paint()
    outcome = OutcomeMapDisplay.from_maps(label, maps["reference"], rejected).paint()
    said = f"It rejects {percent(1 - evaluation.kept_share)} of the scene."
    pictures = [
        drawn.map(f"rejected_{name}", decided.pixels, "The map", said, rejected=rejected),
        drawn.map("reference", reference.pixels, "Reference", f"The {evaluation.measured_on}."),
        drawn.map(
            f"outcome_{name}",
            outcome.pixels,
            "Right and wrong",
            "Only what is accurate and kept, or misclassified and rejected, is as it should be.",
            legend=[Swatch(c.color, c.name) for c in outcome.categories if c.code],
        ),
    ]
    if "confidence" in maps:
        pixels, ramp = figures.paint_confidence(maps["confidence"])
        what = str(maps["confidence"].attrs.get("long_name", "confidence"))
        pictures.append(
            drawn.map(
                f"confidence_{name}",
                pixels,
                "Confidence",
                f"What decides: {what}. Dark pixels are rejected first.",
                legend=ramp,
            )
        )
    pictures += others
    entries = dict.fromkeys(
        Swatch(c.color, c.name) for painted in (decided, reference) for c in painted.categories
    )
    gaps = [NO_DATA] if decided.has_gaps or reference.has_gaps else []
    legend = (*entries, Swatch("", "rejected"), *gaps)
    return Section(WHERE, text, legend=legend, pictures=tuple(pictures))


def how_much(
    evaluation: Evaluation,
    curves: figures.Curves,
    drawn: figures.Pictures,
    *,
    isolated: Sequence[str] = (),
) -> Section:
    """Return what other fractions are worth: the measures over r, costs, relative optimality.

    The first of `curves` is that of the evaluation.
    """
    point, nothing = evaluation.shown.point, evaluation.points[0].point
    pixels = evaluation.measured_on
    even = break_even_cost(
        point.nonrejected_accuracy,
        point.rejected_fraction,
        nothing.nonrejected_accuracy,
        nothing.rejected_fraction,
    )
    text = (
        "Nothing is rejected."
        if np.isnan(even)
        else f"Of the rejected {pixels} {percent(errors_among_rejected(point))} are wrong. So this "
        f"map is better than one without rejection as long as a rejected pixel costs less "
        f"than {even:.2f} of a wrong one."
    )
    if not curves:
        return Section(HOW_MUCH, text)
    points = {"this map": point}
    points |= {p.name: p.point for p in evaluation.points[1:] if p is not evaluation.shown}
    banded = "" if evaluation.bands is None else " Bands: 95 %, from resampled blocks."
    pictures = (
        drawn.curves(
            "measures",
            figures.measures(curves, isolated=isolated, points=points, bands=evaluation.bands),
            "The three measures",
            "Accuracy of what is kept, share of right decisions, and how much likelier errors are "
            f"among the rejected, over the rejected fraction of the {pixels}.{banded}",
        ),
        drawn.curves(
            "costs",
            figures.costs(curves, isolated=isolated),
            "What rejection may cost",
            "The cost of a rejection from which on it is better to reject nothing; and for each "
            "cost (an error costs 1) the least mean cost per pixel and the fraction to reject.",
        ),
        drawn.curves(
            "relative_optimality",
            figures.relative_optimality(curves),
            "Relative optimality",
            "Of each operating point with respect to each reference: above 0 it makes more right "
            "decisions.",
        ),
    )
    first = next(iter(curves.values()))
    return Section(HOW_MUCH, text, (_cost_table(first),), pictures=pictures, wide=True)


def errors_among_rejected(point: OperatingPoint) -> float:
    """Return the share of the rejected samples that are wrong."""
    return float(share(point.misclassified_rejected, point.rejected))


def _cost_table(curve: xr.Dataset) -> Table:
    """Return the cheapest operating point for some costs of a rejection."""
    without = OperatingPoint.from_curve(curve, 0)
    rows = []
    for cost in _COSTS:
        point = cheapest_operating_point(curve, cost)
        rows.append(
            (
                f"{cost:g}",
                percent(point.rejected_fraction),
                percent(point.nonrejected_accuracy),
                percent(errors_caught(point)),
                f"{point.cost(cost):.3f}",
                f"{without.cost(cost):.3f}",
            )
        )
    headings = (
        "if a rejection costs",
        "reject",
        "then right of the kept",
        "errors caught",
        "cost per pixel",
        "with nothing rejected",
    )
    return Table(headings, tuple(rows), "An error costs 1.", title="The cheapest point for a cost")
