"""What a run does: the objects that a configuration names, made once and ready to work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from os import PathLike
from typing import Any, cast

import numpy as np
import xarray as xr
from sklearn.base import clone

from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.classify.scene_model import SceneModel
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import ConfigError
from hsreject.features import FEATURES
from hsreject.handover.added_labels import added_labels, with_added
from hsreject.measures.choosing import Goal
from hsreject.pipeline.config import read_document, with_settings
from hsreject.pipeline.parts import BASELINES, SAMPLERS, SCENES, Files, Pair, Sections
from hsreject.plugins import load_plugins
from hsreject.registry import (
    Registry,
    bind_part,
    build_part,
    check_count,
    check_keys,
    check_number,
    in_section,
)
from hsreject.rejection import (
    REJECTORS,
    HierarchicalRejector,
    PixelwiseRejector,
    RankedRejector,
    Rejector,
    SequentialRejector,
)
from hsreject.schema import attach_classes, check_same_grid, class_table
from hsreject.schema.class_tree import ClassTree, groups_of
from hsreject.schema.classes import ClassTable

LOCATION_ONLY = "coordinates"  # the baseline that knows where a pixel lies and nothing else

SECTIONS = {
    "plugins": 'files or installed packages whose parts may be named, such as ["my_prior.py"]',
    "title": "what the report calls the run",
    "seed": "draws the training pixels; 0 by default",
    "goal": "one of accuracy, max_error, rejection_cost, fraction; fraction = 0.1 by default",
    "fraction": "the same as [goal] fraction: the share of the scene that is rejected",
    "scene": "the scene and its labels; needed",
    "sampling": "which labelled pixels to train on; 10 of each class by default",
    "add": 'answers to "hsreject next", further training pixels: path = "points.csv", or a list',
    "features": "what the classifier sees, a list; the bands by default, auto makes its own",
    "classifier": "auto by default; smlr for a list of features",
    "context": 'how neighbours help each other: none by default, or "auto"; weight may be a list',
    "rejectors": "a list; by default pixelwise, sequential in a context, hierarchical with groups",
    "groups": 'classes that may be answered together: corn = ["early", "late"]; none by default',
    "baselines": 'what to compare with: ["svm", "paper"], and always "coordinates"',
}
"""The keys of a configuration, and what they are."""

AUTO = "auto"
AUTO_WEIGHTS = (0.0, 0.5, 1.0, 2.0)  # tried where the weight is left to the training pixels
_CONTEXTS = Registry("context", {"segsalsa": SegSALSA})


@dataclass(frozen=True)
class Plan:
    """The parts of a run, as `SECTIONS` explains them."""

    document: Mapping[str, Any]  # the configuration itself
    title: str
    scene: Callable[[], Pair]  # returns the cube (band, y, x) and the labels (y, x)
    sampling: Callable[..., Pair]  # (labels, seed=) -> train, test: labels, 0 where not used
    model: SceneModel  # features and classifier, not fitted
    context: SegSALSA | None
    rejectors: Mapping[str, Rejector]  # by the name that tables and files use
    baselines: Mapping[str, Plan]
    goal: Goal  # what decides how much of the map is rejected
    seed: int
    weights: tuple[float, ...]  # of the context, of which cross-validation chooses; none if fixed

    def with_weight(self, weight: float) -> Plan:
        """Return this plan with a weight of the context; the rest stays as it is."""
        document = _with_weight(self.document, weight)
        return replace(self, document=document, **{**_varied_parts(document), "model": self.model})

    @property
    def carried(self) -> Plan:
        """The same plan with what a model keeps of it for other scenes; itself if that is all."""
        if not getattr(self.model, "spatial", False):
            return self
        return replace(self, model=clone(self.model).set_params(spatial=False))

    @property
    def delivered(self) -> str:
        """The name of the rejector whose map is delivered, fixed before any label is seen.

        The first that may answer coarser; else the first with a threshold and a context; else the
        first with a threshold; else the first.
        """
        names, parts = list(self.rejectors), self.rejectors
        ranked = [name for name in names if parts[name].has_threshold]
        coarser = [name for name in ranked if parts[name].answers_coarser]
        in_context = [name for name in ranked if parts[name].needs_context]
        return [*coarser, *in_context, *ranked, *names][0]

    @property
    def ranking(self) -> RankedRejector:
        """The delivered rejector; where that has no threshold, sequential in the same context."""
        rejector = self.rejectors[self.delivered]
        if not rejector.has_threshold:
            context = self.context
            rejector = PixelwiseRejector() if context is None else SequentialRejector(context)
        return cast("RankedRejector", rejector)

    @property
    def needs_p_value(self) -> bool:
        """Whether a rejector looks at how novel pixels are."""
        return any(rejector.needs_p_value for rejector in self.rejectors.values())

    def of_classes(self, classes: ClassTable, train: xr.DataArray) -> Plan:
        """Return this plan with groups of the classes that have training pixels."""
        trained = set(np.unique(train).tolist()) & set(classes.values)
        rejectors, document = dict(self.rejectors), self.document
        for name, part in self.rejectors.items():
            if not isinstance(part, HierarchicalRejector):
                continue
            with in_section("groups"):
                tree = part.tree(classes).subset(sorted(trained))
            if tree is None:
                raise ConfigError("[groups] No group has two classes with training pixels.")
            rejectors[name] = replace(part, groups=tree)
            document = {**document, "groups": tree}
        return replace(self, document=document, rejectors=rejectors)

    def load(self) -> Pair:
        """Return the scene and its labels, on one grid."""
        pair = self.scene()
        if not isinstance(pair, tuple) or [type(part) for part in pair] != [xr.DataArray] * 2:
            parts = [type(part).__name__ for part in (pair if isinstance(pair, tuple) else [pair])]
            raise ConfigError(
                f"[scene] must give two DataArrays, cube and labels (got {' and '.join(parts)}). "
                "Wrap plain arrays: xarray.DataArray(cube, dims=('band', 'y', 'x')) and "
                "xarray.DataArray(labels, dims=('y', 'x'))."
            )
        cube, labels = pair
        check_same_grid(cube, labels, names=("scene", "labels"))
        return cube, labels


def planned(
    config: str | PathLike[str] | Mapping[str, Any],
    settings: Iterable[str],
    goal: Goal | Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan of a configuration, or of the file that holds it, with changes applied."""
    document = config if isinstance(config, Mapping) else read_document(config)
    document = with_settings(document, settings)
    if goal is not None:
        document = {**document, "goal": goal}
        document.pop("fraction", None)
    return make_plan(document)


