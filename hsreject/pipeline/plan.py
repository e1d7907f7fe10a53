"""What a run does: the objects that a configuration names, ready to work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.config.parts import build_part, check_keys, fits
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import ConfigError
from hsreject.pipeline.parts import as_table, make_context, make_model
from hsreject.pipeline.samplers import SAMPLERS, Sampler
from hsreject.pipeline.sources import SCENES, SceneSource, scene_of
from hsreject.pipeline.tuning import Tuning
from hsreject.rejection import REJECTORS, Rejector

CONTEXT_ROW = "SegSALSA alone"
"""What the table calls the context with nothing rejected."""

SECTIONS = {
    "title": "what the report calls the run",
    "seed": "of the training pixels; 0 by default",
    "repeat": "how many seeds, from that one on; 1 by default",
    "fraction": "which part of the pixels the reject maps reject; 0.1 by default",
    "scene": "the scene and its labels: needed",
    "sampling": "which labelled pixels to train on; 10 of each class by default",
    "features": "what the classifier sees, a list; the bands by default",
    "classifier": "smlr by default",
    "context": "what neighbours tell; nothing by default",
    "rejectors": "a list; pixelwise by default",
    "baselines": 'what to compare with: [] by default, or ["coordinates"]',
    "tuning": 'chosen by cross-validation: folds = 5 and grid = {"context.weight" = [1, 2]}',
}
"""The keys of a configuration, and what they are."""


@dataclass(frozen=True)
class Plan:
    """The parts of a run.

    Attributes
    ----------
    title : str
        What the report calls the run.
    scene : SceneSource
    sampling : Sampler
    model : SceneClassifier
        Features and classifier, not fitted.
    context : SegSALSA or None
        None maps pixel by pixel.
    rejectors : mapping of str to Rejector
        By the name that tables and files use.
    baselines : mapping of str to SceneClassifier
        What the table compares with.
    fraction : float
        Which part of the pixels the reject maps reject.
    seed, repeat : int
        First seed, and how many.
    tuning : Tuning or None
        What is chosen by cross-validation on the training pixels.
    """

    title: str
    scene: SceneSource
    sampling: Sampler
    model: SceneClassifier
    context: SegSALSA | None
    rejectors: Mapping[str, Rejector]
    baselines: Mapping[str, SceneClassifier]
    fraction: float
    seed: int
    repeat: int
    tuning: Tuning | None


def make_plan(document: Mapping[str, Any]) -> Plan:
    """Return the plan that a configuration describes.

    Parameters
    ----------
    document : mapping
        The sections of a configuration; every table may be replaced by the object it names.
    """
    check_keys(document, tuple(SECTIONS), section="")
    if "scene" not in document:
        raise ConfigError(f"The configuration needs a [scene]. There are: {', '.join(SCENES)}.")
    context = make_context(document.get("context"))
    rejectors = _rejectors(document.get("rejectors", ("pixelwise",)), context)
    baselines = _baselines(document.get("baselines", ()))
    _check_names(rejectors, baselines)
    tuning = document.get("tuning")
    return Plan(
        title=_text(document, "title", default="Land cover with rejection"),
        scene=build_part(SCENES, scene_of(document["scene"]), section="scene"),
        sampling=build_part(SAMPLERS, document.get("sampling", "per_class"), section="sampling"),
        model=make_model(document.get("features", ()), document.get("classifier", "smlr")),
        context=context,
        rejectors=rejectors,
        baselines=baselines,
        fraction=_share(document),
        seed=_count(document, "seed", default=0, least=0),
        repeat=_count(document, "repeat", default=1, least=1),
        tuning=None if tuning is None else Tuning.from_table(tuning),
    )


def _rejectors(given: object, context: SegSALSA | None) -> dict[str, Rejector]:
    if isinstance(given, Mapping) and "name" not in given:
        return {str(name): part for name, part in given.items()}  # objects by name
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError(
            f"[rejectors] must be a list of names or tables (got {given!r}). "
            "Write [[rejectors]] with double brackets, once a rejector."
        )
    rejectors: dict[str, Rejector] = {}
    for entry in given:
        table: dict[str, Any] = {"name": entry}
        if not isinstance(entry, str):
            table = dict(as_table(entry, "rejectors"))
        name = str(table.get("name"))
        if name in REJECTORS:  # if not, build_part says so
            _check_rejector(name, table)
            if "context" in REJECTORS.options(name):
                if context is None:
                    raise ConfigError(f"[rejectors] '{name}' needs a [context].")
                table["context"] = context
        label = str(table.pop("label", name))
        if label in rejectors:
            raise ConfigError(
                f"[rejectors] '{label}' is there twice. Give one of them another label."
            )
        rejectors[label] = build_part(REJECTORS, table, section="rejectors")
    return rejectors


def _check_rejector(name: str, table: Mapping[str, Any]) -> None:
    """Raise where a rejector is asked for what a run cannot give it."""
    if "context" in table:
        raise ConfigError(f"[rejectors] '{name}' has the context of [context]: leave it out here.")
    if "novelty_exponent" in table:
        raise ConfigError(
            f"[rejectors] '{name}': novelty_exponent says how novelty counts, and a run measures "
            "none. Leave it out; 'hsreject novelty' measures it, and so does Python."
        )


def _baselines(given: object) -> dict[str, SceneClassifier]:
    names = given if isinstance(given, Sequence) and not isinstance(given, str) else None
    if names is None:
        raise ConfigError(f"[baselines] must be a list of names (got {given!r}).")
    known = {"coordinates": lambda: SceneClassifier("nearest_neighbor", features=["coordinates"])}
    for name in names:
        if name not in known:
            raise ConfigError(f"Unknown baseline '{name}'. There are: {', '.join(known)}.")
    return {str(name): known[str(name)]() for name in names}


def _check_names(rejectors: Mapping[str, Rejector], baselines: Mapping[str, object]) -> None:
    """Raise unless every rejector has a name of its own that files can bear."""
    if not rejectors:
        raise ConfigError(f"[rejectors] needs at least one. There are: {', '.join(REJECTORS)}.")
    for name in rejectors:
        if not name or not set(name).isdisjoint('/\\:*?"<>|') or not name.isprintable():
            raise ConfigError(
                f"[rejectors] '{name}' cannot be part of a file name. Give it a label of letters, "
                "digits, spaces, - and _."
            )
        if name in baselines or name == CONTEXT_ROW:
            raise ConfigError(
                f"[rejectors] '{name}' is the name of another row of the table. "
                "Give it another label."
            )


def _text(document: Mapping[str, Any], key: str, *, default: str) -> str:
    value = document.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(f"'{key}' must be text (got {value!r}).")
    return value


def _count(document: Mapping[str, Any], key: str, *, default: int, least: int) -> int:
    value = document.get(key, default)
    if not fits(value, int) or value < least:
        raise ConfigError(f"'{key}' must be a whole number of at least {least} (got {value!r}).")
    return int(value)


def _share(document: Mapping[str, Any]) -> float:
    value = document.get("fraction", 0.1)
    if not fits(value, float) or not 0 <= value <= 1:
        raise ConfigError(f"'fraction' must be a number between 0 and 1 (got {value!r}).")
    return float(value)
