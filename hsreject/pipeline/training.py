"""Train a map model: the configuration of a run, up to what another scene needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, cast

import xarray as xr
from sklearn.base import clone

from hsreject.errors import ConfigError, FileError
from hsreject.files import folder_lock
from hsreject.mapping.map_model import MapModel, TrainingScene
from hsreject.pipeline.config import config_text
from hsreject.pipeline.plan import Plan, planned
from hsreject.pipeline.stages import CARRIED, STAGES, MappedScene, Stage, Stages, opened
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection import Novelty, RankedRejector
from hsreject.rejection.evidence import HIDDEN_FIELD, IMAGE, PROBABILITY
from hsreject.schema import BAND, NO_REFERENCE, class_table


def train(
    config: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
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
    out : path, optional
        The folder of a run (`out` of :func:`hsreject.run`): what it has fitted is not fitted again,
        and what is fitted now is kept there.
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
    plan = planned(config, settings)
    chosen_rejector(plan, rejector)  # says what is wrong before the work
    folder = None if out is None else Path(out)
    if folder is not None and not (folder / STAGES).is_dir():
        raise FileError(f"{folder} is not the folder of a run. Give one, or leave it out.")
    with nullcontext() if folder is None else folder_lock(folder):
        stages, labels = opened(plan, folder, progress)
        split = stages.split(plan, labels)
        check_carried(plan, stages, split)
        return map_model(plan, labels, stages, split, rejector=rejector)


def check_carried(plan: Plan, stages: Stages, split: Stage) -> None:
    """Raise where a context could not map other scenes: now, not when a map is made."""
    if plan.context is not None:
        n_classes = len(class_table(split.data["train"]).values)
        plan.context.check_blocks(stages.cube.sizes[BAND], n_classes)


def map_model(
    plan: Plan,
    labels: xr.DataArray,
    stages: Stages,
    split: Stage,
    *,
    mapped: MappedScene | None = None,
    rejector: str | None = None,
) -> MapModel:
    """Return the model of a plan for other scenes.

    What a run has `mapped`, or has left in its folder, is not fitted again.
    """
    cube, train, test = stages.cube, split.data["train"], split.data["test"]
    own = plan.carried.of_classes(class_table(labels), train)
    if plan.carried is not plan:  # the run has mapped its own scene by more than can be carried
        known = stages.finished(f"{CARRIED}classifier", own.model, split)
        if known is None:
            of_run = stages.finished("classifier", plan.model, split)
            fitted = of_run if mapped is None else mapped.pixelwise.fitted()
            known = None if fitted is None else fitted.carried()
        mapped = MappedScene.of(own, stages, split, None, prefix=CARRIED, known=known)
    elif mapped is None:
        mapped = MappedScene.of(own, stages, split, None)
    classifier = mapped.pixelwise.fitted()
    if classifier is None:  # its file is gone, or cannot hold such a model
        classifier = clone(own.model).fit(cube, train, progress=stages.progress)
    model = MapModel(
        classifier,
        chosen_rejector(mapped.plan, rejector),
        training_scene=TrainingScene.of(
            cube, train, classifier, novelty=stages.finished("novelty", Novelty(), split)
        ),
        title=plan.title,
        configuration=config_text({**mapped.plan.document, "groups": plan.document.get("groups")}),
    )
    if not (test != NO_REFERENCE).any():
        return model
    fields = [PROBABILITY, HIDDEN_FIELD]
    maps = mapped.in_context.data[[name for name in fields if name in mapped.in_context.data]]
    return model.tested(maps.assign({IMAGE: cube}), test, progress=stages.progress)


def chosen_rejector(plan: Plan, name: str | None) -> RankedRejector:
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
