"""What a run does: the objects that a configuration names, made once and ready to work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import xarray as xr

from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS, SegSALSA
from hsreject.datasets.indian_pines import load_indian_pines
from hsreject.datasets.scenes import load_scene
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import ConfigError
from hsreject.features import FEATURES
from hsreject.io.labels import open_labels
from hsreject.io.scene import open_scene
from hsreject.pipeline.config import with_settings
from hsreject.pipeline.tuning import TUNED_SECTIONS, Tuning
from hsreject.registry import (
    Registry,
    bind_part,
    build_part,
    check_count,
    check_keys,
    check_number,
    in_section,
)
from hsreject.rejection import REJECTORS, Rejector
from hsreject.sampling import given_split, sample_blocks, sample_fraction, sample_per_class
from hsreject.schema import check_same_grid

CONTEXT_ROW = "SegSALSA alone"
"""What the table calls the context with nothing rejected."""

LONGEST_TITLE = 100
"""Bytes of the name of a rejector; a file name has 255, and some for what else it says."""

SECTIONS = {
    "title": "what the report calls the run",
    "seed": "draws the training pixels; 0 by default",
    "n_seeds": "how many seeds, from that one on; 1 by default",
    "fraction": "which part of the pixels the reject maps reject; 0.1 by default",
    "scene": "the scene and its labels; needed",
    "sampling": "which labelled pixels to train on; 10 of each class by default",
    "features": "what the classifier sees, a list; the bands by default",
    "classifier": "smlr by default",
    "context": "how neighbouring pixels help each other; none by default",
    "rejectors": "a list; pixelwise by default",
    "baselines": 'what to compare with: [] by default, or ["coordinates"]',
    "tuning": 'chosen by cross-validation: n_folds = 5 and grid = {"context.weight" = [1, 2]}',
}
"""The keys of a configuration, and what they are."""

Pair = tuple[xr.DataArray, xr.DataArray]


def _files(
    path: str,
    labels: str,
    *,
    attribute: str | None = None,
    variable: str | None = None,
    labels_variable: str | None = None,
    band_axis: int | None = None,
    names: Sequence[str] | None = None,
    align: Literal["exact", "nearest"] = "exact",
) -> Pair:
    """Open a scene file of your own (ENVI, GeoTIFF, .mat, .npy) and a label raster or polygons.

    Parameters
    ----------
    path : str
        The scene.
    labels : str
        Reference labels: a raster, an array, or a vector file.
    attribute : str, optional
        Of a vector file: the attribute that holds the class.
    variable, labels_variable : str, optional
        Of a .mat file: the name of the array.
    band_axis : int, optional
        Of a .mat or .npy array: which axis holds the bands, where the file does not say.
    names : list of str, optional
        Class names in the order of the label values, where the file has none.
    align : {"exact", "nearest"}
        Labels on another grid than the scene are an error, or are reprojected to the nearest
        pixel.
    """
    cube = open_scene(path, variable=variable, band_axis=band_axis)
    return cube, open_labels(
        labels, like=cube, attribute=attribute, variable=labels_variable, align=align, names=names
    )


def _fetched(scene: str, *, folder: str | None = None) -> Pair:
    """Load a well-known scene by its name (see `hsreject fetch`), downloaded on first use."""
    return load_scene(scene, folder=folder)


def _given(labels: xr.DataArray, train: str, test: str, *, seed: int = 0) -> Pair:
    """Open a split that was published as two label files on the grid of the scene."""
    del seed  # every sampler gets one; here nothing is drawn
    return given_split(open_labels(train, like=labels), open_labels(test, like=labels))


def _coordinates() -> SceneClassifier:
    """Classify by place alone: a system that is no better may owe its accuracy to the place."""
    return SceneClassifier("nearest_neighbor", features=["coordinates"])


SCENES: Registry[Pair] = Registry(
    "scene",
    {
        "files": _files,
        "indian_pines": load_indian_pines,
        "synthetic": synthetic_scene,
        "fetched": _fetched,
    },
)
SAMPLERS: Registry[Pair] = Registry(
    "sampling",
    {
        "per_class": sample_per_class,
        "fraction": sample_fraction,
        "blocks": sample_blocks,
        "given": _given,
    },
    supplied=("labels", "seed"),
)
BASELINES: Registry[SceneClassifier] = Registry("baseline", {"coordinates": _coordinates})
REGISTRIES: dict[str, Registry[Any]] = {
    "scene": SCENES,
    "sampling": SAMPLERS,
    "features": FEATURES,
    "classifier": CLASSIFIERS,
    "context": PRIORS,
    "context solver": SOLVERS,
    "rejectors": REJECTORS,
    "rejectors confidence": CONFIDENCES,
    "baselines": BASELINES,
}
"""Everything that a configuration may name, by the section that names it."""

_CONTEXTS = Registry("context", {"segsalsa": SegSALSA})


@dataclass(frozen=True)
class Plan:
    """The parts of a run, as `SECTIONS` explains them."""

    document: Mapping[str, Any]  # the configuration itself
    title: str
    scene: Callable[[], Pair]  # returns the cube (band, y, x) and the labels (y, x)
    sampling: Callable[..., Pair]  # (labels, seed=) -> train, test: labels, 0 where not used
    model: SceneClassifier  # features and classifier, not fitted
    context: SegSALSA | None
    rejectors: Mapping[str, Rejector]  # by the name that tables and files use
    baselines: Mapping[str, SceneClassifier]
    fraction: float
    seed: int
    n_seeds: int
    tuning: Tuning | None

    def changed(self, settings: Iterable[str]) -> Plan:
        """Return this plan with other features, classifier or context; the rest stays as it is."""
        tuned = {name: self.document[name] for name in TUNED_SECTIONS if name in self.document}
        document = {**self.document, **with_settings(tuned, settings)}
        return replace(self, document=document, **_varied_parts(document))

    def load(self) -> Pair:
        """Return the scene and its labels, on one grid."""
        cube, labels = self.scene()
        check_same_grid(cube, labels, names=("scene", "labels"))
        return cube, labels


def make_plan(document: Mapping[str, Any]) -> Plan:
    """Return the plan that a configuration describes.

    Every table of `document` may be replaced by the object it names.
    """
    check_keys(document, tuple(SECTIONS), section="")
    if "scene" not in document:
        raise ConfigError(f"The configuration needs a [scene]. There are: {', '.join(SCENES)}.")
    title = document.get("title", "Land cover with rejection")
    if not isinstance(title, str):
        raise ConfigError(f"title must be text (got {title!r}).")
    seed, n_seeds = document.get("seed", 0), document.get("n_seeds", 1)
    with in_section(""):
        fraction = check_number("fraction", document.get("fraction", 0.1), least=0, most=1)
        check_count("seed", seed, least=0)
        check_count("n_seeds", n_seeds, least=1)
    tuning = document.get("tuning")
    varied = _varied_parts(document)
    names = _list(document.get("baselines", ()), "baselines")
    with in_section("baselines"):
        baselines = {str(name): BASELINES.create(name) for name in names}
    _check_names(varied["rejectors"], baselines)
    return Plan(
        document=document,
        title=title,
        scene=_scene(document["scene"]),
        sampling=bind_part(SAMPLERS, document.get("sampling", "per_class"), section="sampling"),
        baselines=baselines,
        fraction=fraction,
        seed=int(seed),
        n_seeds=int(n_seeds),
        tuning=None if tuning is None else Tuning.from_table(tuning),
        **varied,
    )


def _varied_parts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that tuning may change: model, context, and the rejectors that hold it."""
    context = _context(document.get("context"))
    return {
        "model": _model(document.get("features", ()), document.get("classifier", "smlr")),
        "context": context,
        "rejectors": _rejectors(document.get("rejectors", ("pixelwise",)), context),
    }


