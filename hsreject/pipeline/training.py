"""Train a map model: the configuration of a run, up to what another scene needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, cast

import xarray as xr
from sklearn.base import clone

from hsreject.errors import ConfigError
from hsreject.mapping.map_model import MapModel, TrainingScene
from hsreject.pipeline.config import config_text
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.run import planned
from hsreject.pipeline.tuning import tune
from hsreject.progress import ProgressCallback, no_progress, reporting_reads
from hsreject.rejection import RankedRejector
from hsreject.schema import BAND, NO_REFERENCE, class_table


def train(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    settings: Iterable[str] = (),
    rejector: str | None = None,
    progress: ProgressCallback = no_progress,
) -> MapModel:
    """Train on the scene of a configuration what it takes to map other scenes.

    The training pixels fit features and classifier; on the test pixels every threshold is tried, so
    that the model can later answer which one a rejection cost or an accuracy asks for. Of a
    classifier that looks at the place of the training pixels, such as auto, the model keeps what
    holds on other scenes.

    Parameters
    ----------
    config : path or mapping
        As for :func:`hsreject.run`.
    settings : iterable of str
        Changes such as ``"context.weight=4"``.
    rejector : str, optional
        Which of the configuration's rejectors gives label and confidence. By default the one whose
        map a run delivers: with groups of classes, the one that may answer with them. Joint
        rejection has no threshold that could be carried to another scene: where there is nothing
        else, it is sequential rejection in the same context.
    progress : callable
        Called with (stage, done, total).

    See Also
    --------
    hsreject.map_scene : maps with the model.
    hsreject.save_model : keeps it.
    hsreject.run : evaluates on the same scene.

    Examples
    --------
    >>> from hsreject import train
    >>> model = train({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...                "features": [{"name": "pca", "n_components": 5}], "classifier": "lda",
    ...                "context": {"prior": "vector_tv", "weight": 1.0}})
    >>> model.halo, len(model.classes.names)
    (16, 5)
    """
    plan = planned(config, settings).carried
    _chosen_rejector(plan, rejector)  # says what is wrong before the work
    with reporting_reads(progress):
        cube, labels = plan.load()
    training, test = plan.sampling(labels, seed=plan.seed)
    groups = plan.document.get("groups")
    plan = plan.of_classes(class_table(labels), training)
    if plan.context is not None:  # says now, not when a map is made, that it cannot be
        plan.context.check_blocks(cube.sizes[BAND], len(class_table(training).values))
    progress("classifier", 0, 1)
    classifier = clone(plan.model)
    probability = classifier.fit_predict_proba(cube, training, progress=progress)
    progress("classifier", 1, 1)
    if plan.weights:
        candidates = tune(plan, cube, training, fitted=classifier, progress=progress)
        plan = plan.with_weight(float(candidates["weight"][0]))
    model = MapModel(
        classifier,
        _chosen_rejector(plan, rejector),
        training_scene=TrainingScene.of(cube, training, classifier),
        title=plan.title,
        configuration=config_text({**plan.document, "groups": groups}),
    )
    if (test != NO_REFERENCE).any():
        maps = xr.Dataset({"probability": probability.compute(), "image": cube})
        model = model.tested(maps, test, progress=progress)
    return model


def _chosen_rejector(plan: Plan, name: str | None) -> RankedRejector:
    """Return the rejector of a plan that a map model uses, or say why it cannot."""
    if name is None:
        return plan.ranking
    ranked = {title: part for title, part in plan.rejectors.items() if part.has_threshold}
    if name not in ranked:
        raise ConfigError(
            f"The configuration has no rejector '{name}' with a threshold that could be carried to "
            f"another scene. There are: {', '.join(ranked) or 'none'}."
        )
    return cast("RankedRejector", ranked[name])