def make_plan(document: Mapping[str, Any]) -> Plan:
    """Return the plan that a configuration describes.

    Every table of `document` may be replaced by the object it names.
    """
    check_keys(document, tuple(SECTIONS), section="")
    load_plugins(_list(document.get("plugins", ()), "plugins"))
    if "scene" not in document:
        raise ConfigError(f"The configuration needs a [scene]. There are: {', '.join(SCENES)}.")
    title = document.get("title", "Land cover with rejection")
    if not isinstance(title, str):
        raise ConfigError(f"title must be text (got {title!r}).")
    seed = document.get("seed", 0)
    with in_section(""):
        check_count("seed", seed, least=0)
    scene = _scene(document["scene"])
    sampling = bind_part(SAMPLERS, document.get("sampling", "per_class"), section="sampling")
    if "add" in document:
        scene, sampling = _with_answers(scene, sampling, document["add"])
    plan = Plan(
        document=document,
        title=title,
        scene=scene,
        sampling=sampling,
        baselines={},
        goal=_goal(document),
        seed=int(seed),
        weights=_weights(document),
        **_varied_parts(document),
    )
    names = [*_list(document.get("baselines", ()), "baselines")]
    if LOCATION_ONLY not in names:
        names.append(LOCATION_ONLY)  # the baseline of every run
    with in_section("baselines"):
        sections = {str(name): BASELINES.create(name) for name in names}
    baselines = {  # which differ in nothing else
        name: replace(plan, document=other, weights=(), **_varied_parts(other))
        for name, other in sections.items()
    }
    _check_names(plan.rejectors, baselines)
    return replace(plan, baselines=baselines)


def _goal(document: Sections) -> Goal:
    """Return what decides how much is rejected."""
    goal, fraction = document.get("goal"), document.get("fraction")
    if goal is None:
        goal = {"fraction": 0.1 if fraction is None else fraction}
    elif fraction is not None:
        raise ConfigError("A run has one goal: leave out either [goal] or fraction.")
    return goal if isinstance(goal, Goal) else Goal.from_table(goal)


def _weights(document: Sections) -> tuple[float, ...]:
    """Return the weights of the context that are tried: a list, or those of an automatic one."""
    context = _as_table(document.get("context"))
    if not isinstance(context, Mapping):
        return ()
    weights = context.get("weight", AUTO_WEIGHTS if context.get("prior") == AUTO else None)
    if not isinstance(weights, list | tuple):
        return ()
    with in_section("context"):
        for weight in weights:
            check_number("weight", weight, least=0)
    return tuple(weights)