def _scene(given: object) -> Callable[[], Pair]:
    """Return what gives cube and labels; both may be given themselves, as a tuple."""
    if isinstance(given, tuple) and len(given) == 2:
        return lambda: given
    if isinstance(given, str | Mapping) or callable(given):
        return bind_part(SCENES, given, section="scene")
    raise ConfigError(
        "[scene] must be a name, a table with a name, or a tuple (cube, labels) "
        f"(got {type(given).__name__})."
    )


def _model(features: object, classifier: object) -> SceneClassifier:
    if isinstance(classifier, SceneClassifier):
        return classifier
    return SceneClassifier(
        build_part(CLASSIFIERS, classifier, section="classifier"),
        features=[
            build_part(FEATURES, step, section="features") for step in _list(features, "features")
        ],
    )


def _context(given: object) -> SegSALSA | None:
    """Return the context, or None where there is none.

    A table with ``prior = "vector_tv"`` takes the options of that prior and those of SegSALSA side
    by side; ``priors`` is a list of tables, one per prior.
    """
    if given is None or isinstance(given, SegSALSA):
        return given
    table = _table(given, "context")
    options = [name for name in _CONTEXTS.options("segsalsa") if name != "prior"]
    own = {key: table.pop(key) for key in list(table) if key in options}
    priors = table.pop("priors", None)
    name = table.pop("prior", None)
    if (priors is None) == (name is None):
        raise ConfigError(
            '[context] needs either prior = "..." with its options, or a list [[context.priors]]. '
            f"There are: {', '.join(PRIORS)}."
        )
    if priors is not None:
        check_keys(table, ["priors", *options], section="context")
        listed = _list(priors, "context.priors")
        parts = [build_part(PRIORS, prior, section="context.priors") for prior in listed]
    elif isinstance(name, str):
        check_keys(table, [*PRIORS.options(name), *options], section="context")
        parts = [build_part(PRIORS, {"name": name, **table}, section="context")]
    else:
        parts = [name]
    return build_part(_CONTEXTS, {"name": "segsalsa", "prior": parts, **own}, section="context")


