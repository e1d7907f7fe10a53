"""The stages of a run, and the walk through them.

Each stage takes the stage before, gives a Dataset, and is kept when finished.

The key of a stage is a hash of its own options, with the code of parts that users wrote, and of the
key of the stage before; the first is a token of the scene. So a key says all that a result depends
on, and every array is hashed once. A stage without a key is not kept, nor are those after it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr
from dask.base import tokenize
from sklearn.base import clone

from hsreject import __version__
from hsreject.classify.pool import at_temperature
from hsreject.classify.scene_model import SceneModel
from hsreject.confidence import label_map
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import FewPolygonsWarning, HsrejectWarning, InputError
from hsreject.files import recall
from hsreject.io.netcdf import open_dataset, write_dataset
from hsreject.keys import key_of
from hsreject.measures.choosing import FRACTION, Goal
from hsreject.measures.summary import expected_calibration_error
from hsreject.pipeline.delivery import Delivery, calibration_half, deliver
from hsreject.pipeline.plan import CARRIED_ROW, PLACE_ALONE, Plan
from hsreject.pipeline.tuning import settled, tune
from hsreject.progress import ProgressCallback
from hsreject.rejection import Novelty, Rejector
from hsreject.rejection.evidence import P_VALUE, TOKEN
from hsreject.sampling.polygons import (
    ADVICE,
    LEFT_OUT,
    NOT_ESTIMATED,
    LeftOutAccuracy,
    has_two_polygons,
    is_digitised,
    left_out_accuracy,
    polygon_folds,
    polygon_numbers,
)
from hsreject.schema import (
    CALIBRATED,
    CATEGORY,
    NO_REFERENCE,
    OPERATING_POINT,
    class_table,
    reference_pixels,
)

_N_FOLDS = 5
_SECONDS, _STAGE = "seconds", "stage"


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it gives, and what that depends on."""

    data: xr.Dataset
    key: str | None  # hash of everything that it depends on; None where that is not known
    model: Any = None  # of a classifier that was fitted just now, not read from a file

    def joined(self, other: Stage) -> Stage:
        """Return what both stages give."""
        data = self.data.assign(other.data.drop_attrs(deep=False))
        return replace(self, data=data, key=_key(self, other.key))


