"""Run a configuration: from a scene to maps, measures and a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from dask.base import tokenize

from hsreject.measures.curve import curve_of_points
from hsreject.measures.point import operating_point
from hsreject.pipeline.config import read_document, with_settings
from hsreject.pipeline.plan import CONTEXT_ROW, Plan, make_plan
from hsreject.pipeline.result import (
    STAGES,
    SeedResult,
    joined_maps,
    result_dataset,
    run_folder,
    summarise,
    write_outputs,
)
from hsreject.pipeline.stages import Stage, Stages
from hsreject.pipeline.tuning import best_settings
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection import PixelwiseRejector
from hsreject.rejection.evidence import CLASS_P_VALUE
from hsreject.report.run_report import along
from hsreject.schema import BAND, OPERATING_POINT, reference_pixels


def run(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
    settings: Iterable[str] = (),
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
        A folder for maps, pictures, tables and the report. Finished stages are kept in it, and a
        run that was stopped goes on where it was; stages whose configuration or inputs have
        changed are computed again.
    settings : iterable of str
        Changes such as ``"context.weight=4"``.
    progress : callable
        Called with (stage, done, total).

    Returns
    -------
    Dataset
        Of the first seed: `reference`, `train`, `test` (y, x); `probability` and `hidden_field`
        (category, y, x); `label`, `confidence`, `rejected` and `label_with_rejection`
        (rejector, y, x); `false_color`, three bands of the scene (band, y, x). Of all seeds: the
        summary by (seed, system). The operating points of the first seed on the test pixels lie
        along `operating_point`, with the system of each point in `system_of_point`.

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
    with nullcontext() if folder is None else run_folder(folder, plan.document):
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
        if folder is not None:
            write_outputs(folder, plan.document, dataset, progress=progress)
    return dataset


def planned(config: str | PathLike[str] | Mapping[str, Any], settings: Iterable[str]) -> Plan:
    """Return the plan of a configuration, or of the file that holds it, with changes applied."""
    document = config if isinstance(config, Mapping) else read_document(config)
    return make_plan(with_settings(document, settings))


def _run_seed(plan: Plan, labels: xr.DataArray, stages: Stages, seed: int) -> SeedResult:
    """Run all stages with one seed: from a split to maps, operating points and the summary."""
    split = stages.split(plan, labels, seed)
    tried = None
    if plan.tuning is not None:
        tried = stages.tune(plan, split, seed).data
        plan = plan.changed(best_settings(tried))
    novelty = any(rejector.needs_p_value for rejector in plan.rejectors.values())
    pixelwise = stages.classify(plan.model, split, novelty=novelty)
    context = pixelwise if plan.context is None else stages.solve_context(plan.context, pixelwise)
    systems: dict[str, Stage] = {}
    for name, rejector in plan.rejectors.items():
        evidence = context if rejector.needs_context else pixelwise
        if rejector.needs_context and plan.context is not None:
            # before the first one with context, context alone
            systems.setdefault(CONTEXT_ROW, _nothing_rejected(context, split))
        systems[name] = stages.reject(name, rejector, evidence, split, plan.fraction)
    rejections = {name: systems[name].data for name in plan.rejectors}
    for name, model in plan.baselines.items():
        baseline = stages.classify(model, split, name=f"baseline-{name}")
        systems[name] = stages.reject(name, PixelwiseRejector(), baseline, split, plan.fraction)
    curves = {name: along(system.data, OPERATING_POINT) for name, system in systems.items()}
    maps = context.data.drop_dims(BAND, errors="ignore").drop_attrs(deep=False)
    maps = maps.drop_vars(CLASS_P_VALUE, errors="ignore")  # as large as the class probabilities
    return SeedResult(
        maps.assign(split.data).assign({"reference": labels, **joined_maps(rejections)}),
        curves,
        summarise(curves, {name: system.seconds for name, system in systems.items()}),
        tried,
    )


def _nothing_rejected(context: Stage, split: Stage) -> Stage:
    """Return the one operating point of the labels with context."""
    _, correct = reference_pixels(context.data["context_label"], split.data["test"])
    point = operating_point(correct, np.zeros_like(correct))
    return replace(context, data=curve_of_points([point]))
