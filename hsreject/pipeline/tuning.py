"""Choosing parameters by cross-validation on the training pixels, without a look at the others.

The training pixels are dealt into folds, class by class. For every candidate the classifier learns
from all folds but one, the whole scene is classified and smoothed, and the pixels of the fold left
out are scored. Features learn from the scene and never see labels, so they are made only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.config.document import with_settings
from hsreject.config.parts import check_keys, fits
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import ConfigError
from hsreject.pipeline.parts import make_context, make_model
from hsreject.progress import ProgressCallback
from hsreject.schema import NO_REFERENCE

CANDIDATE = "candidate"
SEPARATOR = "; "
TUNED_SECTIONS = ("features", "classifier", "context")
_KEYS = ("folds", "grid")
_FLOOR = 1e-2  # the hidden field is often exactly 0 or 1, and a logarithm must stay finite


@dataclass(frozen=True)
class Tuning:
    """What is tried: settings by stage, and into how many folds the training pixels are dealt.

    Attributes
    ----------
    grid : dict of str to list
        Values to try by address, such as ``{"context.weight": [1.0, 2.0, 4.0]}``.
    folds : int
        Number of folds, at least 2.
    """

    grid: Mapping[str, Sequence[Any]]
    folds: int = 5

    @classmethod
    def from_table(cls, table: object) -> Tuning:
        """Return the tuning of a configuration's [tuning], or say what is wrong with it."""
        if not isinstance(table, Mapping) or not isinstance(table.get("grid"), Mapping):
            raise ConfigError(
                '[tuning] needs a table [tuning.grid] with lines such as "context.weight" = [1, 2].'
            )
        check_keys(table, _KEYS, section="tuning")
        grid = dict(_flat(table["grid"]))
        for address, values in grid.items():
            if address.partition(".")[0] not in TUNED_SECTIONS:
                raise ConfigError(
                    f"[tuning.grid] '{address}' must begin with {', '.join(TUNED_SECTIONS)}: "
                    "only these can be tuned."
                )
            if not isinstance(values, Sequence) or isinstance(values, str) or not values:
                raise ConfigError(f"[tuning.grid] '{address}' needs a list of values to try.")
        folds = table.get("folds", cls.folds)
        if not fits(folds, int) or folds < 2:
            raise ConfigError(f"[tuning] folds must be a whole number of at least 2 (got {folds}).")
        return cls(grid, folds)

    def of(self, stage: str) -> list[tuple[str, ...]]:
        """Return the settings to try at a stage: every combination of its values."""
        lines = [
            [f"{address}={_toml(value)}" for value in values]
            for address, values in self.grid.items()
            if address.partition(".")[0] == stage
        ]
        return list(product(*lines))


def tune(
    document: Mapping[str, Any],
    tuning: Tuning,
    cube: xr.DataArray,
    train: xr.DataArray,
    *,
    seed: int,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return every candidate with its score, best first.

    Returns
    -------
    Dataset over `candidate`
        `settings`, `accuracy` on the training pixels left out, which decides, and `log_score`, the
        mean logarithm of the field at their true class, which breaks its ties.
    """
    candidates: list[tuple[tuple[str, ...], float, float]] = []
    stages = [tuning.of(stage) for stage in TUNED_SECTIONS]
    total = int(np.prod([len(stage) for stage in stages]))
    progress("tuning", 0, total)
    for feature_settings in stages[0]:
        changed = with_settings(document, feature_settings)
        features = _features(make_model(changed.get("features", ()), "lda"), cube)
        for classifier_settings in stages[1]:
            settings = (*feature_settings, *classifier_settings)
            model = make_model((), with_settings(document, settings).get("classifier", "smlr"))
            held_out = list(_held_out(model, features, train, tuning.folds, seed))
            for context_settings in stages[2]:
                complete = (*settings, *context_settings)
                context = make_context(with_settings(document, complete).get("context"))
                candidates.append((complete, *_score(context, held_out, cube)))
                progress("tuning", len(candidates), total)
    return _table(candidates)


def best_settings(tried: xr.Dataset) -> list[str]:
    """Return the settings of the best candidate, one text each."""
    return [text for text in str(tried["settings"].values[0]).split(SEPARATOR) if text]


def _features(model: SceneClassifier, cube: xr.DataArray) -> xr.DataArray:
    features = cube
    for transformer in model.features:
        assert not isinstance(transformer, str)  # noqa: S101 (make_model has built it)
        features = transformer.fit(features).transform(features)
    return features.compute()


Fold = tuple[xr.DataArray, NDArray[np.bool_], NDArray[np.intp]]


def _held_out(
    model: SceneClassifier, features: xr.DataArray, train: xr.DataArray, folds: int, seed: int
) -> Iterator[Fold]:
    """Yield, for each fold: probabilities of the scene, its pixels, and their category numbers."""
    values = train.values
    pixels = np.flatnonzero(values != NO_REFERENCE)
    dealt = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for _, left_out in dealt.split(pixels, values.flat[pixels]):
        inside = np.isin(np.arange(values.size), pixels[left_out]).reshape(values.shape)
        kept = train.copy(data=np.where(inside, NO_REFERENCE, values))
        probability = model.fit(features, kept).predict_proba(features)
        known = np.isin(values, probability["category"].values)
        has_data = np.isfinite(probability.values[0])
        scored = inside & known & has_data
        numbers = np.searchsorted(probability["category"].values, values[scored])
        yield probability, scored, numbers


def _score(
    context: SegSALSA | None, held_out: Sequence[Fold], cube: xr.DataArray
) -> tuple[float, float]:
    scores, hits = [], []
    for probability, scored, numbers in held_out:
        field = probability
        if context is not None:
            field = context.solve(probability, image=cube).hidden_field
        inside = field.values[:, scored]
        floor = _FLOOR / len(inside)
        scores.append(np.log((1 - _FLOOR) * inside[numbers, np.arange(numbers.size)] + floor))
        hits.append(inside.argmax(axis=0) == numbers)
    return float(np.concatenate(scores).mean()), float(np.concatenate(hits).mean())


def _table(candidates: Sequence[tuple[tuple[str, ...], float, float]]) -> xr.Dataset:
    ordered = sorted(candidates, key=lambda candidate: (-candidate[2], -candidate[1]))
    return xr.Dataset(
        {
            "settings": (CANDIDATE, [SEPARATOR.join(settings) for settings, _, _ in ordered]),
            "log_score": (CANDIDATE, [score for _, score, _ in ordered]),
            "accuracy": (CANDIDATE, [accuracy for _, _, accuracy in ordered]),
        }
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield addresses and values: TOML reads an unquoted ``context.weight`` as nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
