"""The stages of a run, and what it computes by them.

Each stage takes the stage before, gives a Dataset, and is kept when finished.

The key of a stage is a hash of its own options, with the code of parts that users wrote, and of the
key of the stage before; the first is a token of the scene. So a key says all that a result depends
on, and every array is hashed once. A stage without a key is not kept, nor are those after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import FewPolygonsWarning, FileError, HsrejectWarning, InputError
from hsreject.features.windows import in_windows
from hsreject.files import recall
from hsreject.io.netcdf import open_dataset, write_dataset
from hsreject.keys import key_of
from hsreject.mapping.model_file import read_fitted, write_fitted
from hsreject.measures.choosing import FRACTION, Goal
from hsreject.measures.summary import expected_calibration_error
from hsreject.pipeline.delivery import Delivery, calibration_half, deliver
from hsreject.pipeline.plan import LOCATION_ONLY, Plan
from hsreject.pipeline.tuning import tune
from hsreject.progress import ProgressCallback, reporting_reads
from hsreject.rejection import Novelty, Rejector
from hsreject.rejection.evidence import P_VALUE, TOKEN
from hsreject.rejection.ranking import Ranking, Stack
from hsreject.schema import (
    CALIBRATED,
    CANDIDATE,
    CATEGORY,
    NO_REFERENCE,
    OPERATING_POINT,
    class_table,
    reference_pixels,
)
from hsreject.splits.polygons import (
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

STAGES = "stages"  # folder of finished stages, inside that of a run
CARRIED = "carried-"  # prefix of the stages of a model for other scenes that maps its own apart
_N_FOLDS = 5
_STAGE = "stage"  # attribute of a file: the stage that it holds
_FITTED = ".skops"  # what was fitted for it, beside its maps


def _nothing() -> None:
    """Return that nothing was fitted."""


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it gives, and what that depends on."""

    data: xr.Dataset
    key: str | None  # hash of everything that it depends on; None where that is not known
    fitted: Callable[[], Any] = _nothing  # gives what was fitted for it; None if that is lost

    def joined(self, other: Stage) -> Stage:
        """Return what both stages give."""
        data = self.data.assign(other.data.drop_attrs(deep=False))
        return replace(self, data=data, key=_key(self, other.key))

    def with_calibration(self, *, seed: int) -> Stage:
        """Return a split whose test pixels, half of them, choose the operating points."""
        test = self.data["test"]
        half = calibration_half(test, seed=seed, by_polygons=is_digitised(test))
        return replace(self, data=self.data.assign(calibration=half))