@dataclass(frozen=True)
class Stages:
    """The stages on one scene."""

    cube: xr.DataArray  # (band, y, x)
    key: str  # token of the scene and its labels
    folder: Path | None  # where finished stages are kept; None keeps none
    progress: ProgressCallback
    seconds: dict[str, float] = field(default_factory=dict)  # of each stage

    def split(self, plan: Plan, labels: xr.DataArray) -> Stage:
        """Return `train` and `test`, the labels of the pixels to learn from and to evaluate on."""
        train, test = plan.sampling(labels, seed=plan.seed)
        if not (test != NO_REFERENCE).any() and LEFT_OUT not in train.attrs:
            raise InputError(
                "The sampling leaves no test pixel, so nothing can be evaluated. "
                "Draw fewer training pixels."
            )
        data = xr.Dataset({"train": train, "test": test})
        return Stage(data, tokenize(__version__, self.key, data))

    def tune(self, plan: Plan, split: Stage, *, name: str, fitted: Any) -> Stage:
        """Return the weights of the context that were tried with their scores, best first."""
        contexts = [plan.with_weight(weight).context for weight in plan.weights]
        train = split.data["train"]
        work = partial(tune, plan, self.cube, train, fitted=fitted, progress=self.progress)
        return self._kept(name, _key(split, clone(plan.model), contexts), work)

    def classify(
        self, model: SceneModel, split: Stage, *, name: str, whole: Stage | None = None
    ) -> Stage:
        """Return the class `probability` of a model fitted to the training pixels.

        A model that weighs candidates of its own leaves what it tried, along `pool_candidate`.
        Where the model is what can be carried of a `whole` one that was fitted just now, it is not
        fitted again.
        """
        fitted = None if whole is None or whole.model is None else whole.model.carried()
        estimator = clone(model) if fitted is None else fitted

        def compute() -> xr.Dataset:
            if fitted is None:
                train = split.data["train"]
                probability = estimator.fit_predict_proba(self.cube, train, progress=self.progress)
            else:
                probability = estimator.predict_proba(self.cube)
            tried = getattr(estimator, "tried_", xr.Dataset())
            names = {str(name): f"pool_{name}" for name in (*tried.dims, *tried.variables)}
            return tried.rename(names).assign(probability=probability.compute())

        stage = self._kept(name, _key(split, clone(model)), compute)
        data = stage.data.assign(image=self.cube)
        if data["probability"].attrs.get(CALIBRATED):
            data["label_probability"] = data["probability"].max(CATEGORY).drop_attrs(deep=False)
        return replace(
            stage, data=data, model=estimator if hasattr(estimator, "classes_") else None
        )

    def novelty(self, split: Stage) -> Stage:
        """Return the `p_value` of every pixel, which the training pixels alone decide."""

        def compute() -> xr.Dataset:
            return Novelty().fit_p_value(self.cube, split.data["train"]).to_dataset()

        return self._kept("novelty", _key(split, Novelty()), compute)

    def solve_context(
        self, context: SegSALSA, before: Stage, tuned: Stage | None, prefix: str
    ) -> Stage:
        """Return what was known with the `hidden_field` of the context and its `context_label`.

        Where held-out maps of this context gave a temperature, `label_probability` is how
        probable that label is; the field itself only ranks.
        """
        temperature = None if tuned is None else float(tuned.data["temperature"][0])

        def compute() -> xr.Dataset:
            hidden = settled(
                context, before.data["probability"], image=self.cube, progress=self.progress
            )
            maps = {"hidden_field": hidden, "context_label": label_map(hidden)}
            if temperature is not None:
                honest = at_temperature(hidden.values, temperature, axis=0).max(axis=0)
                plain = hidden.isel({CATEGORY: 0}, drop=True).drop_attrs(deep=False)
                maps["label_probability"] = plain.copy(data=honest)
            return xr.Dataset(maps)

        stage = self._kept(f"{prefix}context", _key(before, context, temperature), compute)
        evidence = before.data.drop_vars("label_probability", errors="ignore")
        return replace(stage, data=evidence.assign(stage.data))

    def reject(
        self,
        name: str,
        rejector: Rejector,
        evidence: Stage,
        test: xr.DataArray,
        *,
        fraction: float | None,
    ) -> Stage:
        """Return the operating points of a rejector on the test pixels, with their maps."""
        maps = evidence.data.assign_attrs({} if evidence.key is None else {TOKEN: evidence.key})

        def compute() -> xr.Dataset:
            return self._keeping(rejector).sweep(
                maps, test, fraction=fraction, progress=self.progress
            )

        indifferent = rejector.indifferent_options
        options = {name: value for name, value in vars(rejector).items() if name not in indifferent}
        fraction = None if rejector.has_threshold else fraction  # every threshold is there
        key = _key(evidence, type(rejector), options, fraction)
        return self._kept(f"rejection-{name}", key, compute)

    def leave_out(self, plan: Plan, split: Stage) -> Stage:
        """Return the ranking (y, x) of training polygons, from maps that were made without them.

        Polygons are dealt into five folds whole, and the scene is mapped without each fold. The
        `label` is 0 where a pixel was never left out.
        """
        train, ranking = split.data["train"], plan.ranking

        def compute() -> xr.Dataset:
            pixels = np.nonzero(train.values)
            classes, polygons = train.values[pixels], polygon_numbers(train)[pixels]
            fold = polygon_folds(classes, polygons, np.stack(pixels, axis=1), _N_FOLDS)
            result = xr.Dataset()
            for number in range(fold.max() + 1):
                self.progress("polygons", number, fold.max() + 1)
                left_out = np.zeros(train.shape, dtype=bool)
                left_out[tuple(axis[fold == number] for axis in pixels)] = True
                others = train.where(~left_out, NO_REFERENCE).astype(train.dtype)
                probability = clone(plan.model).fit_predict_proba(self.cube, others)
                maps = xr.Dataset({"probability": probability.compute(), "image": self.cube})
                if ranking.needs_p_value:
                    maps[P_VALUE] = Novelty().fit_p_value(self.cube, others)
                ranked = ranking.rank(maps)
                if not result:
                    result = xr.zeros_like(ranked.drop_attrs(deep=False))
                for name in result:
                    result[name].values[..., left_out] = ranked[name].values[..., left_out]
            return result

        key = _key(split, clone(plan.model), plan.context, ranking)
        return self._kept("polygons-left-out", key, compute)

    def _keeping(self, rejector: Rejector) -> Rejector:
        """Return the rejector; one that can keep its solves does so beside the stages."""
        if self.folder is None or "store" not in rejector.indifferent_options:
            return rejector
        storing: Any = rejector
        return cast("Rejector", replace(storing, store=storing.store or self.folder / "joint"))

    def _kept(self, name: str, key: str | None, compute: Callable[[], xr.Dataset]) -> Stage:
        """Return a stage from its file, or compute it and keep it there."""
        identity = f"{name}-{key}"

        def timed() -> xr.Dataset:
            start = time.perf_counter()
            result = compute()
            return result.assign_attrs({_SECONDS: time.perf_counter() - start, _STAGE: identity})

        path = self.folder / f"{identity}.nc" if self.folder and key else None
        self.progress(name, 0, 1)
        data = recall(path, timed, read=_read_stage, write=write_dataset)
        self.progress(name, 1, 1)
        self.seconds[name] = self.seconds.get(name, 0.0) + float(data.attrs[_SECONDS])
        return Stage(data, key)


