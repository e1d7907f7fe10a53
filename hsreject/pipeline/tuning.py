"""Choosing parameters by cross-validation on the training pixels, without a look at the others.

The model maps the whole scene without one fold of the training pixels after the other, the context
of every candidate settles each map, and the pixels of the fold are scored. Polygons are left out
whole, and count alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import softmax

from hsreject.classify.pool import (
    at_temperature,
    best_temperature,
    brier_scores,
    floored_log,
)
from hsreject.errors import ConfigError
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count, check_keys, in_section
from hsreject.sampling.polygons import CLUMPED, clump_size, polygon_numbers
from hsreject.schema import CANDIDATE, CATEGORY

if TYPE_CHECKING:
    from hsreject.classify.scene_model import SceneModel
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.pipeline.plan import Plan

TUNED_SECTIONS = ("features", "classifier", "context")
"""The sections whose options can be chosen, in the order in which a scene passes through them."""

_SEPARATOR = "; "
_NEAR_ENOUGH = 1e-2  # relative gap; at 1e-3 the same weights were chosen, at twice the time

# Field (pixel, category), numbers of the true classes, weights
Pixels = tuple[NDArray[np.floating[Any]], NDArray[np.intp], NDArray[np.float64]]


@dataclass(frozen=True)
class Tuning:
    """What is tried, and into how many folds the training pixels are dealt."""

    grid: Mapping[str, Sequence[Any]]  # such as {"context.weight": [1.0, 2.0, 4.0]}
    n_folds: int = 5

    @classmethod
    def from_table(cls, table: object) -> Tuning:
        """Return the tuning of a configuration's [tuning], or say what is wrong with it."""
        if not isinstance(table, Mapping) or not isinstance(table.get("grid"), Mapping):
            raise ConfigError(
                '[tuning] needs a table [tuning.grid] with lines such as "context.weight" = [1, 2].'
            )
        check_keys(table, ("n_folds", "grid"), section="tuning")
        grid = dict(_flat(table["grid"]))
        for address, values in grid.items():
            if address.partition(".")[0] not in TUNED_SECTIONS:
                raise ConfigError(
                    f"[tuning.grid] '{address}' must begin with {', '.join(TUNED_SECTIONS)}: "
                    "only these can be tuned."
                )
            if not isinstance(values, Sequence) or isinstance(values, str) or not values:
                raise ConfigError(f"[tuning.grid] '{address}' needs a list of values to try.")
        n_folds = table.get("n_folds", cls.n_folds)
        with in_section("tuning"):
            check_count("n_folds", n_folds, least=2)
        return cls(grid, n_folds)

    @property
    def of_model(self) -> bool:
        """Whether features or classifier are chosen, and not the context alone."""
        return any(address.partition(".")[0] != "context" for address in self.grid)

    def settings(self, section: str) -> list[tuple[str, ...]]:
        """Return the settings to try in a section: every combination of its values."""
        lines = [
            [f"{address}={_toml(value)}" for value in values]
            for address, values in self.grid.items()
            if address.partition(".")[0] == section
        ]
        return list(product(*lines))


def tune(
    plan: Plan,
    cube: xr.DataArray,
    train: xr.DataArray,
    *,
    fitted: SceneModel | None = None,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return every candidate of the plan's tuning with its scores, best first.

    The `brier_score` of the training pixels left out decides, each fold at the temperature that
    suits the others best: the field of a context ranks, and is nearly 0 or 1, so it is calibrated
    before it is judged. Of equals the first in the grid is taken. `temperature` is that of all
    folds together; `accuracy`, which is too rough to choose by, is for the reader.
    Where only the context is chosen, the plan's own model, `fitted`, need not be fitted again.
    """
    tuning = plan.tuning
    assert tuning is not None  # noqa: S101 (the caller has looked)
    of_features, of_classifier, of_context = map(tuning.settings, TUNED_SECTIONS)
    models = [(*first, *second) for first, second in product(of_features, of_classifier)]
    rows: list[tuple[str, float, float, float]] = []
    weight = _weights(train)
    done, total = 0, len(models) * len(of_context) * tuning.n_folds
    progress("tuning", done, total)
    for settings in models:
        varied = plan.changed(settings)
        model = varied.model if settings or fitted is None else fitted
        contexts = [_guided(varied.changed(further).context, cube) for further in of_context]
        pixels: list[list[Pixels]] = [[] for _ in contexts]
        for probability, left_out in model.held_out_proba(cube, train, n_folds=tuning.n_folds):
            for context, fold_pixels in zip(contexts, pixels, strict=True):
                fold_pixels.append(_scored(settled(context, probability), train, left_out, weight))
                done += 1
                progress("tuning", done, total)
        for further, fold_pixels in zip(of_context, pixels, strict=True):
            rows.append((_SEPARATOR.join((*settings, *further)), *_scores(fold_pixels)))
    rows.sort(key=lambda candidate: candidate[1])
    names = ("settings", "brier_score", "temperature", "accuracy")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return xr.Dataset({name: (CANDIDATE, list(values)) for name, values in columns})


def best_settings(tried: xr.Dataset) -> list[str]:
    """Return the settings of the best candidate, one text each."""
    return [text for text in str(tried["settings"].values[0]).split(_SEPARATOR) if text]


def settled(
    context: SegSALSA | None,
    probability: xr.DataArray,
    *,
    image: xr.DataArray | None = None,
    progress: ProgressCallback = no_progress,
) -> xr.DataArray:
    """Return the field that decides: that of the context, or the probabilities without any."""
    if context is None:
        return probability
    return context.solve(probability, image=image, progress=progress).hidden_field


def label_probability(field: xr.DataArray, temperature: float) -> xr.DataArray:
    """Return how probable the labels of a field are, (y, x), at a temperature of held-out maps."""
    plain = field.isel({CATEGORY: 0}, drop=True).drop_attrs(deep=False)
    honest = at_temperature(field.values, temperature, axis=0)
    return plain.copy(data=honest.max(axis=0)).rename("label_probability")


def _guided(context: SegSALSA | None, cube: xr.DataArray) -> SegSALSA | None:
    """Return a context that knows its image edges already, and need not solve to the last digit."""
    if context is None:
        return None
    layers = context.guide(cube)
    guided = context if layers is None else context.in_block(layers.values)
    return replace(guided, tol=max(context.tol, _NEAR_ENOUGH))


def _weights(train: xr.DataArray) -> NDArray[np.float64]:
    """Return what each training pixel (y, x) counts: polygons count alike, whatever their size."""
    if not clump_size(train) >= CLUMPED:
        return np.ones(train.shape)
    numbers = polygon_numbers(train)
    share: NDArray[np.float64] = 1 / np.bincount(numbers.ravel())[numbers]
    return share


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
    if not folds:  # a single pixel per class: nothing can be left out, and all candidates are equal
        return np.nan, 1.0, np.nan
    field, numbers, weight = (np.concatenate(parts) for parts in zip(*folds, strict=True))
    fold = np.repeat(np.arange(len(folds)), [len(of_fold) for _, of_fold, _ in folds])
    scores, brier = floored_log(field), np.empty(len(fold))
    for number in np.unique(fold):
        inside, others = fold == number, fold != number
        warmth = best_temperature(scores[others], numbers[others], weight[others])
        brier[inside] = brier_scores(softmax(scores[inside] / warmth, axis=1), numbers[inside])
    right = field.argmax(axis=1) == numbers
    accuracy, score = (float(np.average(values, weights=weight)) for values in (right, brier))
    return score, best_temperature(scores, numbers, weight), accuracy


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield addresses and values: TOML reads an unquoted ``context.weight`` as nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
