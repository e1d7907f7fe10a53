"""Everything that a configuration may name, by the section that names it."""

from __future__ import annotations

from typing import Any

from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.features import FEATURES
from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS
from hsreject.pipeline.samplers import SAMPLERS
from hsreject.pipeline.sources import SCENES
from hsreject.registry import Registry
from hsreject.rejection import REJECTORS

REGISTRIES: dict[str, Registry[Any]] = {
    "scene": SCENES,
    "sampling": SAMPLERS,
    "features": FEATURES,
    "classifier": CLASSIFIERS,
    "context": PRIORS,
    "context solver": SOLVERS,
    "rejectors": REJECTORS,
    "rejectors confidence": CONFIDENCES,
}