def _with_weight(document: Sections, weight: float) -> Sections:
    context = _table(_as_table(document["context"]), "context")
    return {**document, "context": {**context, "weight": weight}}


def _varied_parts(document: Sections) -> dict[str, Any]:
    """Return the parts in which baselines differ: model, context, and the rejectors that hold it.

    A context whose weight is 0 is none: its rejectors go, too, and the last becomes pixelwise.
    Until its weight is chosen, a context has the largest that is tried.
    """
    if weights := _weights(document):
        document = _with_weight(document, max(weights))
    context = _context(document.get("context"))
    groups = document.get("groups")
    usual = ["pixelwise"]
    usual += [] if context is None else ["sequential"]
    usual += [] if groups is None else ["hierarchical"]
    rejectors = _rejectors(document.get("rejectors", usual), context, groups)
    if context is not None and not any(getattr(p, "weight", 1.0) for p in context.priors):
        novelty = any(part.needs_p_value for part in rejectors.values())
        rejectors = {
            name: replace(part, context=None) if isinstance(part, HierarchicalRejector) else part
            for name, part in rejectors.items()
            if part.answers_coarser or not part.needs_context
        }
        rejectors = rejectors or {"pixelwise": PixelwiseRejector(novelty=novelty)}
        context = None
    return {
        "model": _model(document.get("features"), document.get("classifier")),
        "context": context,
        "rejectors": rejectors,
    }


def _scene(part: object) -> Callable[[], Pair]:
    """Return what gives cube and labels; both may be given themselves, as a tuple."""
    if isinstance(part, tuple) and len(part) == 2:
        return lambda: part
    if isinstance(part, str | Mapping) or callable(part):
        scene: Callable[[], Pair | Files] = bind_part(SCENES, part, section="scene")

        def load() -> Pair:
            pair = scene()
            return pair.load() if isinstance(pair, Files) else pair

        return load
    raise ConfigError(
        "[scene] must be a name, a table with a name, or a tuple (cube, labels) "
        f"(got {type(part).__name__})."
    )


def _with_answers(
    scene: Callable[[], Pair], sampling: Callable[..., Pair], answers: object
) -> tuple[Callable[[], Pair], Callable[..., Pair]]:
    """Return scene and sampling with further training pixels and the classes that these add."""
    table = _table({"path": answers} if isinstance(answers, str | PathLike) else answers, "add")
    check_keys(table, ("path", "new_classes"), section="add")
    if "path" not in table:
        raise ConfigError('[add] needs the file of the answers: path = "points.csv".')
    paths = [table["path"]] if isinstance(table["path"], str | PathLike) else table["path"]
    new_classes = _list(table.get("new_classes", ()), "add.new_classes")

    def added(labels: xr.DataArray) -> xr.DataArray:
        return added_labels(_list(paths, "add.path"), labels, new_classes=new_classes)

    def load() -> Pair:
        cube, labels = scene()
        return cube, attach_classes(labels, class_table(added(labels)))

    def sample(labels: xr.DataArray, *, seed: int) -> Pair:
        return with_added(*sampling(labels, seed=seed), added(labels))

    return load, sample


def _model(features: object, classifier: object) -> SceneModel:
    """Return the model; a classifier that maps scenes by itself takes no features."""
    if classifier is None:
        classifier = AUTO if features is None else "smlr"
    part = build_part(CLASSIFIERS, classifier, section="classifier")
    if not hasattr(part, "fit"):
        raise ConfigError(
            f"[classifier] {type(part).__name__} is not a classifier: it has no fit. Give the name "
            "of one, or an object with fit, predict_proba and classes_."
        )
    if not hasattr(part, "fit_predict_proba"):
        steps = _list(() if features is None else features, "features")
        return SceneClassifier(
            part, features=[build_part(FEATURES, step, section="features") for step in steps]
        )
    if not hasattr(part, "get_params"):
        raise ConfigError(
            f"[classifier] {type(part).__name__} cannot be copied: it has no get_params. Derive it "
            "from sklearn.base.BaseEstimator, and set nothing but its parameters in __init__."
        )
    if features:
        raise ConfigError(
            f"[features] cannot be used with {type(part).__name__}, which makes its own: leave "
            "[features] out, or name a classifier of samples, such as smlr."
        )
    return cast("SceneModel", part)


