"""How good the maps of a walk are, on the test pixels that chose nothing, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from hsreject.class_tree import ClassTree
from hsreject.handover.confidence_classes import confidence_classes
from hsreject.measures.choosing import ACCURACY, FRACTION, MAX_ERROR, choose_point
from hsreject.measures.summary import accuracy_at, aurc
from hsreject.measures.uncertainty import square_blocks
from hsreject.pipeline.plan import PLACE_ALONE
from hsreject.pipeline.stages import System, Walk
from hsreject.promise.run_promise import promise_figures
from hsreject.rejection.hierarchical import coarsest_answers, credited_label
from hsreject.rejection.rejector import UNKNOWN
from hsreject.report.evaluation import Evaluation, evaluate
from hsreject.report.findings import errors_caught, percent, statement
from hsreject.report.levels_section import level_shares
from hsreject.report.tables import label_areas
from hsreject.sampling.draws import MEANING
from hsreject.sampling.polygons import ADVICE, is_digitised, polygon_numbers
from hsreject.schema import (
    AT_FRACTION,
    CATEGORY,
    LABEL_WITH_REJECTION,
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    POLYGON,
    SYSTEM,
    class_table,
    nodata_label,
)

QUOTED_FRACTIONS = (0.1, 0.2)
"""Shares of the test pixels at which a table says how accurate the others are."""

_ENDS = ("", "_lower", "_upper")  # of a name: a number and its interval


@dataclass(frozen=True)
class Judgement:
    """A walk, and how good its maps are.

    Where there is no test pixel there is no evaluation, and the accuracy comes from polygons that
    were left out.
    """

    walk: Walk
    evaluation: Evaluation | None  # of the delivered map
    tables: Mapping[str, xr.Dataset]  # summary and judged (system,), promise

    @classmethod
    def of(cls, walk: Walk) -> Judgement:
        """Evaluate every map of a walk once."""
        tables: dict[str, xr.Dataset] = {}
        if walk.left_out is not None:
            return cls(walk, None, tables)
        name, test = walk.plan.delivered, walk.split["test"]
        calibration = walk.split.get("calibration")
        evaluations = {
            other: _evaluate(system, walk.split) for other, system in walk.systems.items()
        }
        rows = [
            _judged_row(system.delivery.rejected_share, evaluations[other])
            | _gain(walk.systems[name], system, evaluations[name])
            | {"goal_reached": system.delivery.reached}
            for other, system in walk.systems.items()
        ]
        tables["judged"] = _by_system(list(walk.systems), map(xr.Dataset, rows))
        tables["summary"] = _by_system(
            list(walk.systems), (_curve_row(system) for system in walk.systems.values())
        )
        delivery = walk.systems[name].delivery
        if delivery.certificate is not None and calibration is not None:
            delivered = delivery.maps[LABEL_WITH_REJECTION]
            tables["promise"] = promise_figures(delivery.certificate, delivered, test, calibration)
        return cls(walk, evaluations[name], tables)

    @cached_property
    def delivered(self) -> System:
        """The system whose map is delivered."""
        return self.walk.systems[self.walk.plan.delivered]

    @property
    def areas(self) -> xr.Dataset:
        """How much of the scene each label of the delivered map covers, kept and rejected."""
        maps = self.delivered.delivery.maps
        return label_areas(maps["label"], maps["rejected"], class_table(maps["label"]))

    @cached_property
    def confidence_classes(self) -> xr.DataArray | None:
        """Thirds of the delivered map by confidence; None where no confidence makes the map."""
        system = self.delivered
        return confidence_classes(system.delivery.maps) if system.has_threshold else None

    @property
    def statement(self) -> str:
        """How good the delivered map is, in a few sentences."""
        if self.evaluation is not None:
            return " ".join(filter(None, (statement(self.evaluation), self._levels())))
        kept_share = percent(1 - self.delivered.delivery.rejected_share)
        return f"{self.walk.left_out} The map keeps {kept_share} of the scene."

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss."""
        advice = str(self.walk.split["train"].attrs.get(ADVICE, ""))
        return tuple(filter(None, (self._judge()[0], self._out_of_reach(), advice)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the numbers come from: the split, the goal, and which half of the test pixels."""
        meaning = str(self.walk.split["train"].attrs.get(MEANING, ""))
        of_map = (self._about_goal(), self._about_unknown())
        others = (self._judge()[1], self._no_promise(), self.choice)
        return tuple(filter(None, (*of_map, meaning, *others)))

    @property
    def choice(self) -> str:
        """Which weight of the context was chosen, in a sentence; empty where nothing was."""
        if self.walk.tuned is None:
            return ""
        weight = float(self.walk.tuned.data["weight"][0])
        meaning = "" if weight else " A weight of 0 is no context: rejection is pixelwise then."
        return f"Chosen by cross-validation: context.weight = {weight:g}.{meaning}"

    def _judge(self) -> tuple[str, str]:
        """Return what a comparison with a map of coordinates alone shows: a warning, or a note.

        Beside training pixels a map must be shown to be better, because places alone do well there.
        Away from them a place says little, and few polygons seldom prove a gain: that this map is
        better, but not significantly, is only noted.
        """
        if self.evaluation is None or PLACE_ALONE not in self.walk.systems:
            return "", ""
        row = self.tables["judged"].sel({SYSTEM: PLACE_ALONE})
        gain, lower, upper = (float(row[f"gain{end}"]) for end in _ENDS)
        if (gain if np.isnan(lower) else lower) > 0:
            return "", ""
        theirs = percent(float(row["overall_accuracy"]))
        ours = percent(self.evaluation.points[0].point.nonrejected_accuracy)
        words = (
            f"A map of coordinates alone does as well: {theirs} of the same test pixels are right "
            f"with nothing rejected, against {ours} here. "
        )
        if gain > 0:
            words = (
                "It is not shown that this map knows more than where a pixel lies: a map of "
                f"coordinates alone has {theirs} of the same test pixels right, against {ours} "
                f"here (difference {100 * gain:.1f}, 95 % interval {100 * lower:.1f} to "
                f"{100 * upper:.1f}). "
            )
        if str(self.walk.split["train"].attrs.get("sampling", "")).startswith(_APART):
            words += "Labels in more places would tell."
            return ("", words) if gain > 0 else (words, "")
        words += (
            "These test pixels lie beside the training pixels, so their accuracy says little of "
            'other places. The way out: [sampling] name = "polygons" or "blocks" keeps them apart, '
            "or a random sample of the map is labelled (hsreject sample)."
        )
        return words, ""

    def _about_goal(self) -> str:
        """Say what was asked for, and which pixels chose."""
        goal, point = self.walk.plan.goal, self.delivered.delivery.calibration_point
        if point is None:
            if goal.kind != FRACTION:
                return ""
            beside = " beside what is unknown" if self.delivered.delivery.unknown_share else ""
            return (
                f"The goal: {percent(goal.value)} of the scene is rejected{beside}. No "
                "test pixel has chosen anything."
            )
        if self.evaluation is None:
            where = "polygons that were left out whole, and no other ones are left to judge it"
        else:
            polygons = is_digitised(self.walk.split["test"])
            half = "half of the test polygons" if polygons else "a random half of the test pixels"
            where = (
                f"{half} ({point.n:,} pixels, of which it keeps "
                f"{percent(1 - point.rejected_fraction)}, and "
                f"{percent(point.nonrejected_accuracy)} of these are right)"
            )
            where += (
                f"; every other number is of the other half ({self.evaluation.shown.point.n:,})"
            )
        wish = _WISHES[goal.kind].format(percent(goal.value, 0), goal.value)
        return f"The goal: {wish}. How much is rejected was chosen on {where}."

    def _about_unknown(self) -> str:
        """Say how much is rejected because it resembles no training pixel."""
        delivery = self.delivered.delivery
        if not delivery.unknown_share:
            return ""
        return (
            f"{percent(delivery.unknown_share)} of the scene resembles no training pixel: "
            "it counts as unknown, and is rejected whatever the goal."
        )

    def _levels(self) -> str:
        """Say how much is a class and how much a group, where the map may answer coarser."""
        answer = self.delivered.delivery.maps[LABEL_WITH_REJECTION]
        shares = level_shares(answer, judged_pixels(self.walk.split))
        if shares is None:
            return ""
        of_all = shares["share"].isel({CATEGORY: -1})
        parts = [
            f"{percent(float(part))} as {name}"
            for name, part in zip(of_all["level_name"].values[:-1], of_all.values, strict=False)
        ]
        return (
            f"Kept are {', '.join(parts)} of the test pixels: a group counts as right where the "
            "true class lies below it, and a rejected pixel by its coarsest group."
        )

    def _out_of_reach(self) -> str:
        """Say so where the goal is out of reach: the most that there is, and what it costs."""
        delivery, goal = self.delivered.delivery, self.walk.plan.goal
        point = delivery.calibration_point
        if delivery.reached:
            return ""
        if point is None:
            wish = _WISHES[goal.kind].format(percent(goal.value, 0), goal.value)
            return (
                f"The goal ({wish}) cannot be aimed at, because accuracy cannot be estimated from "
                "these labels. A tenth of the scene is rejected instead, beside what is unknown."
            )
        if not point.kept:
            return (
                "The goal is out of reach: all pixels that could choose a rejection are unknown, "
                "which means that they resemble no training pixel. Label more places."
            )
        most = (
            f"{percent(point.nonrejected_accuracy)} on the pixels that chose, "
            f"keeping {percent(1 - point.rejected_fraction)} of them and "
            f"{percent(1 - delivery.rejected_share)} of the scene"
        )
        if goal.kind == MAX_ERROR:
            certificate = (
                "" if delivery.certificate is None else f"{delivery.certificate.statement} "
            )
            return f"{certificate}Nothing is promised of this map; it reaches {most}."
        return f"An accuracy of {percent(goal.value, 0)} is out of reach: the most is {most}."

    def _no_promise(self) -> str:
        """Return the commands that get a promise where test pixels cannot give one."""
        test = self.walk.split["test"]
        if self.evaluation is not None and not is_digitised(test):
            return ""
        name = self.walk.plan.delivered
        label, train = f"maps/label_{name}.tif", "maps/train.tif"
        coarser = self.walk.plan.rejectors[name].answers_coarser
        confidence = LEVEL_CONFIDENCE if coarser else "confidence"
        return (
            "Pixels of polygons are not a random sample of the map, so nothing is promised. What "
            "gets a promise, in the folder of these results: "
            f"hsreject sample {label} --n 400 --exclude {train} --out sample.gpkg, "
            f"then, with the points labelled, hsreject certify --labels {label} --confidence "
            f"maps/{confidence}_{name}.tif --sample sample.gpkg --exclude {train} --out promise"
        )


_APART = ("polygons", "blocks")  # samplings that keep training and test pixels apart
_WISHES = {
    ACCURACY: "{} of the kept are right",
    MAX_ERROR: "at most {} of the kept are wrong",
    "rejection_cost": "what is cheapest when a rejection costs {1:g} of an error",
    FRACTION: "{} of the scene is rejected",
}


def judged_pixels(split: xr.Dataset) -> xr.DataArray:
    """Return the labels of the test pixels that have chosen nothing, 0 elsewhere."""
    test = split["test"].drop_vars(POLYGON, errors="ignore")
    if "calibration" not in split:
        return test
    chose = split["calibration"].values != NO_REFERENCE
    return test.copy(data=np.where(chose, test.dtype.type(NO_REFERENCE), test.values))


def _evaluate(system: System, split: xr.Dataset) -> Evaluation:
    """Return the evaluation of a system's map on the test pixels that have chosen nothing."""
    maps, test = system.delivery.maps, split["test"]
    evaluation = evaluate(
        judged_pixels(split),
        credited_label(maps, test),
        maps["confidence"] if system.has_threshold else None,
        rejected=maps["rejected"],
        groups=polygon_numbers(test) if is_digitised(test) else None,
        measured_on="test pixels",
    )
    more = {UNKNOWN: maps[UNKNOWN].variable} if UNKNOWN in maps else {}
    answer = maps[LABEL_WITH_REJECTION]
    groups = ClassTree.from_attrs(answer.attrs)
    if groups is not None:  # measures have the label that was credited, maps and areas the answer
        coarsest = coarsest_answers(maps["label"], groups)
        more["answer"] = answer.where(~maps["rejected"], coarsest).variable
    return replace(evaluation, maps=evaluation.maps.assign(more))


def _judged_row(rejected_share: float, evaluation: Evaluation) -> dict[str, float]:
    """Return what is measured on a map as delivered, with 95 % intervals."""
    nothing, delivered = evaluation.points[0], evaluation.shown
    row = {
        "rejected_share_of_scene": rejected_share,
        "rejected_fraction": delivered.point.rejected_fraction,
        "errors_caught": errors_caught(delivered.point),
    }
    for name, named in (("overall", nothing), ("nonrejected", delivered)):
        ends = (named.point.nonrejected_accuracy, *evaluation.interval(named))
        row |= {f"{name}_accuracy{e}": v for e, v in zip(_ENDS, ends, strict=True)}
    return row


def _gain(one: System, other: System, evaluation: Evaluation) -> dict[str, float]:
    r"""Return how much more accurate one map is on the same pixels, nothing rejected.

    Blocks or polygons b of :math:`m_b` pixels, in which the one map is right :math:`d_b` times more
    often, give :math:`D = \sum_b d_b / n` with the variance of a cluster sample,
    :math:`\frac{B}{B - 1} \sum_b (d_b - D m_b)^2 / n^2`, and Student's t with B - 1 degrees.
    """
    first, second = (system.delivery.maps["label"].values for system in (one, other))
    reference = evaluation.maps["reference"].values
    has_labels = first != nodata_label(first.dtype)
    has_labels &= second != nodata_label(second.dtype)
    rows, columns = np.nonzero((reference != NO_REFERENCE) & has_labels)
    truth = reference[rows, columns]
    gain = (first[rows, columns] == truth) * 1.0 - (second[rows, columns] == truth)
    if evaluation.block_size is None:
        block = evaluation.maps["group"].values[rows, columns]
    else:
        block = square_blocks(rows, columns, evaluation.block_size)
    place = np.unique(block, return_inverse=True)[1]
    n, n_blocks = gain.size, int(place.max()) + 1
    mean, half = gain.mean(), np.nan
    if n_blocks > 1:
        residual = np.bincount(place, weights=gain) - mean * np.bincount(place)
        error = np.sqrt(n_blocks / (n_blocks - 1) * (residual**2).sum()) / n
        half = stdtrit(n_blocks - 1, 0.975) * error
    return {"gain": mean, "gain_lower": mean - half, "gain_upper": mean + half}


def _curve_row(system: System) -> xr.Dataset:
    """Return the quoted figures of a curve, which one point alone does not have."""
    curve = system.points
    row = xr.Dataset(
        {
            "overall_accuracy": float(curve["overall_accuracy"][0]),  # with nothing rejected
            "accuracy_at": (AT_FRACTION, np.full(len(QUOTED_FRACTIONS), np.nan)),
            "largest_quality": np.nan,
            "fraction_of_largest_quality": np.nan,
            "aurc": np.nan,
            "calibration_error": system.calibration_error,
        },
        coords={AT_FRACTION: list(QUOTED_FRACTIONS)},
    )
    if curve.sizes[OPERATING_POINT] == 1:
        return row
    best = choose_point(curve)
    fractions = curve["rejected_fraction"].values
    whole = fractions.min() == 0 and fractions.max() == 1
    return row.assign(
        accuracy_at=(AT_FRACTION, accuracy_at(curve, QUOTED_FRACTIONS).values),
        largest_quality=best.classification_quality,
        fraction_of_largest_quality=best.rejected_fraction,
        aurc=aurc(curve) if whole else np.nan,
    )


def _by_system(names: list[str], rows: Iterable[xr.Dataset]) -> xr.Dataset:
    table: xr.Dataset = xr.concat(list(rows), dim=xr.Variable(SYSTEM, names))
    return table