def _read_stage(path: Path) -> xr.Dataset:
    """Return a kept stage; one under the name of another is reported, and computed again."""
    with open_dataset(path) as stored:  # an open file would answer for one that is replaced
        data = stored.load()
    if data.attrs[_STAGE] != path.stem:
        message = f"{path} holds another stage ({data.attrs[_STAGE]}). It is computed again."
        warnings.warn(message, HsrejectWarning, stacklevel=5)
        raise KeyError(path.stem)
    return data


def _key(before: Stage, *options: object) -> str | None:
    """Return the key of a stage after `before`."""
    return None if before.key is None else key_of(before.key, options)


@dataclass(frozen=True)
class System:
    """A row of the tables: what a rejector offers, and the map that is taken of it."""

    swept: xr.Dataset  # operating points on the test pixels, with their maps
    delivery: Delivery
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
    """The outcome of a plan."""

    plan: Plan  # with its tuning settled
    split: xr.Dataset  # train, test and, where test pixels choose, calibration (y, x)
    tuned: Stage | None
    evidence: xr.Dataset  # what was computed for the pixels: probabilities, and the context if any
    systems: Mapping[str, System]  # of its rejectors, then of what it is compared with
    left_out: LeftOutAccuracy | None = None  # where all polygons are for training

    @classmethod
    def of(cls, plan: Plan, labels: xr.DataArray, stages: Stages) -> Walk:
        """Walk from a split to the maps that the goal asks for, and to all baselines."""
        split = stages.split(plan, labels)
        plan = plan.of_classes(class_table(labels), split.data["train"])
        with warnings.catch_warnings():
            if ADVICE in split.data["train"].attrs:  # a report has it, once
                warnings.simplefilter("ignore", FewPolygonsWarning)
            if LEFT_OUT in split.data["train"].attrs:
                return _walk_without_test(plan, stages, split)
            return _walk_with_test(plan, stages, split)


def _walk_with_test(plan: Plan, stages: Stages, split: Stage) -> Walk:
    """Walk where test pixels judge, and half of them choose if the goal asks for that."""
    test = split.data["test"]
    if plan.goal.needs_reference:
        half = calibration_half(test, seed=plan.seed, by_polygons=is_digitised(test))
        split = replace(split, data=split.data.assign(calibration=half))
    looking = [plan, *plan.baselines.values()]
    novelty = stages.novelty(split) if any(one.needs_p_value for one in looking) else None
    settled, tuned, pixelwise, evidence = _map(plan, stages, split, novelty)
    systems = {
        name: _system(settled, name, (pixelwise, evidence), stages, split)
        for name in settled.rejectors
    }
    for name, baseline in plan.baselines.items():
        whole = pixelwise if name == CARRIED_ROW else None
        try:
            other, _, *maps = _map(baseline, stages, split, novelty, prefix=f"{name}-", whole=whole)
            alone = replace(other, rejectors={name: other.ranking})
            systems[name] = _system(alone, name, (maps[0], maps[1]), stages, split)
        except InputError as error:  # such as more components than the scene has bands
            if name != PLACE_ALONE:
                warnings.warn(
                    f"The baseline '{name}' is left out, because it cannot be computed: {error}",
                    HsrejectWarning,
                    stacklevel=3,
                )
    return Walk(settled, split.data, tuned, evidence.data, systems)