def _context(part: object) -> SegSALSA | None:
    """Return the context, or None where there is none.

    A table with ``prior = "vector_tv"`` takes the options of that prior and those of SegSALSA side
    by side; ``priors`` is a list of tables, one per prior. The name of a prior stands for a table
    that names it, and "auto" for vector TV whose borders follow the image.
    """
    if part is None or isinstance(part, SegSALSA):
        return part
    table = _table(_as_table(part), "context")
    options = [name for name in _CONTEXTS.options("segsalsa") if name != "prior"]
    own = {key: table.pop(key) for key in list(table) if key in options}
    priors = table.pop("priors", None)
    name = table.pop("prior", None)
    if name == AUTO:
        check_keys(table, ["weight", *options], section="context")
        name, table = "vector_tv", {"edges": "image", **table}
    if (priors is None) == (name is None):
        raise ConfigError(
            '[context] needs either prior = "..." with its options, or a list [[context.priors]]. '
            f"There are: {', '.join((AUTO, *PRIORS))}."
        )
    if priors is not None:
        check_keys(table, ["priors", *options], section="context")
        listed = _list(priors, "context.priors")
        parts = [build_part(PRIORS, prior, section="context.priors") for prior in listed]
    elif isinstance(name, str):
        check_keys(table, [*PRIORS.options(name), *options], section="context")
        parts = [build_part(PRIORS, {"name": name, **table}, section="context")]
    else:
        parts = [build_part(PRIORS, name, section="context.prior")]
    return build_part(_CONTEXTS, {"name": "segsalsa", "prior": parts, **own}, section="context")


def _as_table(context: object) -> object:
    return {"prior": context} if isinstance(context, str) else context


def _rejectors(parts: object, context: SegSALSA | None, groups: object) -> dict[str, Rejector]:
    if isinstance(parts, Mapping) and all(isinstance(part, Rejector) for part in parts.values()):
        return {str(name): part for name, part in parts.items()}
    rejectors: dict[str, Rejector] = {}
    for entry in _list(parts, "rejectors"):
        if isinstance(entry, Rejector):
            name = type(entry).__name__
            names = (f"{name} {number}" if number > 1 else name for number in count(1))
            rejectors[next(name for name in names if name not in rejectors)] = entry
            continue
        table = {"name": entry} if isinstance(entry, str) else _table(entry, "rejectors")
        title = str(table.pop("title", table.get("name")))
        if title in rejectors:
            raise ConfigError(
                f"[rejectors] '{title}' is there twice. Give one of them another title."
            )
        table = _completed(table, context, groups)
        rejectors[title] = build_part(REJECTORS, table, section="rejectors")
    return rejectors


def _completed(table: dict[str, Any], context: SegSALSA | None, groups: object) -> dict[str, Any]:
    """Return the table of a rejector with the context and the groups that it takes."""
    name = table.get("name")
    if not isinstance(name, str) or name not in REJECTORS:
        return table  # build_part says what is wrong
    options = REJECTORS.options(name)
    if "context" in table:
        raise ConfigError(f"[rejectors] '{name}' has the context of [context]: leave it out here.")
    check_keys(table, ["name", "title", *options], section="rejectors")
    if "context" in options:
        if context is None and options["context"].default is not None:
            raise ConfigError(f"[rejectors] '{name}' needs a [context].")
        table = {**table, "context": context}
    if "groups" in options and "groups" not in table:
        if not isinstance(groups, Mapping | ClassTree):
            raise ConfigError(
                f'[rejectors] \'{name}\' needs a table [groups], such as corn = ["early", "late"] '
                f"(got {groups!r}). 'hsreject groups' proposes one from a finished run."
            )
        with in_section("groups"):
            table = {**table, "groups": groups_of(groups)}
    return table


def _check_names(rejectors: Mapping[str, Rejector], baselines: Mapping[str, object]) -> None:
    """Raise unless every rejector has a name of its own that can be part of a file name."""
    if not rejectors:
        raise ConfigError(f"[rejectors] needs at least one. There are: {', '.join(REJECTORS)}.")
    for name in rejectors:
        plain = name.isprintable() and set(name).isdisjoint('/\\:*?"<>|')
        if not name or not plain or name in baselines:
            raise ConfigError(
                f"[rejectors] '{name}' cannot be part of a file name, or is the name of another "
                "row of the table. Give it a title of letters, digits, spaces, - and _."
            )


def _list(entries: object, section: str) -> Sequence[Any]:
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError(
            f"{section} must be a list (got {entries!r}). Write {section} = [...], or one table "
            f"[[{section}]], in double brackets, per entry."
        )
    return entries


def _table(entry: object, section: str) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"[{section}] must be a table (got {entry!r}).")
    return dict(entry)
