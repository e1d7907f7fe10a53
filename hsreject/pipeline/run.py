"""Run a configuration: from a scene to maps, measures and a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr

from hsreject.config.document import read_document, with_settings
from hsreject.fingerprint import fingerprint
from hsreject.pipeline.one_seed import SeedResult, run_seed
from hsreject.pipeline.output_folder import STAGES, run_folder, write_outputs
from hsreject.pipeline.plan import Plan, make_plan
from hsreject.pipeline.result import result_dataset
from hsreject.pipeline.stages import Stages
from hsreject.pipeline.store import StageStore
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import check_same_grid


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
        object it names: ``{"scene": (cube, labels), "classifier": SVC(probability=True)}``.
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
        (rejector, y, x). Of all seeds: the summary by (seed, system). The operating points of the
        first seed on the test pixels lie along `operating_point`, with the system of each point in
        `system_of_point`.

    Examples
    --------
    >>> result = run({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...               "features": [{"name": "pca", "n_components": 5}],
    ...               "context": {"prior": "vector_tv", "weight": 1.0},
    ...               "rejectors": ["pixelwise", "sequential"]})
    >>> result.label_with_rejection.dims
    ('rejector', 'y', 'x')
    """
    given = config if isinstance(config, Mapping) else read_document(config)
    document = with_settings(given, settings)
    plan = make_plan(document)
    folder = None if out is None else Path(out)
    with nullcontext() if folder is None else run_folder(folder, document):
        cube, labels = plan.scene.load()
        check_same_grid(cube, labels, names=("scene", "labels"))
        results = _run_seeds(document, plan, cube, labels, folder, progress)
        dataset = result_dataset(document, plan, results, inputs=(cube, labels))
        if folder is not None:
            write_outputs(folder, document, plan, cube, results, dataset, progress=progress)
    return dataset


def _run_seeds(
    document: Mapping[str, Any],
    plan: Plan,
    cube: xr.DataArray,
    labels: xr.DataArray,
    folder: Path | None,
    progress: ProgressCallback,
) -> dict[int, SeedResult]:
    store = StageStore(None if folder is None else folder / STAGES)
    stages = Stages(cube, fingerprint(cube, labels), store, progress)
    results: dict[int, SeedResult] = {}
    for seed in range(plan.seed, plan.seed + plan.repeat):
        results[seed] = run_seed(document, labels, stages, seed=seed, with_maps=seed == plan.seed)
    return results