def _map(
    plan: Plan,
    stages: Stages,
    split: Stage,
    novelty: Stage | None,
    *,
    prefix: str = "",
    whole: Stage | None = None,
) -> tuple[Plan, Stage | None, Stage, Stage]:
    """Settle what a plan leaves to the training pixels, and map the scene without and with context.

    The model of a plan may be what can be carried of a `whole` one.
    """
    tuned = None
    pixelwise = stages.classify(plan.model, split, name=f"{prefix}classifier", whole=whole)
    if plan.weights:
        tuned = stages.tune(plan, split, name=f"{prefix}choosing", fitted=pixelwise.model)
        plan = plan.with_weight(float(tuned.data["weight"][0]))
    if novelty is not None and plan.needs_p_value:
        pixelwise = pixelwise.joined(novelty)
    if plan.context is None:
        return plan, tuned, pixelwise, pixelwise
    return plan, tuned, pixelwise, stages.solve_context(plan.context, pixelwise, tuned, prefix)


def _system(
    plan: Plan, name: str, maps: tuple[Stage, Stage], stages: Stages, split: Stage
) -> System:
    """Return what a rejector offers, and the map of it that the plan's goal asks for."""
    rejector = plan.rejectors[name]
    evidence = maps[1] if rejector.needs_context else maps[0]
    fraction = plan.goal.value if plan.goal.kind == FRACTION else None
    swept = stages.reject(name, rejector, evidence, split.data["test"], fraction=fraction)
    delivery = deliver(
        swept.data,
        plan.goal,
        test=split.data["test"],
        calibration=split.data.get("calibration"),
        certified=name == plan.delivered and not is_digitised(split.data["test"]),
        coarse_cost=getattr(rejector, "coarse_cost", 0.0),
    )
    probability = evidence.data.get("label_probability")
    if not rejector.needs_context:
        probability = evidence.data["probability"].max(CATEGORY)
    error = np.nan
    if (
        probability is not None and rejector.has_threshold
    ):  # else labels change with what is rejected
        used, correct = reference_pixels(swept.data["label"], split.data["test"])
        error = expected_calibration_error(correct, probability.values[used])
    return System(swept.data, delivery, error)


def _walk_without_test(plan: Plan, stages: Stages, split: Stage) -> Walk:
    """Walk where all polygons are for training: leaving them out in turn takes the place of a test.

    The delivered map alone is made. Where even leaving out says nothing, a tenth is rejected.
    """
    train = split.data["train"]
    novelty = stages.novelty(split) if plan.needs_p_value else None
    plan, tuned, pixelwise, evidence = _map(plan, stages, split, novelty)
    plan = replace(plan, rejectors={plan.delivered: plan.ranking})
    name, rejector = plan.delivered, plan.ranking
    maps = evidence if rejector.needs_context else pixelwise
    swept = stages.reject(name, rejector, maps, train, fraction=None)
    accuracy, goal, calibration, left_out_maps = NOT_ESTIMATED, plan.goal, None, None
    if has_two_polygons(train):
        left_out_maps = stages.leave_out(plan, split).data
        accuracy = left_out_accuracy(train, left_out_maps["label"], polygon_numbers(train))
        calibration = train.where(left_out_maps["label"].values != NO_REFERENCE, NO_REFERENCE)
    elif goal.needs_reference:
        goal = Goal(fraction=0.1)
    delivery = deliver(swept.data, goal, test=train, calibration=calibration, seen=left_out_maps)
    delivery = replace(delivery, reached=delivery.reached and goal is plan.goal)
    system = System(swept.data, delivery, np.nan)
    return Walk(plan, split.data, tuned, evidence.data, {name: system}, accuracy)