@dataclass(frozen=True)
class Stages:
    """The stages on one scene."""

    cube: xr.DataArray  # (band, y, x)
    key: str | None  # token of the scene and its labels
    folder: Path | None  # where finished stages are kept; None keeps none
    progress: ProgressCallback
    hashes: Mapping[str, str] = field(default_factory=dict)  # of the scene and its labels

    def split(self, plan: Plan, labels: xr.DataArray) -> Stage:
        """Return `train` and `test`, the labels of the pixels to learn from and to evaluate on."""
        train, test = plan.sampling(labels, seed=plan.seed)
        data = xr.Dataset({"train": train, "test": test})
        return Stage(data, None if self.key is None else tokenize(__version__, self.key, data))

    def tune(self, plan: Plan, split: Stage, *, name: str, fitted: Callable[[], Any]) -> Stage:
        """Return the weights of the context that were tried with their scores, best first."""
        contexts = [plan.with_weight(weight).context for weight in plan.weights]

        def compute() -> xr.Dataset:
            train = split.data["train"]
            return tune(plan, self.cube, train, fitted=fitted(), progress=self.progress)

        return self._kept(name, _key(split, clone(plan.model), contexts), compute)

    def classify(
        self,
        model: SceneModel,
        split: Stage,
        *,
        name: str,
        keep_model: bool = True,
        known: SceneModel | None = None,
    ) -> Stage:
        """Return the class `probability` of a model fitted to the training pixels.

        A model that weighs candidates of its own leaves what it tried, along `candidate`. It is not
        fitted if it is `known`, which a run has fitted to these pixels.
        """
        estimator, train = clone(model) if known is None else known, split.data["train"]

        def compute() -> xr.Dataset:
            if known is not None:
                probability = known.predict_proba(self.cube, progress=self.progress)
            else:
                probability = estimator.fit_predict_proba(self.cube, train, progress=self.progress)
            tried = getattr(estimator, "tried_", xr.Dataset())
            return tried.assign(probability=probability.compute())

        stage = self._kept(
            name, _key(split, clone(model)), compute, estimator if keep_model else None
        )
        data = stage.data.assign(image=self.cube)
        if data["probability"].attrs.get(CALIBRATED):
            data["label_probability"] = data["probability"].max(CATEGORY).drop_attrs(deep=False)
        return replace(stage, data=data)

    def novelty(self, split: Stage) -> Stage:
        """Return the `p_value` of every pixel, which the training pixels alone decide."""
        novelty = Novelty()

        def compute() -> xr.Dataset:
            return novelty.fit_p_value(self.cube, split.data["train"]).to_dataset()

        return self._kept("novelty", _key(split, clone(novelty)), compute, novelty)

    def finished(self, name: str, part: Any, split: Stage) -> Any:
        """Return a part as a run has fitted it to the training pixels for that stage, or None."""
        path = self._path(f"{name}-{_key(split, clone(part))}", split.key)
        return None if path is None else _read_fitted(path)

    def solve_context(
        self, context: SegSALSA, before: Stage, tuned: Stage | None, prefix: str
    ) -> Stage:
        """Return what was known with the `hidden_field` of the context.

        Where held-out maps of this context gave a temperature, `label_probability` is how
        probable its label is; the field itself only ranks.
        """
        temperature = None if tuned is None else float(tuned.data["temperature"][0])

        def compute() -> xr.Dataset:
            probability = before.data["probability"]
            solution = context.solve(probability, image=self.cube, progress=self.progress)
            maps = {"hidden_field": solution.hidden_field}
            if temperature is not None:
                calibrated = at_temperature(maps["hidden_field"].values, temperature, axis=0)
                plain = maps["hidden_field"].isel({CATEGORY: 0}, drop=True).drop_attrs(deep=False)
                maps["label_probability"] = plain.copy(data=calibrated.max(axis=0))
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
        indifferent, storing = rejector.indifferent_options, cast("Any", rejector)
        options = {name: value for name, value in vars(rejector).items() if name not in indifferent}
        fraction = None if rejector.has_threshold else fraction  # every threshold is there
        if self.folder is not None and "store" in indifferent:  # solves are kept beside the stages
            storing = replace(storing, store=storing.store or self.folder / "joint")
        work = partial(storing.sweep, maps, test, fraction=fraction, progress=self.progress)
        key = _key(evidence, type(rejector), options, fraction)
        return self._kept(f"rejection-{name}", key, work)

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
                ranked = ranking.rank(maps).to_dataset()
                if not result:
                    result = xr.zeros_like(ranked.drop_attrs(deep=False))
                for name in result:
                    result[name].values[..., left_out] = ranked[name].values[..., left_out]
            return result

        key = _key(split, clone(plan.model), plan.context, ranking)
        return self._kept("polygons-left-out", key, compute)

    def _kept(
        self, name: str, key: str | None, compute: Callable[[], xr.Dataset], part: Any = None
    ) -> Stage:
        """Return a stage from its file, or compute it and keep it there, with the part it fits."""
        identity = f"{name}-{key}"
        path = self._path(identity, key)

        def identified() -> xr.Dataset:
            data = compute().assign_attrs({_STAGE: identity})
            if part is not None and path is not None:
                _keep_fitted(part, path)
            return data

        self.progress(name, 0, 1)
        data = recall(path, identified, read=_read_stage, write=write_dataset)
        self.progress(name, 1, 1)
        if part is None:
            return Stage(data, key)
        if any(name.endswith("_") for name in vars(part)):  # fitted, not read from a file
            return Stage(data, key, lambda: part)
        return Stage(data, key, _nothing if path is None else partial(_read_fitted, path))

    def _path(self, identity: str, key: str | None) -> Path | None:
        """Return the file of a stage, where it is kept."""
        return self.folder / f"{identity}.nc" if self.folder and key else None


def opened(
    plan: Plan, out: Path | None, progress: ProgressCallback, *, hashed: bool = False
) -> tuple[Stages, xr.DataArray]:
    """Open the scene of a plan; return the stages on it, kept in the folder of a run, and labels.

    Without a folder the scene is hashed only if the hashes are asked for.
    """
    with reporting_reads(progress):
        scene, labels = plan.load()
        cube, labels = in_windows(scene), labels.compute()
    if out is None and not hashed:
        return Stages(cube, None, None, progress), labels
    whole = cube if cube.chunks is None else scene  # windows have names that change
    hashes = {"scene_hash": tokenize(whole), "labels_hash": tokenize(labels)}
    kept_in = None if out is None else out / STAGES
    return Stages(cube, tokenize(hashes), kept_in, progress, hashes), labels


