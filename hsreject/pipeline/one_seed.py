"""One run with one seed: from a split to maps, operating points and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from hsreject.config.document import with_settings
from hsreject.errors import InputError
from hsreject.measures.curve import curve_of_points
from hsreject.measures.point import operating_point
from hsreject.pipeline.plan import CONTEXT_ROW, Plan, make_plan
from hsreject.pipeline.stages import SECONDS, Stages
from hsreject.pipeline.summary import summarise
from hsreject.pipeline.tuning import best_settings
from hsreject.rejection import PixelwiseRejector, Rejector
from hsreject.schema import NO_REFERENCE, reference_pixels

REJECTOR = "rejector"


@dataclass(frozen=True)
class SeedResult:
    """What one seed gives.

    Attributes
    ----------
    maps : Dataset
        Everything on the grid of the scene; maps of rejectors along `rejector`.
    curves : dict of str to Dataset
        Operating points on the test pixels, by system.
    summary : Dataset
        Figures by system.
    tried : Dataset or None
        The candidates of the tuning, best first.
    """

    maps: xr.Dataset
    curves: dict[str, xr.Dataset]
    summary: xr.Dataset
    tried: xr.Dataset | None


def run_seed(
    document: Mapping[str, Any],
    labels: xr.DataArray,
    stages: Stages,
    *,
    seed: int,
    with_maps: bool,
) -> SeedResult:
    """Run all stages of a configuration with one seed; reject maps are made only when asked."""
    plan = make_plan(document)
    train, test = plan.sampling.split(labels, seed=seed)
    if not (test != NO_REFERENCE).any():
        raise InputError(
            "The sampling leaves no test pixel, so nothing can be evaluated. "
            "Draw fewer training pixels."
        )
    tried = None
    if plan.tuning is not None:
        tried = stages.tuning(document, plan.tuning, train, seed=seed)
        plan = make_plan(with_settings(document, best_settings(tried)))
    evidence = _evidence(plan, stages, train)
    systems = _Systems(stages, test)
    systems.add_rejectors(plan, evidence)
    for name, model in plan.baselines.items():
        baseline = stages.probability(model, train, stage=f"baseline-{name}")
        systems.add(name, PixelwiseRejector(), baseline, before=baseline.attrs[SECONDS])
    maps = evidence.drop_vars("image", errors="ignore").assign(
        reference=labels, train=train, test=test
    )
    if with_maps:
        maps = maps.assign(_reject_maps(plan, stages, evidence, systems.curves))
    return SeedResult(maps, systems.curves, summarise(systems.curves, systems.seconds), tried)


def _evidence(plan: Plan, stages: Stages, train: xr.DataArray) -> xr.Dataset:
    """Return what rejectors look at; the attributes tell the seconds of classifier and context."""
    evidence = stages.probability(plan.model, train, stage="classifier")
    seconds = {"classifier": evidence.attrs[SECONDS], "context": 0.0}
    if plan.context is not None:
        field = stages.hidden_field(plan.context, evidence["probability"])
        seconds["context"] = field.attrs[SECONDS]
        evidence = evidence.assign(
            hidden_field=field["hidden_field"], context_label=field["label"], image=stages.cube
        )
    return evidence.drop_attrs(deep=False).assign_attrs(seconds)


class _Systems:
    """The rows of the table: operating points and seconds of each system."""

    def __init__(self, stages: Stages, test: xr.DataArray) -> None:
        self._stages, self._test = stages, test
        self.curves: dict[str, xr.Dataset] = {}
        self.seconds: dict[str, float] = {}

    def add(self, name: str, rejector: Rejector, evidence: xr.Dataset, *, before: float) -> None:
        """Add a rejector on top of stages that took `before` seconds."""
        curve = self._stages.rejection(name, rejector, evidence, self._test)
        self.curves[name] = curve
        self.seconds[name] = before + curve.attrs[SECONDS]

    def add_rejectors(self, plan: Plan, evidence: xr.Dataset) -> None:
        """Add the rejectors of a plan, and before the first one with context, context alone."""
        classifier, context = evidence.attrs["classifier"], evidence.attrs["context"]
        for name, rejector in plan.rejectors.items():
            uses_context = hasattr(rejector, "context")
            if uses_context and CONTEXT_ROW not in self.curves and "context_label" in evidence:
                _, correct = reference_pixels(evidence["context_label"], self._test)
                point = operating_point(correct, np.zeros_like(correct))
                self.curves[CONTEXT_ROW] = curve_of_points([point])
                self.seconds[CONTEXT_ROW] = classifier + context
            self.add(name, rejector, evidence, before=classifier + context * uses_context)


def _reject_maps(
    plan: Plan, stages: Stages, evidence: xr.Dataset, curves: Mapping[str, xr.Dataset]
) -> dict[str, xr.DataArray]:
    rejected = [
        stages.maps(name, rejector, evidence, plan.fraction, curves[name])
        for name, rejector in plan.rejectors.items()
    ]
    along = xr.Variable(REJECTOR, list(plan.rejectors))
    joined = xr.concat(rejected, dim=along, combine_attrs="override")
    return {str(name): joined[name] for name in joined.data_vars}
