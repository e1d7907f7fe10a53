"""How good a map with rejection is, as parts of a page: the answer, maps, classes and curves.

Everything is taken from one :class:`Evaluation` of the map as it is delivered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.classes import ClassTable
from hsreject.handover.confidence_classes import CONFIDENCE_CLASSES
from hsreject.io.grid import Grid, crs_name
from hsreject.measures.cost import break_even_cost
from hsreject.measures.point import OperatingPoint, share
from hsreject.plot.map_displays import ClassMapDisplay, OutcomeMapDisplay
from hsreject.report import figures
from hsreject.report.page import Fact, Headline, Picture, Section, Swatch, Table, write_page
from hsreject.report.tables import GOALS, area_table, class_table, goal_costs, hectares
from hsreject.schema import CATEGORY, CLASS_NAME, CONFIDENCE_CLASS, DECISION, REFERENCE

if TYPE_CHECKING:
    from hsreject.report.evaluation import Evaluation

HOW_GOOD, WHERE, PER_CLASS, HOW_MUCH = "How good is it?", "Maps", "Per class", "How much to reject?"
NO_DATA = Swatch("var(--line)", "no data")
_NAMED_CONFUSIONS = 3
_LARGEST_MATRIX = 60  # classes
_DATE = re.compile(r"((?:19|20)\d\d)-?([01]\d)-?([0-3]\d)[Tt_ ]\d\d")  # a day, before the hour


def percent(value: float, digits: int = 1) -> str:
    """Return a share as a percentage; what is not known is a dash."""
    return "-" if np.isnan(value) else f"{100 * value:.{digits}f} %"


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """Return a share in percent, with its interval where that is known."""
    lower, upper = interval
    span = "" if np.isnan(lower) else f" ({100 * lower:.1f} to {100 * upper:.1f})"
    return "-" if np.isnan(value) else f"{100 * value:.1f}{span}"


def area(size: float) -> str:
    """Return hectares to three digits."""
    digits = 2 - int(np.floor(np.log10(max(size, 1))))
    return f"{round(size, digits):,.{max(digits, 0)}f} ha"


def _span(interval: tuple[float, float]) -> str:
    lower, upper = interval
    return "" if np.isnan(lower) else f"95 % interval: {100 * lower:.1f} to {100 * upper:.1f}"


def errors_caught(point: OperatingPoint) -> float:
    """Return the share of the errors that are rejected."""
    return float(share(point.misclassified_rejected, point.misclassified))


def headline(  # noqa: PLR0913 (one argument per thing that it says)
    evaluation: Evaluation,
    *,
    beside: Sequence[Fact] = (),
    promise: str = "",
    warnings: Sequence[str] = (),
    goal: Table | None = None,
    notes: Sequence[str] = (),
    place: str = "",
    files: Sequence[str] = (),
    link: tuple[str, str] | None = None,
) -> Headline:
    """Return how good the map is, in a sentence and in numbers.

    `beside` are more numbers; `warnings` are what a reader must not miss, before those
    of the evaluation; `goal` is from :func:`goal_table`, where the goal is out of reach; `place`
    says where and when; `files` and the `link` to open next lie beside the page.
    """
    shown, nothing = evaluation.shown, evaluation.points[0]
    point, pixels = shown.point, evaluation.measured_on
    facts = (
        Fact(
            percent(1 - point.rejected_fraction),
            f"of the {pixels} are kept",
            f"of {point.n:,}; that is {_kept_of_scene(evaluation)}",
        ),
        Fact(
            percent(point.nonrejected_accuracy),
            f"of the kept {pixels} are right",
            _span(evaluation.interval(shown)),
        ),
        Fact(
            percent(point.overall_accuracy),
            f"of all {pixels} are right, with nothing rejected",
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
    return Headline(
        statement(evaluation),
        facts,
        promise,
        (*warnings, *evaluation.warnings),
        (*notes, _about_intervals(evaluation)),
        link,
        place=place,
        table=goal,
        files=tuple(files),
    )


def _kept_of_scene(evaluation: Evaluation) -> str:
    size = hectares(evaluation, evaluation.has_data & ~evaluation.rejected)
    words = f"{percent(evaluation.kept_share)} of the scene"
    return words if size is None else f"{words}, {area(size)}"


def _about_intervals(evaluation: Evaluation) -> str:
    side = evaluation.block_size
    where = (
        f"the {evaluation.clumps.n_blocks} groups that they were drawn in"
        if side is None
        else f"blocks of {side:g} x {side:g} pixels"
    )
    return f"All 95 % intervals allow for neighbours that err together, in {where}."


def statement(evaluation: Evaluation) -> str:
    """Return how good the map is, in the words of its users."""
    point, pixels = evaluation.shown.point, evaluation.measured_on
    lower, upper = evaluation.interval(evaluation.shown)
    span = "" if np.isnan(lower) else f" (95 % interval {100 * lower:.0f} to {100 * upper:.0f})"
    if not point.rejected:
        return (
            f"{percent(point.overall_accuracy)} of the {pixels} are right{span}; none of them is "
            f"rejected. The map keeps {_kept_of_scene(evaluation)}."
        )
    words = (
        f"Keeps {percent(1 - point.rejected_fraction)} of the {pixels} "
        f"({_kept_of_scene(evaluation)}) at {percent(point.nonrejected_accuracy)} accuracy{span}; "
        f"with nothing rejected {percent(point.overall_accuracy)}."
    )
    lost, untested = evaluation.lost_classes(), evaluation.untested_classes()
    if lost:
        words += f" Lost by rejection: {_names(lost, evaluation.classes)}."
    if untested:
        names = _names(untested, evaluation.classes)
        words += f" None of the {pixels} of {names} is kept: what the map keeps there is untested."
    return words


def _names(values: Sequence[int], classes: ClassTable) -> str:
    return ", ".join(classes.name_of(value) for value in values)


def about_scene(scene: xr.DataArray) -> str:
    """Return file, size, reference system and date of a map or scene, as far as it knows them.

    The date is what an ENVI header states, or part of the file's name, as in products.
    """
    grid, name = Grid.of(scene), str(scene.attrs.get("source", ""))
    stamp = _DATE.search(str(scene.attrs.get("acquisition_time", ""))) or _DATE.search(name)
    size = f"{grid.height:,} x {grid.width:,} pixels"
    date = "-".join(stamp.groups()) if stamp else ""
    return " · ".join(filter(None, (name, size, crs_name(grid.crs) if grid.crs else "", date)))


def goal_table(evaluation: Evaluation, accuracies: Sequence[float] = GOALS) -> Table | None:
    """Return what accuracies would cost, as a table; None for a map without a confidence.

    From the curve on the test pixels and the confidences of the scene: shares of both to give up,
    area that is kept, classes that are lost.
    """
    goals = goal_costs(evaluation, accuracies)
    if not goals:
        return None
    pixels = evaluation.measured_on
    rows = []
    for goal in goals:
        point, size = goal.point, goal.hectares_kept
        cells = (percent(point.rejected_fraction), percent(goal.scene_share))
        area_cells = () if size is None else (area(size) if goal.reached else "-",)
        lost = _names(goal.lost_classes, evaluation.classes) or "none"
        if not goal.reached:
            cells = ("out of reach", "-")
            lost = f"the highest accuracy is {percent(point.nonrejected_accuracy)}"
        rows.append((percent(goal.accuracy, 0), *cells, *area_cells, lost))
    headings = ["for an accuracy of", f"reject of the {pixels}", "reject of the scene"]
    headings += [] if goals[0].hectares_kept is None else ["area kept"]
    caption = f"Accuracies are those of the {pixels} kept."
    title = "What an accuracy costs"
    return Table((*headings, "classes lost"), tuple(rows), caption, title=title, wordy=True)


def shown_confidence_classes(table: xr.Dataset) -> Table:
    """Return :func:`hsreject.report.tables.confidence_table` as a page shows it."""
    rows = []
    for name in table[CONFIDENCE_CLASS].values.tolist():
        one = table.sel({CONFIDENCE_CLASS: name})
        ends = (one["accuracy_lower"].item(), one["accuracy_upper"].item())
        rows.append(
            (
                name,
                percent(one["share_of_scene"].item()),
                f"{one['reference_pixels'].item():,}",
                with_interval(one["accuracy"].item(), ends),
            )
        )
    return Table(
        ("confidence", "of the scene", "test pixels", "right, %"),
        tuple(rows),
        "Thirds of the scene by confidence (equal ones stay together, unknown pixels are low), and "
        "how many test pixels are right in each with nothing rejected; in brackets 95 % intervals.",
        title="How accurate each confidence class is",
        colors=CONFIDENCE_CLASSES.colors,
    )


def point_table(evaluation: Evaluation) -> Table:
    """Return the operating points of an evaluation, side by side."""
    rows = tuple(
        (
            named.name,
            percent(named.point.rejected_fraction),
            with_interval(named.point.nonrejected_accuracy, evaluation.interval(named)),
            percent(errors_caught(named.point)),
            f"{100 * named.point.classification_quality:.1f}",
            f"{named.point.rejection_quality:.2f}",
            "" if np.isnan(named.point.threshold) else f"{named.point.threshold:.4g}",
            "" if np.isnan(named.cost) else f"{named.cost:.4f}",
        )
        for named in evaluation.points
    )
    first = ("operating point", "rejected", "A (95 % interval)", "errors caught")
    headings = (*first, "Q", "phi", "threshold", "cost")
    caption = (
        "A: accuracy of what is kept, in percent. Q: share of right decisions (right labels kept, "
        "wrong ones rejected). phi: the odds of an error among the rejected over the odds among "
        f"all. All on the {evaluation.measured_on}."
    )
    return Table(headings, rows, caption, title="Operating points")


def per_class(evaluation: Evaluation) -> Section:
    """Return what becomes of each class, and the confusion matrix where a page has room for it."""
    matrix, classes, pixels = evaluation.confusion, evaluation.classes, evaluation.measured_on
    decided = matrix.sel({DECISION: matrix[REFERENCE].values}).values
    accuracies, areas = class_table(evaluation), shown_areas(area_table(evaluation))
    rows = []
    for place, area_cells in enumerate(areas.rows[: len(classes)]):
        one = accuracies.isel({CATEGORY: place})
        rows.append(
            (
                *area_cells,
                f"{one['reference_pixels'].item():,.0f}",
                percent(share(one["reference_pixels_kept"].item(), one["reference_pixels"].item())),
                *(
                    with_interval(
                        one[kind].item(), (one[f"{kind}_lower"].item(), one[f"{kind}_upper"].item())
                    )
                    for kind in ("user_accuracy", "producer_accuracy")
                ),
                _confusions(decided[place], place, classes.names),
            )
        )
    table = Table(
        (
            *areas.headings,
            pixels,
            "of these kept",
            "user's accuracy, %",
            "producer's accuracy, %",
            "kept ones confused with",
        ),
        tuple(rows),
        f"Of the {pixels} that are kept: user's accuracy is the share of a label that is right, "
        "producer's accuracy the share of a class that has its label; in brackets 95 % intervals.",
        colors=tuple(classes.colors),
        wordy=True,
    )
    if len(classes) > _LARGEST_MATRIX:
        return Section(PER_CLASS, tables=(table,))
    return Section(PER_CLASS, tables=(table, _matrix(matrix.values, classes)))


def shown_areas(areas: xr.Dataset, colors: Sequence[str] = ()) -> Table:
    """Return how much of the scene each class covers, kept and rejected, as a page shows it."""
    unit, short, digits = "pixels", "pixels", 0
    if "kept_hectares" in areas:
        unit, short, digits = "hectares", "ha", 1
    columns = (
        [f"{size:,.{digits}f}" for size in areas[f"{part}_{unit}"].values.tolist()]
        for part in ("kept", "rejected")
    )
    rows = zip(map(str, areas[CLASS_NAME].values), *columns, strict=True)
    headings = ("class", f"{short} of the scene kept", "rejected")
    return Table(headings, tuple(rows), colors=tuple(colors))


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
        folded=True,
    )


def _confusions(counts: NDArray[np.integer], place: int, names: Sequence[str]) -> str:
    """Name what the kept pixels of a class are mistaken for, most often first."""
    wrong = counts.copy()
    wrong[place] = 0
    order = np.argsort(-wrong, kind="stable")[:_NAMED_CONFUSIONS]
    return ", ".join(f"{names[other]} ({wrong[other]:,})" for other in order if wrong[other])


def where(
    evaluation: Evaluation,
    drawn: figures.Pictures,
    *,
    name: str = "map",
    others: Sequence[Picture] = (),
) -> Section:
    """Return the maps of an evaluation, and `others`, with one legend for all class maps."""
    maps, classes = evaluation.maps, evaluation.classes
    label, rejected = maps["label"], evaluation.rejected
    answers, shown = evaluation.answers, evaluation.answer_classes
    decided = ClassMapDisplay.from_labels(answers, classes=shown).paint()
    reference = ClassMapDisplay.from_labels(maps["reference"], classes=classes).paint()
    outcome = OutcomeMapDisplay.from_maps(label, maps["reference"], rejected).paint()
    caption = f"It rejects {percent(1 - evaluation.kept_share)} of the scene."
    pictures = [
        drawn.map(f"rejected_{name}", decided.pixels, "The map", caption, rejected=rejected),
        drawn.map(
            f"outcome_{name}",
            outcome.pixels,
            "Right and wrong",
            f"The {evaluation.measured_on}, with their shares. Only what is accurate and kept, or "
            "misclassified and rejected, is as it should be.",
            legend=[Swatch(c.color, c.name) for c in outcome.categories if c.code],
        ),
        drawn.map("reference", reference.pixels, "Reference", f"The {evaluation.measured_on}."),
    ]
    if "confidence" in maps:
        pixels, ramp = figures.paint_confidence(maps["confidence"])
        what = str(maps["confidence"].attrs.get("long_name", "confidence"))
        pictures.append(
            drawn.map(
                f"confidence_{name}",
                pixels,
                "Confidence",
                f"What decides: {what}, colored by rank. Dark pixels are rejected first.",
                legend=ramp,
            )
        )
    pictures += others
    entries = dict.fromkeys(
        Swatch(c.color, c.name) for painted in (decided, reference) for c in painted.categories
    )
    gaps = [NO_DATA] if decided.has_gaps or reference.has_gaps else []
    legend = (*entries, Swatch("", "rejected"), *gaps)
    return Section(WHERE, legend=legend, pictures=tuple(pictures))


def how_much(
    evaluation: Evaluation,
    curves: figures.Curves,
    drawn: figures.Pictures,
    *,
    isolated: Sequence[str] = (),
    with_goals: bool = True,
    more: Sequence[Table] = (),
) -> Section:
    """Return what more or less rejection is worth: the accuracy over r, and what it costs.

    The first of `curves` is that of the evaluation. `with_goals` is for pages whose answer does not
    have the table of :func:`goal_table` already; `more` tables stand below it.
    """
    point, nothing = evaluation.shown.point, evaluation.points[0].point
    pixels = evaluation.measured_on
    even = break_even_cost(
        point.nonrejected_accuracy,
        point.rejected_fraction,
        nothing.nonrejected_accuracy,
        nothing.rejected_fraction,
    )
    wrong = share(point.misclassified_rejected, point.rejected)
    text = (
        "Nothing is rejected."
        if np.isnan(even)
        else f"Of the rejected {pixels} {percent(wrong)} are wrong. So this "
        f"map is better than one without rejection as long as a rejected pixel costs less "
        f"than {even:.2f} of a wrong one."
    )
    if not curves:
        return Section(HOW_MUCH, text)
    curves = _with_intervals(evaluation, curves)
    picture = drawn.curves(
        "accuracy",
        figures.accuracy(curves, {"this map": point}, pixels, isolated=isolated),
        "Accuracy of what is kept",
        "Band: 95 % intervals.",
    )
    goals = goal_table(evaluation) if with_goals else None
    tables = (*(() if goals is None else (goals,)), *more)
    return Section(HOW_MUCH, text, tables, pictures=(picture,), beside=True)


def measures_section(
    evaluation: Evaluation,
    curves: figures.Curves,
    drawn: figures.Pictures,
    *,
    isolated: Sequence[str] = (),
) -> Section:
    """Return the measures of the paper over the rejected fraction, for the researcher."""
    points = {"this map": evaluation.shown.point}
    points |= {p.name: p.point for p in evaluation.points[1:] if p is not evaluation.shown}
    pixels = evaluation.measured_on
    pictures = (
        drawn.curves(
            "measures",
            figures.measures(_with_intervals(evaluation, curves), isolated=isolated, points=points),
            "The three measures",
            "Accuracy of what is kept, share of right decisions, and how much likelier errors are "
            f"among the rejected, over the rejected fraction of the {pixels}.",
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
    tables = (point_table(evaluation),)
    return Section("Measures of rejection", tables=tables, pictures=pictures, wide=True)


def _with_intervals(evaluation: Evaluation, curves: figures.Curves) -> dict[str, xr.Dataset]:
    """Return the curves, the first of them with its intervals."""
    (first, *_) = curves
    return dict(curves) | ({} if evaluation.curve is None else {first: evaluation.curve})


def evaluation_page(evaluation: Evaluation, folder: Path) -> None:
    """Write the page that a run has, too, as far as maps and a reference tell it."""
    drawn = figures.Pictures(folder / "figures", evaluation.grid)
    curves = {} if evaluation.curve is None else {"": evaluation.curve}
    points = Section(HOW_GOOD, tables=(point_table(evaluation),))
    write_page(
        folder / "report.html",
        title="Evaluation of a map with rejection",
        headline=headline(
            evaluation,
            place=about_scene(evaluation.maps["label"]),
            files=("points.csv", "classes.csv", "areas.csv", "confusion.csv"),
        ),
        sections=(
            where(evaluation, drawn),
            per_class(evaluation),
            how_much(evaluation, curves, drawn),
        ),
        details=(measures_section(evaluation, curves, drawn) if curves else points,),
    )
