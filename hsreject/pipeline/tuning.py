"""The weight of the context, chosen by cross-validation on the training pixels alone.

The model maps the whole scene without one fold of the training pixels after the other, every weight
of the context is solved on each map, and the pixels of the fold are scored. Polygons are left out
whole, and count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import softmax

from hsreject.classify.pool import best_temperature, brier_scores, floored_log
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import CANDIDATE, CATEGORY, DOUBTED
from hsreject.splits.polygons import CLUSTERED, cluster_size, polygon_numbers

if TYPE_CHECKING:
    from hsreject.classify.scene_model import SceneModel
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.pipeline.plan import Plan

_N_FOLDS = 5
_NEAR_ENOUGH = 1e-2  # relative gap; at 1e-3 the same weights were chosen, at twice the time

# Field (pixel, category), numbers of the true classes, weights
Pixels = tuple[NDArray[np.floating[Any]], NDArray[np.intp], NDArray[np.float64]]


def tune(
    plan: Plan,
    cube: xr.DataArray,
    train: xr.DataArray,
    *,
    fitted: SceneModel | None = None,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return every weight that the plan leaves open with its scores, best first.

    The `brier_score` of the training pixels left out decides, each fold at the temperature that
    suits the others best: the field of a context ranks, and is nearly 0 or 1, so it is calibrated
    before it is judged. Of equals the first in the plan is taken. `temperature` is that of all
    folds together; `accuracy`, which is too rough to choose by, is for the reader. What the plan's
    model has learned when it was `fitted` to these pixels need not be learned again.
    """
    maps_of = plan.model.held_out_proba if fitted is None else fitted.held_out_again
    contexts = [_guided(plan.with_weight(weight).context, cube) for weight in plan.weights]
    pixels: list[list[Pixels]] = [[] for _ in contexts]
    counts = np.ones(train.shape)
    if cluster_size(train) >= CLUSTERED:  # polygons count alike, whatever their size
        polygon = polygon_numbers(train)
        counts = 1 / np.bincount(polygon.ravel())[polygon]
    total = len(contexts) * _N_FOLDS
    progress("tuning", 0, total)
    for probability, left_out in maps_of(cube, train, n_folds=_N_FOLDS):
        trusted = left_out & ~np.asarray(probability.coords.get(DOUBTED, False))
        for context, of_folds in zip(contexts, pixels, strict=True):
            field = probability if context is None else context.solve(probability).hidden_field
            of_folds.append(_scored(field, train, trusted, counts))
            progress("tuning", sum(map(len, pixels)), total)
    rows = [(w, *_scores(folds)) for w, folds in zip(plan.weights, pixels, strict=True)]
    rows.sort(key=lambda row: row[1])
    names = ("weight", "brier_score", "temperature", "accuracy")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return xr.Dataset({name: (CANDIDATE, list(values)) for name, values in columns})


def _guided(context: SegSALSA | None, cube: xr.DataArray) -> SegSALSA | None:
    """Return a context that knows its image edges already, and need not solve to the last digit."""
    if context is None:
        return None
    layers = context.guide(cube)
    guided = context if layers is None else context.in_block(layers.values)
    return replace(guided, tol=max(context.tol, _NEAR_ENOUGH))


def _scored(
    field: xr.DataArray,
    train: xr.DataArray,
    left_out: NDArray[np.bool_],
    weight: NDArray[np.float64],
) -> Pixels:
    """Return the field of the pixels left out whose class the model knows, their class, weight."""
    values, categories = train.values, field[CATEGORY].values
    scored = left_out & np.isin(values, categories) & np.isfinite(field.values[0])
    numbers = np.searchsorted(categories, values[scored])
    return field.values[:, scored].T, numbers, weight[scored]


def _scores(folds: Sequence[Pixels]) -> tuple[float, float, float]:
    """Return Brier score, temperature and accuracy over the pixels left out of all folds."""
    if not any(len(weight) for *_, weight in folds):  # nothing was left out: all are equal
        return np.nan, 1.0, np.nan
    field, numbers, weight = (np.concatenate(parts) for parts in zip(*folds, strict=True))
    fold = np.repeat(np.arange(len(folds)), [len(of_fold) for _, of_fold, _ in folds])
    scores, brier = floored_log(field), np.empty(len(fold))
    for number in np.unique(fold):
        inside, others = fold == number, fold != number
        temperature = best_temperature(scores[others], numbers[others], weight[others])
        brier[inside] = brier_scores(softmax(scores[inside] / temperature, axis=1), numbers[inside])
    right = field.argmax(axis=1) == numbers
    accuracy, score = (float(np.average(values, weights=weight)) for values in (right, brier))
    return score, best_temperature(scores, numbers, weight), accuracy