def _rejectors(given: object, context: SegSALSA | None) -> dict[str, Rejector]:
    if isinstance(given, Mapping) and "name" not in given:
        return {str(name): part for name, part in given.items()}  # objects by name
    rejectors: dict[str, Rejector] = {}
    for entry in _list(given, "rejectors"):
        table = {"name": entry} if isinstance(entry, str) else _table(entry, "rejectors")
        title = str(table.pop("title", table.get("name")))
        if title in rejectors:
            raise ConfigError(
                f"[rejectors] '{title}' is there twice. Give one of them another title."
            )
        rejectors[title] = build_part(REJECTORS, _with_context(table, context), section="rejectors")
    return rejectors


def _with_context(table: dict[str, Any], context: SegSALSA | None) -> dict[str, Any]:
    """Return the table of a rejector with the context it needs, or say why it cannot be."""
    name = table.get("name")
    if not isinstance(name, str) or name not in REJECTORS:
        return table  # build_part says what is wrong
    options = list(REJECTORS.options(name))
    if "context" in table:
        raise ConfigError(f"[rejectors] '{name}' has the context of [context]: leave it out here.")
    check_keys(table, ["name", "title", *options], section="rejectors")
    if "novelty_exponent" in table:
        raise ConfigError(
            f"[rejectors] '{name}': novelty_exponent says how novelty counts, and a run measures "
            "none. Leave it out; hsreject.Novelty measures it in Python."
        )
    if "context" not in options:
        return table
    if context is None:
        raise ConfigError(f"[rejectors] '{name}' needs a [context].")
    return {**table, "context": context}


def _check_names(rejectors: Mapping[str, Rejector], baselines: Mapping[str, object]) -> None:
    """Raise unless every rejector has a name of its own that can be part of a file name."""
    if not rejectors:
        raise ConfigError(f"[rejectors] needs at least one. There are: {', '.join(REJECTORS)}.")
    for name in rejectors:
        if len(name.encode(errors="replace")) > LONGEST_TITLE:
            raise ConfigError(
                f"[rejectors] '{name[:20]}...' is too long to be part of a file name. Give it a "
                f"title of at most {LONGEST_TITLE} letters."
            )
        if not name or not set(name).isdisjoint('/\\:*?"<>|') or not name.isprintable():
            raise ConfigError(
                f"[rejectors] '{name}' cannot be part of a file name. Give it a title of letters, "
                "digits, spaces, - and _."
            )
        if name in baselines or name == CONTEXT_ROW:
            raise ConfigError(
                f"[rejectors] '{name}' is the name of another row of the table. "
                "Give it another title."
            )


def _list(given: object, section: str) -> Sequence[Any]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError(
            f"{section} must be a list (got {given!r}). Write {section} = [...], or one table "
            f"[[{section}]], in double brackets, per entry."
        )
    return given


def _table(given: object, section: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"[{section}] must be a table (got {given!r}).")
    return dict(given)
