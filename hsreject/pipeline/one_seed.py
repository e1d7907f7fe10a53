"""One run with one seed: from a split to maps, operating points and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from hsreject.config.document import with_settings
from hsreject.errors import InputError
from hsreject.measures.curve_table import curve_of_points
from hsreject.measures.point import operating_point
from hsreject.pipeline.plan import Plan, make_plan
from hsreject.pipeline.stages import SECONDS, Stages
from hsreject.pipeline.summary import summarise
from hsreject.pipeline.tuning import best_settings
from hsreject.rejection import PixelwiseRejector
from hsreject.rejection.reference import reference_pixels
from hsreject.schema import NO_REFERENCE

REJECTOR = "rejector"
CONTEXT_ROW = "SegSALSA, nothing rejected"


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
    document: Mapping[str, Any], labels: xr.DataArray, stages: Stages, *, seed: int
) -> SeedResult:
    """Run all stages of a configuration with one seed."""
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
    return _run_plan(plan, stages, labels, train, test, tried)


def _run_plan(
    plan: Plan,
    stages: Stages,
    labels: xr.DataArray,
    train: xr.DataArray,
    test: xr.DataArray,
    tried: xr.Dataset | None,
) -> SeedResult:
    evidence = stages.probability(plan.model, train, stage="classifier")
    spent = {"classifier": evidence.attrs[SECONDS]}
    maps = evidence.assign(reference=labels, train=train, test=test)
    curves: dict[str, xr.Dataset] = {}
    seconds: dict[str, float] = {}
    if plan.context is not None:
        field = stages.hidden_field(plan.context, evidence["probability"])
        evidence = evidence.assign(hidden_field=field["hidden_field"], image=stages.cube)
        maps = maps.assign(hidden_field=field["hidden_field"], context_label=field["label"])
        spent["context"] = field.attrs[SECONDS]
    rejected = []
    for name, rejector in plan.rejectors.items():
        curves[name] = stages.rejection(name, rejector, evidence, test)
        rejected.append(stages.maps(name, rejector, evidence, plan.fraction))
        stages_of = ("classifier", "context") if hasattr(rejector, "context") else ("classifier",)
        seconds[name] = sum(spent[s] for s in stages_of) + curves[name].attrs[SECONDS]
    if plan.context is not None:
        curves[CONTEXT_ROW] = _nothing_rejected(field["label"], test)
        seconds[CONTEXT_ROW] = sum(spent.values())
    for name, model in plan.baselines.items():
        field = stages.probability(model, train, stage=f"baseline-{name}")
        curves[name] = stages.rejection(name, PixelwiseRejector(), field, test)
        seconds[name] = field.attrs[SECONDS] + curves[name].attrs[SECONDS]
    return SeedResult(
        maps=maps.assign(_side_by_side(list(plan.rejectors), rejected)),
        curves=curves,
        summary=summarise(curves, seconds),
        tried=tried,
    )


def _side_by_side(names: list[str], rejected: list[xr.Dataset]) -> dict[str, xr.DataArray]:
    along = xr.Variable(REJECTOR, names)
    joined = xr.concat(rejected, dim=along, combine_attrs="override")
    return {str(name): joined[name] for name in joined.data_vars}


def _nothing_rejected(label: xr.DataArray, test: xr.DataArray) -> xr.Dataset:
    _, correct = reference_pixels(label, test)
    return curve_of_points([operating_point(correct, np.zeros_like(correct))])