def _keep_fitted(part: Any, path: Path) -> None:
    """Keep what was fitted beside the maps of its stage; what a model file cannot hold is not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(InputError):
        write_fitted(part, path.with_suffix(_FITTED), overwrite=True)


def _read_fitted(path: Path) -> Any:
    """Return what was fitted for the stage of that file; None if it is not there, or damaged."""
    try:
        return read_fitted(path.with_suffix(_FITTED))
    except FileError:
        return None


def _read_stage(path: Path) -> xr.Dataset:
    """Return a stage from its file; a file with the content of another is computed again."""
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

    points: xr.Dataset  # operating points on the test pixels
    ranking: Ranking  # what they are points of
    delivery: Delivery
    calibration_error: float  # of the probability of its labels; NaN where it has none

    @property
    def has_threshold(self) -> bool:
        """Whether one threshold makes all its maps."""
        return not isinstance(self.ranking, Stack)

    @classmethod
    def of(cls, sweep: xr.Dataset, goal: Goal, error: float = np.nan, **how: Any) -> System:
        """Return the system of a sweep, and the map that a goal asks for (`deliver`)."""
        columns = [n for n, array in sweep.items() if array.dims == (OPERATING_POINT,)]
        points, ranking = sweep[columns].drop_attrs(deep=False), Ranking.of(sweep)
        return cls(points, ranking, deliver(ranking, goal, **how), error)


@dataclass(frozen=True)
class Outcome:
    """What a run has computed, before it is judged."""

    plan: Plan  # with its tuning settled
    document: Mapping[str, Any]  # the configuration as it was given
    cube: xr.DataArray  # (band, y, x)
    labels: xr.DataArray  # (y, x), the reference
    split: xr.Dataset  # train, test and, where test pixels choose, calibration (y, x)
    tuning: xr.Dataset  # the weights of the context that were tried; empty where none were
    evidence: xr.Dataset  # what was computed for the pixels: probabilities, and the context if any
    systems: Mapping[str, System]  # of its rejectors, then of what it is compared with
    left_out: LeftOutAccuracy | None = None  # where all polygons are for training
    mapped: MappedScene | None = None  # of which a model for other scenes can be made

    @classmethod
    def of(cls, plan: Plan, labels: xr.DataArray, stages: Stages, split: Stage) -> Outcome:
        """Compute the maps that the goal of a plan asks for, and all baselines."""
        train, test, document = split.data["train"], split.data["test"], plan.document
        if not (test != NO_REFERENCE).any() and LEFT_OUT not in train.attrs:
            raise InputError(
                "The sampling leaves no test pixel, so nothing can be evaluated. "
                "Draw fewer training pixels."
            )
        plan = plan.of_classes(class_table(labels), split.data["train"])
        left_out = None
        with warnings.catch_warnings():
            if ADVICE in split.data["train"].attrs:  # a report has it, once
                warnings.simplefilter("ignore", FewPolygonsWarning)
            if LEFT_OUT in split.data["train"].attrs:
                mapped, systems, left_out = _without_test(plan, stages, split)
            else:
                if plan.goal.needs_reference:
                    split = split.with_calibration(seed=plan.seed)
                mapped, systems = _with_test(plan, stages, split)
        tuning = xr.Dataset() if mapped.tuned is None else mapped.tuned.data.drop_attrs(deep=False)
        return cls(
            mapped.plan,
            document,
            stages.cube,
            labels,
            split.data,
            tuning,
            mapped.in_context.data,
            systems,
            left_out,
            mapped,
        )

    @property
    def pool(self) -> xr.Dataset:
        """What the classifier tried, over `candidate`; empty of one that tries nothing."""
        evidence = self.evidence.drop_attrs(deep=False)
        return evidence.drop_dims(set(evidence.dims) - {CANDIDATE}).reset_coords(drop=True)


@dataclass(frozen=True)
class MappedScene:
    """The scene as a plan maps it, without and with its context."""

    plan: Plan  # with its tuning settled
    tuned: Stage | None
    pixelwise: Stage
    in_context: Stage  # the pixelwise one where the plan has no context

    @classmethod
    def of(
        cls,
        plan: Plan,
        stages: Stages,
        split: Stage,
        novelty: Stage | None,
        *,
        prefix: str = "",
        known: SceneModel | None = None,
    ) -> MappedScene:
        """Settle what a plan leaves open, and map the scene, with a model that may be `known`.

        A prefix is that of a baseline, whose model nobody asks for.
        """
        tuned = None
        pixelwise = stages.classify(
            plan.model,
            split,
            name=f"{prefix}classifier",
            keep_model=prefix in {"", CARRIED},
            known=known,
        )
        if plan.weights:
            tuned = stages.tune(plan, split, name=f"{prefix}choosing", fitted=pixelwise.fitted)
            plan = plan.with_weight(float(tuned.data["weight"][0]))
        in_context = pixelwise
        if plan.context is not None:
            in_context = stages.solve_context(plan.context, pixelwise, tuned, prefix)
        if novelty is not None and plan.needs_p_value:
            pixelwise, in_context = (one.joined(novelty) for one in (pixelwise, in_context))
        return cls(plan, tuned, pixelwise, in_context)

    def evidence(self, rejector: Rejector) -> Stage:
        """Return the stage that a rejector decides from."""
        return self.in_context if rejector.needs_context else self.pixelwise


def _with_test(plan: Plan, stages: Stages, split: Stage) -> tuple[MappedScene, dict[str, System]]:
    """Map the scene where test pixels judge, and half of them choose if the goal asks for that."""
    looking = [plan, *plan.baselines.values()]
    novelty = stages.novelty(split) if any(one.needs_p_value for one in looking) else None
    mapped = MappedScene.of(plan, stages, split, novelty)
    random = not is_digitised(split.data["test"])
    systems = {
        name: _system(
            mapped, name, stages, split, certified=random and name == mapped.plan.delivered
        )
        for name in mapped.plan.rejectors
    }
    for name, baseline in plan.baselines.items():
        try:
            other = MappedScene.of(baseline, stages, split, novelty, prefix=f"{name}-")
            alone = replace(other.plan, rejectors={name: other.plan.ranking})
            systems[name] = _system(replace(other, plan=alone), name, stages, split)
        except InputError as error:  # such as more components than the scene has bands
            if name != LOCATION_ONLY:
                warnings.warn(
                    f"The baseline '{name}' is left out, because it cannot be computed: {error}",
                    HsrejectWarning,
                    stacklevel=3,
                )
    return mapped, systems


def _system(
    mapped: MappedScene, name: str, stages: Stages, split: Stage, *, certified: bool = False
) -> System:
    """Return what a rejector offers, and the map of it that the plan's goal asks for."""
    rejector, goal, test = mapped.plan.rejectors[name], mapped.plan.goal, split.data["test"]
    evidence = mapped.evidence(rejector)
    fraction = goal.value if goal.kind == FRACTION else None
    sweep = stages.reject(name, rejector, evidence, test, fraction=fraction).data
    probability = evidence.data.get("label_probability")
    if not rejector.needs_context:
        probability = evidence.data["probability"].max(CATEGORY)
    error = np.nan
    if probability is not None and rejector.has_threshold:  # else labels change with the rejection
        used, correct = reference_pixels(sweep["label"], test)
        error = expected_calibration_error(correct, probability.values[used])
    return System.of(
        sweep,
        goal,
        error,
        test=test,
        calibration=split.data.get("calibration"),
        certified=certified,
        coarse_cost=rejector.coarse_cost,
    )


