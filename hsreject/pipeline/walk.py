"""A walk through all stages with one seed: a plan, its maps, and what they are compared with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectWarning, InputError
from hsreject.measures.reliability import expected_calibration_error
from hsreject.pipeline.delivery import Delivery, calibration_half, deliver
from hsreject.pipeline.plan import CARRIED_ROW, PLACE_ALONE, Plan
from hsreject.pipeline.stages import Stage, Stages
from hsreject.pipeline.tuning import best_settings
from hsreject.rejection.goal import FRACTION, Goal
from hsreject.sampling.polygons import (
    LEFT_OUT,
    LeftOutAccuracy,
    is_digitised,
    left_out_accuracy,
    polygon_numbers,
)
from hsreject.schema import CATEGORY, OPERATING_POINT, reference_pixels


@dataclass(frozen=True)
class System:
    """A row of the tables: what a rejector offers, and the map that is taken of it."""

    swept: xr.Dataset  # operating points on the test pixels, with their maps
    delivery: Delivery
    seconds: float  # of all stages that it needs
    calibration_error: float  # of the probability of its labels; NaN where it has none

    @property
    def has_threshold(self) -> bool:
        """Whether one threshold makes all its maps."""
        return OPERATING_POINT not in self.swept["label"].dims

    @property
    def points(self) -> xr.Dataset:
        """The operating points without their maps."""
        columns = [n for n, array in self.swept.items() if array.dims == (OPERATING_POINT,)]
        return self.swept[columns].drop_attrs(deep=False)


@dataclass(frozen=True)
class Walk:
    """What a plan comes to with one seed."""

    plan: Plan  # with its tuning settled
    split: xr.Dataset  # train, test and, where test pixels choose, calibration (y, x)
    tuned: Stage | None
    evidence: xr.Dataset  # all that is known of the pixels: probabilities, and the context if any
    systems: Mapping[str, System]  # of its rejectors, then of what it is compared with
    left_out: LeftOutAccuracy | None = None  # where all polygons are for training

    @classmethod
    def of(cls, plan: Plan, labels: xr.DataArray, stages: Stages, seed: int) -> Walk:
        """Walk from a split to the maps that the goal asks for, and to all baselines."""
        split = stages.split(plan, labels, seed)
        test = split.data["test"]
        if LEFT_OUT in test.attrs:
            return _walk_without_test(plan, stages, split)
        digitised = is_digitised(test)
        if digitised:
            plan = replace(plan, promise=None)  # its pixels are not a random sample of anything
        if plan.goal.needs_reference or plan.promise is not None:
            half = calibration_half(test, seed=seed, by_polygons=digitised)
            split = replace(split, data=split.data.assign(calibration=half))
        settled, tuned, pixelwise, evidence = _map(plan, stages, split)
        systems = {
            name: _system(settled, name, (pixelwise, evidence), stages, split)
            for name in settled.rejectors
        }
        for name, baseline in plan.baselines.items():
            whole = pixelwise if name == CARRIED_ROW else None
            try:
                other, _, *known = _map(baseline, stages, split, prefix=f"{name}-", whole=whole)
                alone = replace(other, rejectors={name: other.ranking})
                systems[name] = _system(alone, name, (known[0], known[1]), stages, split)
            except InputError as error:  # such as more components than the scene has bands
                if name != PLACE_ALONE:
                    warnings.warn(
                        f"The baseline '{name}' is left out, because it cannot be computed: "
                        f"{error}",
                        HsrejectWarning,
                        stacklevel=3,
                    )
        return cls(settled, split.data, tuned, evidence.data, systems)


def _map(
    plan: Plan, stages: Stages, split: Stage, *, prefix: str = "", whole: Stage | None = None
) -> tuple[Plan, Stage | None, Stage, Stage]:
    """Settle what a plan leaves to the training pixels, and map the scene without and with context.

    The model of a plan may be what can be carried of a `whole` one.
    """
    tuned = None
    if plan.tuning is not None and plan.tuning.of_model:
        tuned = stages.tune(plan, split, name=f"{prefix}choosing")
        plan = plan.changed(best_settings(tuned.data))
    novelty = any(rejector.needs_p_value for rejector in plan.rejectors.values())
    pixelwise = stages.classify(
        plan.model, split, name=f"{prefix}classifier", novelty=novelty, whole=whole
    )
    if plan.tuning is not None and tuned is None:  # on the model that is fitted already
        tuned = stages.tune(plan, split, name=f"{prefix}choosing", fitted=pixelwise.model)
        plan = plan.changed(best_settings(tuned.data))
    if plan.context is None:
        return plan, tuned, pixelwise, pixelwise
    return plan, tuned, pixelwise, stages.solve_context(plan.context, pixelwise, tuned, prefix)


def _system(
    plan: Plan, name: str, known: tuple[Stage, Stage], stages: Stages, split: Stage
) -> System:
    """Return what a rejector offers, and the map of it that the plan's goal asks for."""
    rejector = plan.rejectors[name]
    evidence = known[1] if rejector.needs_context else known[0]
    fraction = plan.goal.value if plan.goal.kind == FRACTION else None
    swept = stages.reject(name, rejector, evidence, split.data["test"], fraction=fraction)
    delivery = deliver(
        swept.data,
        plan.goal,
        test=split.data["test"],
        calibration=split.data.get("calibration"),
        promise=plan.promise if name == plan.delivered else None,
    )
    said = evidence.data.get("label_probability")
    if not rejector.needs_context:
        said = evidence.data["probability"].max(CATEGORY)
    error = np.nan
    if said is not None and rejector.has_threshold:  # else labels change with what is rejected
        used, correct = reference_pixels(swept.data["label"], split.data["test"])
        error = expected_calibration_error(correct, said.values[used])
    return System(swept.data, delivery, swept.total_seconds, error)


def _walk_without_test(plan: Plan, stages: Stages, split: Stage) -> Walk:
    """Walk where all polygons are for training: leaving them out in turn takes the place of a test.

    The delivered map alone is made. Where even leaving out says nothing, a tenth is rejected.
    """
    train = split.data["train"]
    plan, tuned, pixelwise, evidence = _map(replace(plan, promise=None), stages, split)
    plan = replace(plan, rejectors={plan.delivered: plan.ranking})
    name, rejector = plan.delivered, plan.ranking
    known = evidence if rejector.needs_context else pixelwise
    swept = stages.reject(name, rejector, known, train, fraction=None)
    held_out = stages.leave_out(plan, split)
    accuracy = left_out_accuracy(train, held_out.data["label"], polygon_numbers(train))
    estimable = not np.isnan(accuracy.accuracy) and not rejector.needs_p_value
    goal = plan.goal if estimable or not plan.goal.needs_reference else Goal(fraction=0.1)
    delivery = deliver(swept.data, goal, test=train, calibration=train, seen=held_out.data)
    delivery = replace(delivery, reached=delivery.reached and goal is plan.goal)
    system = System(swept.data, delivery, swept.total_seconds, np.nan)
    return Walk(plan, split.data, tuned, evidence.data, {name: system}, accuracy)
