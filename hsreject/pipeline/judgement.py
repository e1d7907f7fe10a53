"""How good the maps of a run are, on the test pixels that chose nothing, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from hsreject.certification.run_promise import promise_figures, promise_words
from hsreject.evaluation.confidence_classes import confidence_classes
from hsreject.evaluation.evaluation import Evaluation, evaluate
from hsreject.evaluation.tables import LevelShares, confidence_table, label_areas, level_shares
from hsreject.measures.point import OperatingPoint, share
from hsreject.measures.summary import accuracy_at, aurc
from hsreject.measures.uncertainty import square_blocks
from hsreject.pipeline.config import config_text
from hsreject.pipeline.plan import LOCATION_ONLY
from hsreject.pipeline.stages import Outcome, System
from hsreject.rejection.ranking import UNKNOWN, Ranking, credited_label, node_codes
from hsreject.report.findings import statement
from hsreject.report.page import FILTERS
from hsreject.schema import (
    AT_FRACTION,
    LABEL_WITH_REJECTION,
    NO_REFERENCE,
    POLYGON,
    SYSTEM,
    class_table,
    nodata_label,
)
from hsreject.schema.class_tree import ClassTree
from hsreject.splits.draws import MEANING
from hsreject.splits.polygons import ADVICE, is_digitised, polygon_numbers
from hsreject.templates import percent, sentences

sentence = sentences("hsreject.pipeline", FILTERS)
QUOTED_FRACTIONS = (0.1, 0.2)  # rejected, at which a table says how accurate the others are
_ENDS = ("", "_lower", "_upper")  # of a name: a number and its interval


@dataclass(frozen=True)
class Judgement:
    """What a run has computed, and how good its maps are.

    Where there is no test pixel there is no evaluation, and the accuracy comes from polygons that
    were left out.
    """

    outcome: Outcome
    evaluation: Evaluation | None  # of the delivered map
    tables: Mapping[str, xr.Dataset]  # summary and judged (system,), promise

    @classmethod
    def of(cls, outcome: Outcome) -> Judgement:
        """Evaluate every map of a run once."""
        tables: dict[str, xr.Dataset] = {}
        if outcome.left_out is not None:
            return cls(outcome, None, tables)
        name, test = outcome.plan.delivered, outcome.split["test"]
        calibration = outcome.split.get("calibration")
        evaluations = {
            other: _evaluate(system, outcome.split) for other, system in outcome.systems.items()
        }
        rows = [
            _judged_row(system.delivery.rejected_share, evaluations[other])
            | _gain(outcome.systems[name], system, evaluations[name])
            | {"goal_reached": system.delivery.reached}
            for other, system in outcome.systems.items()
        ]
        along = xr.Variable(SYSTEM, list(outcome.systems))
        tables["judged"] = xr.concat(map(xr.Dataset, rows), dim=along)
        tables["summary"] = xr.concat(map(_curve_row, outcome.systems.values()), dim=along)
        delivery = outcome.systems[name].delivery
        if delivery.certificate is not None and calibration is not None:
            delivered = delivery.maps[LABEL_WITH_REJECTION]
            tables["promise"] = promise_figures(delivery.certificate, delivered, test, calibration)
        return cls(outcome, evaluations[name], tables)

    @cached_property
    def delivered(self) -> System:
        """The system whose map is delivered."""
        return self.outcome.systems[self.outcome.plan.delivered]

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

    @cached_property
    def levels(self) -> LevelShares | None:
        """How much is known at which level, where the map may answer coarser."""
        answer = self.delivered.delivery.maps[LABEL_WITH_REJECTION]
        return level_shares(answer, judged_pixels(self.outcome.split))

    @cached_property
    def digitised(self) -> bool:
        """Whether test pixels lie in polygons, and are not a random sample of anything."""
        return is_digitised(self.outcome.split["test"])

    @cached_property
    def judge(self) -> PlaceAlone | None:
        """What a map that knows the place alone says of this one; None where it is worse."""
        if self.evaluation is None or LOCATION_ONLY not in self.outcome.systems:
            return None
        row = self.tables["judged"].sel({SYSTEM: LOCATION_ONLY})
        gain, lower, upper = (float(row[f"gain{end}"]) for end in _ENDS)
        if (gain if np.isnan(lower) else lower) > 0:
            return None
        apart = str(self.outcome.split["train"].attrs.get("sampling", "")).startswith(_APART)
        ours = self.evaluation.points[0].point.nonrejected_accuracy
        return PlaceAlone(float(row["overall_accuracy"]), ours, gain, lower, upper, apart)

    @property
    def statement(self) -> str:
        """How good the delivered map is, in a few sentences."""
        if self.evaluation is not None:
            return f"{statement(self.evaluation)} {sentence('levels', run=self)}".strip()
        kept_share = percent(1 - self.delivered.delivery.rejected_share)
        return f"{self.outcome.left_out} The map keeps {kept_share} of the scene."

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss."""
        judge = sentence("coordinates", run=self) if self.judge and self.judge.warns else ""
        advice = str(self.outcome.split["train"].attrs.get(ADVICE, ""))
        return tuple(filter(None, (judge, sentence("out_of_reach", run=self), advice)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the numbers come from: the split, the goal, and which half of the test pixels."""
        judge = sentence("coordinates", run=self) if self.judge and not self.judge.warns else ""
        meaning = str(self.outcome.split["train"].attrs.get(MEANING, ""))
        of_map = (sentence("about_goal", run=self), sentence("about_unknown", run=self), meaning)
        return tuple(filter(None, (*of_map, judge, sentence("no_promise", run=self), self.choice)))

    @cached_property
    def confidence_table(self) -> xr.Dataset | None:
        """How large and how accurate each third by confidence is; None where there are none."""
        level = self.confidence_classes
        return None if level is None else confidence_table(level, self.evaluation)

    @cached_property
    def promise(self) -> Mapping[str, str]:
        """What was promised of the delivered map, in words; empty where nothing was asked for."""
        certificate = self.delivered.delivery.certificate
        return {} if certificate is None else promise_words(certificate, self.tables["promise"])

    @property
    def configuration(self) -> str:
        """The configuration as TOML, and which weight of the context was chosen."""
        choice = f"# {self.choice}\n" if self.choice else ""
        return choice + config_text(self.outcome.document)

    @property
    def choice(self) -> str:
        """Which weight of the context was chosen, in a sentence; empty where nothing was."""
        return sentence("weight", run=self)


class PlaceAlone(NamedTuple):
    """A map of coordinates alone that is as good as the delivered one, or not shown to be worse."""

    accuracy: float  # with nothing rejected
    our_accuracy: float
    gain: float  # how much more accurate the delivered map is, with its interval
    gain_lower: float
    gain_upper: float
    apart: bool  # whether test pixels are kept away from the training pixels

    @property
    def warns(self) -> bool:
        """Whether that is a warning, or only to be noted.

        Beside training pixels a map must be shown to be better, because places alone do well there.
        Apart from them a place says little, and few polygons seldom prove a gain.
        """
        return not (self.apart and self.gain > 0)


_APART = ("polygons", "blocks")  # samplings that keep training and test pixels apart


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
    label: Any = credited_label(maps, test)
    if system.has_threshold:
        label = Ranking(label, maps["confidence"], maps.get(UNKNOWN))
    evaluation = evaluate(
        judged_pixels(split),
        label,
        rejected=maps["rejected"],
        groups=polygon_numbers(test) if is_digitised(test) else None,
    )
    answer = maps[LABEL_WITH_REJECTION]
    groups = ClassTree.from_attrs(answer.attrs)
    if groups is not None:  # measures have the label that was credited, maps and areas the answer
        coarsest = node_codes(maps["label"].values, groups)
        more = {"answer": answer.where(~maps["rejected"], coarsest).variable}
        evaluation = replace(evaluation, maps=evaluation.maps.assign(more))
    return replace(evaluation, measured_on="test pixels")


def _judged_row(rejected_share: float, evaluation: Evaluation) -> dict[str, float]:
    """Return what is measured on a map as delivered, with 95 % intervals."""
    point = evaluation.shown.point
    row = {
        "rejected_share_of_scene": rejected_share,
        "rejected_fraction": point.rejected_fraction,
        "errors_caught": float(share(point.misclassified_rejected, point.misclassified)),
    }
    for name, named in (("overall", evaluation.points[0]), ("nonrejected", evaluation.shown)):
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
    quality = curve["classification_quality"].values
    best = OperatingPoint.from_curve(curve, int(quality.argmax())) if quality.size > 1 else None
    is_whole = set(curve["rejected_fraction"].values) >= {0, 1}
    at = accuracy_at(curve, QUOTED_FRACTIONS).values if best else [np.nan] * len(QUOTED_FRACTIONS)
    return xr.Dataset(
        {
            "overall_accuracy": float(curve["overall_accuracy"][0]),  # with nothing rejected
            "accuracy_at": (AT_FRACTION, at),
            "largest_quality": best.classification_quality if best else np.nan,
            "fraction_of_largest_quality": best.rejected_fraction if best else np.nan,
            "aurc": aurc(curve) if is_whole else np.nan,
            "calibration_error": system.calibration_error,
        },
        coords={AT_FRACTION: list(QUOTED_FRACTIONS)},
    )
