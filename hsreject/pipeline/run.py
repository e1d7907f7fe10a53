"""Run a configuration: from a scene to maps, measures and a report."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from dask.base import tokenize

from hsreject.errors import HsrejectWarning, InputError
from hsreject.measures.curve import curve_of_points
from hsreject.measures.point import operating_point
from hsreject.measures.reliability import expected_calibration_error
from hsreject.pipeline.config import read_document, with_settings
from hsreject.pipeline.plan import CARRIED_ROW, CONTEXT_ROW, Plan, make_plan
from hsreject.pipeline.promising import Promise, promise_of, set_apart
from hsreject.pipeline.result import (
    STAGES,
    SeedResult,
    System,
    joined_maps,
    result_dataset,
    run_folder,
    summarise,
    write_outputs,
)
from hsreject.pipeline.stages import Stage, Stages
from hsreject.pipeline.tuning import best_settings
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection import Rejector
from hsreject.report.run_report import STAGE, along
from hsreject.schema import BAND, CATEGORY, OPERATING_POINT, REJECTOR, reference_pixels


def run(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
    settings: Iterable[str] = (),
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Run a configuration and return everything it found.

    Parameters
    ----------
    config : path or mapping
        A TOML file, or its sections as a mapping. In a mapping every table may be replaced by the
        object it names: ``{"scene": (cube, labels), "classifier": SVC(probability=True)}``. A
        function stands for a scene or a sampling: ``scene()`` returns cube and labels,
        ``sampling(labels, seed=...)`` the labels of training and test pixels.
    out : path, optional
        A folder for maps, tables, ``report.html`` and ``explorer.html``. Finished stages are kept
        in it, and a run that was stopped goes on where it was; stages whose configuration or inputs
        have changed are computed again.
    settings : iterable of str
        Changes such as ``"context.weight=4"``.
    overwrite : bool
        Write into a folder that holds other files, or the results of another configuration.
        Nothing is removed but what a run has written.
    progress : callable
        Called with (stage, done, total).

    Returns
    -------
    Dataset
        Of the first seed: `reference`, `train`, `test` (y, x); `probability` and `hidden_field`
        (category, y, x); `label`, `confidence`, `rejected` and `label_with_rejection`
        (rejector, y, x); `false_color`, three bands of the scene (band, y, x). Where held-out maps
        were scored, `label_probability` (y, x): how probable the label with context is; the hidden
        field itself only ranks. What the classifier tried lies along `pool_candidate`, what the
        tuning tried along `candidate`. Of all seeds: the summary by (seed, system). The operating
        points of the first seed on the test pixels lie along `operating_point`, with the system of
        each point in `system_of_point`. In the summary `map_...` is said of the maps as delivered,
        with 95 % intervals from resampled blocks. `stage_seconds` of each `stage` are its own.
        With a [promise], `promise_sample` (y, x) are the pixels set apart for it, `promise_...` by
        (seed, rejector) what was certified and what came of it on the others, and the attribute
        `promise_statement` says it in a sentence.

    Examples
    --------
    >>> result = run({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...               "features": [{"name": "pca", "n_components": 5}],
    ...               "context": {"prior": "vector_tv", "weight": 1.0},
    ...               "rejectors": ["pixelwise", "sequential"]})
    >>> result.label_with_rejection.dims
    ('rejector', 'y', 'x')
    """
    plan = planned(config, settings)
    folder = None if out is None else Path(out)
    with (
        nullcontext() if folder is None else run_folder(folder, plan.document, overwrite=overwrite)
    ):
        cube, labels = (array.compute() for array in plan.load())
        hashes = {"scene_hash": tokenize(cube), "labels_hash": tokenize(labels)}
        stages = Stages(
            cube, tokenize(hashes), None if folder is None else folder / STAGES, progress
        )
        results: dict[int, SeedResult] = {}
        for seed in range(plan.seed, plan.seed + plan.n_seeds):
            found = _run_seed(plan, labels, stages, seed)
            # the maps of the other seeds are not shown
            results[seed] = found if seed == plan.seed else replace(found, maps=xr.Dataset())
        dataset = result_dataset(plan, cube, results, hashes)
        dataset["stage_seconds"] = xr.DataArray(
            list(stages.seconds.values()), coords={STAGE: list(stages.seconds)}
        )
        if folder is not None:
            explored = cube, results[plan.seed].at_points
            write_outputs(folder, dataset, explored, progress=progress)
    return dataset


def planned(config: str | PathLike[str] | Mapping[str, Any], settings: Iterable[str]) -> Plan:
    """Return the plan of a configuration, or of the file that holds it, with changes applied."""
    document = config if isinstance(config, Mapping) else read_document(config)
    return make_plan(with_settings(document, settings))


@dataclass(frozen=True)
class _Mapped:
    """A plan whose tuning is settled, and the scene as it maps it."""

    plan: Plan
    tuned: Stage | None
    pixelwise: Stage
    context: Stage  # the same as `pixelwise` where the plan has no context

    def evidence(self, rejector: Rejector) -> Stage:
        """Return what a rejector looks at."""
        return self.context if rejector.needs_context else self.pixelwise


