"""Run a configuration: from a scene to maps, measures and a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr

from hsreject.files import check_target
from hsreject.mapping.model_file import save_model
from hsreject.measures.choosing import Goal
from hsreject.pipeline.judgement import Judgement
from hsreject.pipeline.plan import planned
from hsreject.pipeline.result import result_tree, run_folder, write_outputs
from hsreject.pipeline.stages import Outcome, opened
from hsreject.pipeline.training import check_carried, map_model
from hsreject.progress import ProgressCallback, no_progress


def run(  # noqa: PLR0913 (all but one are options)
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
    goal: Goal | Mapping[str, Any] | None = None,
    settings: Iterable[str] = (),
    flat: bool = False,
    probabilities: bool = False,
    model: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> xr.DataTree:
    """Run a configuration and return all its results.

    Parameters
    ----------
    config : path or mapping
        A TOML file, or its sections as a mapping. In a mapping every table may be replaced by the
        object it names: ``{"scene": (cube, labels), "classifier": SVC(probability=True)}``. A
        function stands for a scene or a sampling: ``scene()`` returns cube and labels,
        ``sampling(labels, seed=...)`` the labels of training and test pixels.
    out : path, optional
        A folder for maps, tables, ``report.html`` and ``explorer.html``. Finished stages are kept
        in it, and a run that was stopped continues from there; stages whose configuration or inputs
        have changed are computed again.
    goal : Goal or mapping, optional
        How much is rejected, instead of what the configuration says: ``{"accuracy": 0.95}``. What
        is chosen from test pixels is chosen on one half of them and judged on the other; where they
        lie in polygons, whole polygons are on one side. A ``fraction`` is one of the scene.
    settings : iterable of str
        Changes such as ``"context.weight=4"``.
    flat : bool
        Write ``maps/map.tif`` without the groups of ``[groups]``: classes, and 0 elsewhere, for
        readers that know no groups.
    probabilities : bool
        Write the probability of every class, too: ``maps/probabilities.tif``, one band per class.
    model : path, optional
        Keep the model for other scenes in this file, too: that of :func:`hsreject.train`, for which
        nothing that the run has fitted is fitted again.
    overwrite : bool
        Write over the model, and into a folder that holds other files, or the results of another
        configuration. Nothing is removed but what a run has written.
    progress : callable
        Called with (stage, done, total).

    Returns
    -------
    DataTree
        The maps: `reference`, `train`, `test` (y, x), and `calibration`, the half
        of the test pixels that chose; `probability` and `hidden_field` (category, y, x); `label`,
        `confidence`, `rejected` and `label_with_rejection` (rejector, y, x), each at the operating
        point that the goal asks for; `false_color`, three bands of the scene (band, y, x). Where
        held-out maps were scored, `label_probability` (y, x) is how probable the label is; a hidden
        field itself only ranks. Its groups:

        - `delivered`: the one map that the report is about, `label_with_rejection` (y, x), with its
          numbers; the attributes say which rejector and goal, the `statement` and the `warnings`.
          `confidence_class` (y, x) says which third of the map by confidence a pixel belongs to,
          and the group `confidence_classes` how large and how accurate each of these is.
        - `summary`: figures of the curve of each system on all test pixels, by (seed, system):
          the tables of several runs are joined along `seed`.
        - `judged`: figures of each system's map, by (seed, system), on the test pixels that chose
          nothing, with 95 % intervals; `gain` is how much more accurate the delivered map is.
        - `points`: the operating points of all systems on all test pixels.
        - `promise`: what was certified, and how it turned out.
        - `pool` and `tuning`: what the classifier tried, and which weights of the context.
        - `versions`: of hsreject and of what its numbers depend on, as attributes.

        A group is a table by itself with ``result["summary"].to_dataset(inherit=False)``; without
        that word it has the coordinates of the maps, too.

    See Also
    --------
    hsreject.train : for maps of other scenes.
    hsreject.evaluate : for maps that exist already.
    hsreject.load_plugins : parts of your own.

    Examples
    --------
    >>> from hsreject import run
    >>> result = run({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...               "features": [{"name": "pca", "n_components": 5}],
    ...               "context": {"prior": "vector_tv", "weight": 1.0},
    ...               "rejectors": ["pixelwise", "sequential"]}, goal={"accuracy": 0.95})
    >>> result.label_with_rejection.dims, result["delivered/label_with_rejection"].dims
    (('rejector', 'y', 'x'), ('y', 'x'))
    >>> result["delivered"].attrs["rejector"]
    'sequential'
    """
    plan = planned(config, settings, goal)
    folder = None if out is None else Path(out)
    if model is not None:
        check_target(Path(model), overwrite=overwrite)  # before the work, not after it
    with (
        nullcontext() if folder is None else run_folder(folder, plan.document, overwrite=overwrite)
    ):
        stages, labels = opened(plan, folder, progress, hashed=True)
        split = stages.split(plan, labels)
        if model is not None:
            check_carried(plan, stages, split)
        outcome = Outcome.of(plan, labels, stages, split)
        judgement = Judgement.of(outcome)
        tree = result_tree(judgement, stages.hashes)
        if folder is not None:
            write_outputs(
                folder,
                tree,
                judgement,
                flat=flat,
                probabilities=probabilities,
                progress=progress,
            )
        if model is not None:
            trained = map_model(plan, labels, stages, split, mapped=outcome.mapped)
            save_model(trained, model, overwrite=overwrite)
    return tree
