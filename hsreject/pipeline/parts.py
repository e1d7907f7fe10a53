"""The model and the context that a configuration describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.config.parts import build_part, check_keys
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import ConfigError
from hsreject.features import FEATURES
from hsreject.registry import Registry

_CONTEXTS = Registry("context", {"segsalsa": SegSALSA})
_SOLVER_OPTIONS = tuple(name for name in _CONTEXTS.options("segsalsa") if name != "prior")


def make_model(features: object, classifier: object) -> SceneClassifier:
    """Return the features and the classifier of a configuration as one model, not fitted."""
    if isinstance(classifier, SceneClassifier):
        return classifier
    if not isinstance(features, Sequence) or isinstance(features, str):
        raise ConfigError(
            f"[features] must be a list of names or tables (got {features!r}). "
            "Write [[features]] with double brackets, once a feature."
        )
    return SceneClassifier(
        build_part(CLASSIFIERS, classifier, section="classifier"),
        features=[build_part(FEATURES, step, section="features") for step in features],
    )


def make_context(given: object) -> SegSALSA | None:
    """Return the context of a configuration, or None where there is none.

    A table with ``prior = "vector_tv"`` takes the options of that prior and those of
    :class:`hsreject.SegSALSA` side by side; ``priors`` is a list of tables, one a prior.
    """
    if given is None or isinstance(given, SegSALSA):
        return given
    table = dict(as_table(given, "context"))
    own = {key: table.pop(key) for key in list(table) if key in _SOLVER_OPTIONS}
    priors = table.pop("priors", None)
    name = table.pop("prior", None)
    if (priors is None) == (name is None):
        raise ConfigError(
            '[context] needs either prior = "..." with its options, or a list [[context.priors]]. '
            f"There are: {', '.join(PRIORS)}."
        )
    if priors is not None:
        check_keys(table, ["priors", *_SOLVER_OPTIONS], section="context")
        parts = [build_part(PRIORS, prior, section="context.priors") for prior in priors]
    elif isinstance(name, str):
        PRIORS[name]  # an unknown name is the first mistake to tell
        known = [*PRIORS.options(name), *_SOLVER_OPTIONS]
        check_keys(table, known, section="context")
        parts = [build_part(PRIORS, {"name": name, **table}, section="context")]
    else:
        parts = [name]
    return build_part(_CONTEXTS, {"name": "segsalsa", "prior": parts, **own}, section="context")


def as_table(given: object, section: str) -> Mapping[str, Any]:
    """Return a section that must be a table."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"[{section}] must be a table (got {given!r}).")
    return given