def _run_seed(plan: Plan, labels: xr.DataArray, stages: Stages, seed: int) -> SeedResult:
    """Run all stages with one seed: from a split to maps, operating points and the summary."""
    split = stages.split(plan, labels, seed)
    mapped = _mapped(plan, stages, split)
    systems: dict[str, System] = {}
    explored = stages.folder is not None and seed == plan.seed
    for name, rejector in mapped.plan.rejectors.items():
        if rejector.needs_context and plan.context is not None:
            # before the first one with context, context alone
            systems.setdefault(CONTEXT_ROW, _context_alone(mapped, split))
        systems[name] = _rejected(mapped, rejector, name, stages, split, explored=explored)
    rejections = {name: systems[name].data for name in plan.rejectors}
    for name, baseline in plan.baselines.items():
        try:
            systems[name] = _compared(name, baseline, stages, split)
        except InputError as error:  # such as more components than the scene has bands
            warnings.warn(
                f"The baseline '{name}' is left out, because it cannot be computed: {error}",
                HsrejectWarning,
                stacklevel=3,
            )
    if plan.carried is not plan:
        systems[CARRIED_ROW] = _compared(
            CARRIED_ROW, plan.carried, stages, split, prefix="carried", after=mapped.pixelwise
        )
    maps = mapped.context.data.drop_dims(BAND, errors="ignore").drop_attrs(deep=False)
    promise = None
    if plan.promise is not None:
        maps["promise_sample"] = set_apart(split.data["test"], seed)
        promise = _promises(plan.promise, mapped, systems, stages, split, maps["promise_sample"])
    acting = [mapped.plan.acting(rejector) for rejector in mapped.plan.rejectors.values()]
    maps["has_threshold"] = REJECTOR, [rejector.has_threshold for rejector in acting]
    return SeedResult(
        maps.assign(split.data).assign({"reference": labels, **joined_maps(rejections)}),
        {name: along(system.data, OPERATING_POINT) for name, system in systems.items()},
        summarise(systems, split.data["test"]),
        None if mapped.tuned is None else mapped.tuned.data,
        context_is_idle=mapped.plan.context is not None and mapped.plan.context.is_idle,
        at_points={n: s.at_points for n, s in systems.items() if s.at_points is not None},
        promise=promise,
    )


def _promises(
    promise: Promise,
    mapped: _Mapped,
    systems: Mapping[str, System],
    stages: Stages,
    split: Stage,
    sample: xr.DataArray,
) -> xr.Dataset:
    """Return what can be promised of each rejector, dims (rejector,)."""
    plan, found = mapped.plan, []
    for name, rejector in plan.rejectors.items():
        acting, maps = plan.acting(rejector), systems[name].data
        if not acting.has_threshold:
            maps = stages.maps_at_points(acting, mapped.evidence(rejector), split, maps)
        found.append(promise_of(promise, maps, split.data["test"], sample))
    return xr.concat(found, dim=xr.Variable(REJECTOR, list(plan.rejectors)))


def _mapped(
    plan: Plan, stages: Stages, split: Stage, *, prefix: str = "", after: Stage | None = None
) -> _Mapped:
    """Settle what a plan leaves to the training pixels, and map the scene.

    `after` is the stage of a model that this plan carries to other scenes.
    """
    fitted = None if after is None or after.model is None else after.model.carried()
    tuned = None
    if plan.tuning is not None and plan.tuning.of_model:
        tuned = stages.tune(plan, split, name=f"{prefix}choosing")
        plan = plan.changed(best_settings(tuned.data))
    novelty = any(rejector.needs_p_value for rejector in plan.rejectors.values())
    pixelwise = stages.classify(
        plan.model,
        split,
        name=f"{prefix}classifier",
        novelty=novelty,
        fitted=fitted,
        before=after,
    )
    if plan.tuning is not None and tuned is None:  # on the model that is fitted already
        tuned = stages.tune(plan, split, name=f"{prefix}choosing", fitted=pixelwise.model)
        plan = plan.changed(best_settings(tuned.data))
    context = pixelwise
    if plan.context is not None:
        context = stages.solve_context(
            plan.context, pixelwise, name=f"{prefix}context", tuned=tuned
        )
    return _Mapped(plan, tuned, pixelwise, context)


def _compared(
    name: str,
    plan: Plan,
    stages: Stages,
    split: Stage,
    *,
    prefix: str | None = None,
    after: Stage | None = None,
) -> System:
    """Return a system to compare with: a plan, and the ranking that says most."""
    mapped = _mapped(plan, stages, split, prefix=f"{prefix or name}-", after=after)
    return _rejected(mapped, mapped.plan.ranking, name, stages, split)


def _rejected(
    mapped: _Mapped,
    rejector: Rejector,
    name: str,
    stages: Stages,
    split: Stage,
    *,
    explored: bool = False,
) -> System:
    """Return the operating points and the maps of a rejector; `explored`, at every point."""
    evidence = mapped.evidence(rejector)
    acting = mapped.plan.acting(rejector)
    found = stages.reject(name, acting, evidence, split, mapped.plan.fraction)
    said = evidence.data.get("label_probability")
    if not rejector.needs_context:
        said = evidence.data["probability"].max(CATEGORY)
    elif not acting.has_threshold:
        said = None  # its labels change with the rejected fraction
    error = np.nan
    if said is not None:
        used, correct = reference_pixels(found.data["label"], split.data["test"])
        error = expected_calibration_error(correct, said.values[used])
    at_points = None
    if explored and not acting.has_threshold:
        stages.progress(f"maps-{name}", 0, 1)
        at_points = stages.maps_at_points(acting, evidence, split, found.data)
        stages.progress(f"maps-{name}", 1, 1)
    return System(found.data, found.total_seconds, error, at_points)


def _context_alone(mapped: _Mapped, split: Stage) -> System:
    """Return the one operating point of the labels with context."""
    data = mapped.context.data
    used, correct = reference_pixels(data["context_label"], split.data["test"])
    point = operating_point(correct, np.zeros_like(correct))
    error = np.nan
    if "label_probability" in data:
        error = expected_calibration_error(correct, data["label_probability"].values[used])
    label = data["context_label"]
    curve = curve_of_points([point]).assign(label=label, rejected=xr.zeros_like(label, dtype=bool))
    return System(curve, mapped.context.total_seconds, error)
