"""Choosing parameters by cross-validation on the training pixels, without a look at the others.

The training pixels are dealt into folds, class by class. For every candidate the classifier learns
from all folds but one, the whole scene is classified and smoothed, and the pixels of the fold left
out are scored. Features learn from the scene and never see labels, so they are made only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.errors import ConfigError
from hsreject.features import FEATURES
from hsreject.progress import ProgressCallback
from hsreject.registry import build_part, check_count, check_keys, in_section
from hsreject.schema import CANDIDATE, NO_REFERENCE

if TYPE_CHECKING:
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.pipeline.plan import Plan

TUNED_SECTIONS = ("features", "classifier", "context")
"""The sections whose options can be chosen, in the order in which a scene passes through them."""

_SEPARATOR = "; "
_FLOOR = 1e-2  # the hidden field is often exactly 0 or 1, and a logarithm must stay finite

Fold = tuple[xr.DataArray, NDArray[np.bool_], NDArray[np.intp]]


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

    def settings(self, section: str) -> list[tuple[str, ...]]:
        """Return the settings to try in a section: every combination of its values."""
        lines = [
            [f"{address}={_toml(value)}" for value in values]
            for address, values in self.grid.items()
            if address.partition(".")[0] == section
        ]
        return list(product(*lines))


def tune(
    plan: Plan, cube: xr.DataArray, train: xr.DataArray, *, seed: int, progress: ProgressCallback
) -> xr.Dataset:
    """Return every candidate of the plan's tuning with its score, best first.

    `accuracy` on the training pixels left out decides; `log_score`, the mean logarithm of the field
    at their true class, breaks ties.
    """
    tuning = plan.tuning
    assert tuning is not None  # noqa: S101 (the caller has looked)
    tried: list[tuple[str, float, float]] = []
    of_features, of_classifier, of_context = map(tuning.settings, TUNED_SECTIONS)
    total = len(of_features) * len(of_classifier) * len(of_context)
    progress("tuning", 0, total)
    for first in of_features:
        features = _features(plan.changed(first).model, cube)
        for second in of_classifier:
            model = SceneClassifier(plan.changed((*first, *second)).model.classifier)
            folds = list(_held_out(model, features, train, tuning.n_folds, seed))
            for third in of_context:
                settings = (*first, *second, *third)
                score = _score(plan.changed(settings).context, folds, cube)
                tried.append((_SEPARATOR.join(settings), *score))
                progress("tuning", len(tried), total)
    tried.sort(key=lambda candidate: (-candidate[2], -candidate[1]))
    columns = zip(("settings", "log_score", "accuracy"), zip(*tried, strict=True), strict=True)
    return xr.Dataset({name: (CANDIDATE, list(values)) for name, values in columns})


def best_settings(tried: xr.Dataset) -> list[str]:
    """Return the settings of the best candidate, one text each."""
    return [text for text in str(tried["settings"].values[0]).split(_SEPARATOR) if text]


def _features(model: SceneClassifier, cube: xr.DataArray) -> xr.DataArray:
    features = cube
    for step in model.features:
        transformer = clone(build_part(FEATURES, step, section="features"))
        features = transformer.fit(features).transform(features)
    return features.compute()


def _held_out(
    model: SceneClassifier, features: xr.DataArray, train: xr.DataArray, n_folds: int, seed: int
) -> Iterator[Fold]:
    """Yield per fold: probabilities of the scene, its pixels, and their category numbers."""
    values = train.values
    pixels = np.flatnonzero(values != NO_REFERENCE)
    dealt = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for _, left_out in dealt.split(pixels, values.flat[pixels]):
        inside = np.isin(np.arange(values.size), pixels[left_out]).reshape(values.shape)
        kept = train.copy(data=np.where(inside, NO_REFERENCE, values))
        probability = model.fit_predict_proba(features, kept)
        known = np.isin(values, probability["category"].values)
        scored = inside & known & np.isfinite(probability.values[0])
        numbers = np.searchsorted(probability["category"].values, values[scored])
        yield probability, scored, numbers


def _score(
    context: SegSALSA | None, folds: Sequence[Fold], cube: xr.DataArray
) -> tuple[float, float]:
    """Return the mean log score and the accuracy over the pixels left out."""
    scores, hits = [], []
    for probability, scored, numbers in folds:
        field = probability
        if context is not None:
            field = context.solve(probability, image=cube).hidden_field
        inside = field.values[:, scored]
        floor = _FLOOR / len(inside)
        scores.append(np.log((1 - _FLOOR) * inside[numbers, np.arange(numbers.size)] + floor))
        hits.append(inside.argmax(axis=0) == numbers)
    return float(np.concatenate(scores).mean()), float(np.concatenate(hits).mean())


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield addresses and values: TOML reads an unquoted ``context.weight`` as nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