def _without_test(
    plan: Plan, stages: Stages, split: Stage
) -> tuple[MappedScene, dict[str, System], LeftOutAccuracy]:
    """Map the scene where all polygons are for training: leaving them out in turn is the test.

    The delivered map alone is made. Where even leaving out says nothing, a tenth is rejected.
    """
    train = split.data["train"]
    novelty = stages.novelty(split) if plan.needs_p_value else None
    mapped = MappedScene.of(plan, stages, split, novelty)
    plan = mapped.plan
    name, rejector = plan.delivered, plan.ranking
    plan = replace(plan, rejectors={name: rejector})
    sweep = stages.reject(name, rejector, mapped.evidence(rejector), train, fraction=None).data
    accuracy, goal, calibration, seen = NOT_ESTIMATED, plan.goal, None, None
    if has_two_polygons(train):
        seen = Ranking.of(stages.leave_out(plan, split).data)
        accuracy = left_out_accuracy(train, seen.label, polygon_numbers(train))
        calibration = train.where(seen.label.values != NO_REFERENCE, NO_REFERENCE)
    elif goal.needs_reference:
        goal = Goal(fraction=0.1)
    system = System.of(sweep, goal, test=train, calibration=calibration, seen=seen)
    if goal is not plan.goal:
        decision = replace(system.delivery.decision, reached=False)
        system = replace(system, delivery=replace(system.delivery, decision=decision))
    return replace(mapped, plan=plan), {name: system}, accuracy
