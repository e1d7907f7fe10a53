"""Train a map model: the configuration of a run, up to what another scene needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import xarray as xr
from sklearn.base import clone

from hsreject.config.document import read_document, with_settings
from hsreject.errors import ConfigError
from hsreject.mapping.map_model import MapModel, calibration_of
from hsreject.pipeline.plan import Plan, make_plan
from hsreject.pipeline.result import config_text
from hsreject.pipeline.tuning import best_settings, tune
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection import PixelwiseRejector, RankedRejector, SequentialRejector
from hsreject.schema import NO_REFERENCE, check_same_grid


def train(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    settings: Iterable[str] = (),
    rejector: str | None = None,
    progress: ProgressCallback = no_progress,
) -> MapModel:
    """Train on the scene of a configuration what it takes to map other scenes.

    The training pixels of the first seed fit features and classifier; on the test pixels every
    threshold is tried, so that the model can later answer which one a rejection cost or an accuracy
    asks for. A configuration with a [tuning] is tuned first, on the training pixels alone.

    Parameters
    ----------
    config : path or mapping
        As for :func:`hsreject.run`.
    settings : iterable of str
        Changes such as ``"context.weight=4"``.
    rejector : str, optional
        Which of the configuration's rejectors gives label and confidence. By default the first
        sequential one; without any, sequential rejection with the context of the configuration,
        or pixelwise rejection if it has none. Joint rejection has no threshold that could be
        carried to another scene.
    progress : callable
        Called with (stage, done, total).

    Examples
    --------
    >>> model = train({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...                "features": [{"name": "pca", "n_components": 5}], "classifier": "lda",
    ...                "context": {"prior": "vector_tv", "weight": 1.0}})
    >>> model.reach, len(model.classes.names)
    (16, 5)
    """
    given = config if isinstance(config, Mapping) else read_document(config)
    document = with_settings(given, settings)
    plan = make_plan(document)
    chosen = chosen_rejector(plan, rejector)
    cube, labels = plan.scene.load()
    check_same_grid(cube, labels, names=("scene", "labels"))
    training, test = plan.sampling.split(labels, seed=plan.seed)
    if plan.tuning is not None:
        tried = tune(document, plan.tuning, cube, training, seed=plan.seed, progress=progress)
        document = with_settings(document, best_settings(tried))
        plan = make_plan(document)
        chosen = chosen_rejector(plan, rejector)
    progress("classifier", 0, 1)
    classifier = clone(plan.model).fit(cube, training)
    progress("classifier", 1, 1)
    calibration = {}
    if (test != NO_REFERENCE).any():
        probability = classifier.predict_proba(cube, progress=progress).compute()
        maps = xr.Dataset({"probability": probability, "image": cube})
        calibration = calibration_of(chosen.operating_points(maps, test, progress=progress))
    return MapModel(
        classifier,
        chosen,
        calibration=calibration,
        title=plan.title,
        configuration=config_text(document),
    )


def chosen_rejector(plan: Plan, name: str | None) -> RankedRejector:
    """Return the rejector of a plan that a map model uses, or say why it cannot."""
    if name is not None:
        if name not in plan.rejectors:
            raise ConfigError(
                f"The configuration has no rejector '{name}'. "
                f"There are: {', '.join(plan.rejectors)}."
            )
        return _mappable(plan.rejectors[name], name)
    for label, rejector in plan.rejectors.items():
        if isinstance(rejector, SequentialRejector):
            return _mappable(rejector, label)
    if plan.context is not None:
        return SequentialRejector(plan.context)
    for label, rejector in plan.rejectors.items():
        if isinstance(rejector, RankedRejector):
            return _mappable(rejector, label)
    return PixelwiseRejector()


def _mappable(rejector: object, name: str) -> RankedRejector:
    if not isinstance(rejector, RankedRejector):
        raise ConfigError(
            f"The rejector '{name}' ({type(rejector).__name__}) has no threshold that could be "
            "carried to another scene. Choose a sequential or a pixelwise one."
        )
    return rejector
