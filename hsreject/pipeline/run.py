"""Run a configuration: from a scene to maps, measures and a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr
from dask.base import tokenize

from hsreject.features.windows import in_windows
from hsreject.measures.choosing import Goal
from hsreject.pipeline.config import read_document, with_settings
from hsreject.pipeline.judgement import Judgement
from hsreject.pipeline.plan import Plan, make_plan
from hsreject.pipeline.result import STAGES, result_tree, run_folder, write_outputs
from hsreject.pipeline.stages import Outcome, Stages
from hsreject.progress import ProgressCallback, no_progress, reporting_reads


def run(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
    goal: Goal | Mapping[str, Any] | None = None,
    settings: Iterable[str] = (),
    flat: bool = False,
    probabilities: bool = False,
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
    overwrite : bool
        Write into a folder that holds other files, or the results of another configuration.
        Nothing is removed but what a run has written.
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
    with (
        nullcontext() if folder is None else run_folder(folder, plan.document, overwrite=overwrite)
    ):
        with reporting_reads(progress):
            scene, labels = plan.load()
            cube, labels = in_windows(scene), labels.compute()
        whole = cube if cube.chunks is None else scene  # windows have names that change
        hashes = {"scene_hash": tokenize(whole), "labels_hash": tokenize(labels)}
        kept_in = None if folder is None else folder / STAGES
        stages = Stages(cube, tokenize(hashes), kept_in, progress)
        judgement = Judgement.of(Outcome.of(plan, labels, stages))
        tree = result_tree(judgement, hashes)
        if folder is not None:
            write_outputs(
                folder,
                tree,
                judgement,
                flat=flat,
                probabilities=probabilities,
                progress=progress,
            )
    return tree


def planned(
    config: str | PathLike[str] | Mapping[str, Any],
    settings: Iterable[str],
    goal: Goal | Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan of a configuration, or of the file that holds it, with changes applied."""
    document = config if isinstance(config, Mapping) else read_document(config)
    document = with_settings(document, settings)
    if goal is not None:
        document = {**document, "goal": goal}
        document.pop("fraction", None)
    return make_plan(document)
