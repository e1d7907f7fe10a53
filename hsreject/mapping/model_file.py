"""Trained models on disk: files that hold numbers and names, and run no code when opened."""

from __future__ import annotations

import inspect
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
import xarray as xr
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC
from sklearn.tree._tree import Tree
from skops.io.exceptions import UnsupportedTypeException

from hsreject import __version__
from hsreject.classify.scene_model import SceneModel
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.files import existing, replacing
from hsreject.mapping.map_model import MapModel
from hsreject.plugins import is_loaded, known_as, plugin_of
from hsreject.schema import BAND, CUBE_DIMS, LARGEST_LABEL, WAVELENGTH
from hsreject.schema.classes import ClassTable

FORMAT = "hsreject model"
FORMAT_VERSION = 5
"""Files name the modules of what they hold, so moving a class makes a new version."""

# A model holds numbers, which deflate makes a few times smaller; zip bombs are a thousand times.
_LARGEST_RATIO = 30
_ALWAYS_ALLOWED = 50_000_000  # bytes


def save_model(
    model: SceneModel | MapModel, path: str | PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a trained model to a file that appears complete or not at all, and return its path.

    The file is a skops archive: a zip of JSON and NumPy arrays.

    Parameters
    ----------
    model : SceneModel or MapModel
        A fitted classifier of scenes, or a map model of :func:`hsreject.train`.
    path : path
        Where to write; ``.skops`` is the usual ending.
    overwrite : bool, default False
        Replace a file that is already there.

    See Also
    --------
    hsreject.load_model : its inverse.
    hsreject.train : makes a model.

    Examples
    --------
    >>> import tempfile
    >>> import hsreject as hr
    >>> cube, labels = hr.synthetic_scene(rows=16, columns=16, n_bands=4)
    >>> model = hr.SceneClassifier("lda", features=["scale"]).fit(cube, labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = hr.load_model(hr.save_model(model, f"{folder}/model.skops"))
    >>> again.predict_proba(cube).identical(model.predict_proba(cube))
    True
    """
    classifier = _fitted_classifier(model)
    if classifier is None:
        raise InputError(
            "Only a fitted model of scenes or a MapModel can be saved "
            f"(got {type(model).__name__}). Call its fit method first, or hsreject.train."
        )
    classifier.carried()  # fits what is not fitted yet: a file holds no training pixels
    return write_fitted(model, Path(path), overwrite=overwrite)


def write_fitted(fitted: Any, path: Path, *, overwrite: bool) -> Path:
    """Write a model, or another fitted part of a run, as :func:`save_model` does."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "model": fitted}
    try:
        archive = skops.io.dumps(content, compression=zipfile.ZIP_DEFLATED)
    except UnsupportedTypeException as error:
        raise InputError(
            f"The model holds something that a model file cannot: {error} Fit it with parts that "
            "are made of numbers, strings and scikit-learn objects."
        ) from None
    with replacing(path, overwrite=overwrite) as part:
        part.write_bytes(archive)
    return path


def load_model(path: str | PathLike[str]) -> SceneModel | MapModel:
    """Read a model written by :func:`save_model` without running code from the file.

    Only types of hsreject, scikit-learn, SciPy and NumPy are made, and those of plugins that are
    loaded; a file that asks for any other is refused as a whole. Classes of a plugin are found by
    their names, whether it was a file or an installed package when the model was trained.

    Parameters
    ----------
    path : path
        The file.

    See Also
    --------
    hsreject.save_model : its inverse.
    hsreject.map_scene : maps with it.
    hsreject.load_plugins : first, where the model needs one.

    Examples
    --------
    >>> import tempfile
    >>> import hsreject as hr
    >>> cube, labels = hr.synthetic_scene(rows=16, columns=16, n_bands=4)
    >>> model = hr.SceneClassifier("lda").fit(cube, labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hr.load_model(hr.save_model(model, f"{folder}/model.skops"))
    SceneClassifier(classifier='lda')
    """
    path = existing(path)
    model = read_fitted(path)
    if fault := _fault(model):
        raise FileError(f"{path} is damaged: {fault}. Train again.")
    return model  # type: ignore[no-any-return]  # its type is what was just checked


def read_fitted(path: Path) -> Any:
    """Return what :func:`write_fitted` has written; like that, it runs no code from the file."""
    try:
        archive = _unpacked(path)
        types = set(skops.io.get_untrusted_types(data=archive))
        renamed = {name: known_as(name) or name for name in types if not _is_trusted(name)}
        if renamed:
            archive = _unpacked(path, renamed)
            types = {renamed.get(name, name) for name in types}
        _check_types(types, path)
        model = skops.io.loads(archive, trusted=sorted(types)).get("model")
    except FileError:
        raise
    except Exception as error:  # noqa: BLE001  # a damaged archive may raise anything
        raise FileError(
            f"{path} is not a model file of hsreject, or it is damaged ({type(error).__name__}). "
            "Train again, or save the model again with hsreject.save_model."
        ) from None
    try:
        misfit = _misfit(model)
    except Exception as error:  # noqa: BLE001  # arrays of other types raise anything
        misfit = f"its parts cannot be looked at ({type(error).__name__})"
    if misfit:
        raise FileError(f"{path} is damaged: {misfit}. Train again.")
    return model


def _unpacked(path: Path, renamed: Mapping[str, str] | None = None) -> bytes:
    """Return a model file without compression, if it is of this version and of a model's size.

    Types in `renamed` get the names that they have here.
    """
    plain, packed_size = io.BytesIO(), path.stat().st_size
    with zipfile.ZipFile(path) as packed, zipfile.ZipFile(plain, "w") as stored:
        size = sum(member.file_size for member in packed.infolist())
        if size > max(_LARGEST_RATIO * packed_size, _ALWAYS_ALLOWED):
            raise FileError(
                f"{path} would unpack to {size / 1e6:.0f} MB from {packed_size / 1e6:.1f} MB, "
                "which no model does. Nothing was loaded. Do not use this file."
            )
        for member in packed.infolist():
            with packed.open(member) as stream:  # no more of it than its directory says
                content = stream.read(member.file_size)
            if renamed and member.filename == "schema.json":
                schema = json.loads(content, object_hook=partial(_with_type, renamed))
                content = json.dumps(schema).encode()
            stored.writestr(member.filename, content)
        _check_version(json.loads(stored.read("schema.json"))["content"], path)
    return plain.getvalue()


def _with_type(renamed: Mapping[str, str], node: dict[str, Any]) -> dict[str, Any]:
    """Return a node of a schema with the type that it has here."""
    module, name = node.get("__module__"), node.get("__class__")
    if f"{module}.{name}" in renamed:
        node["__module__"] = renamed[f"{module}.{name}"].rpartition(".")[0]
    return node


def _check_version(parts: Any, path: Path) -> None:
    """Raise unless the schema of an archive says that this version has written it."""
    if "format" not in parts or json.loads(parts["format"]["content"]) != FORMAT:
        raise FileError(f"{path} is not a model of hsreject. Make one with 'hsreject train'.")
    version = int(parts["format_version"]["content"])
    if version == FORMAT_VERSION:
        return
    age, remedy = "a newer", f"Upgrade hsreject (this is {__version__}), or train it again."
    if version < FORMAT_VERSION:
        age = "an older"
        remedy = "It does not know unknown land cover. Train it again with 'hsreject train'."
    raise FileError(
        f"{path} was made by {age} version of hsreject (its format is {version}, this one reads "
        f"{FORMAT_VERSION}). {remedy}"
    )


def _check_types(types: set[str], path: Path) -> None:
    """Raise if a file asks for types that are neither ours nor those of a loaded plugin."""
    foreign = sorted(name for name in types if not _is_trusted(name))
    if foreign:
        plugins = sorted({plugin for plugin in map(plugin_of, foreign) if plugin})
        needed = f"needs the plugin {', '.join(plugins)} for" if plugins else "asks for"
        raise FileError(
            f"{path} {needed} types that are not trusted: {', '.join(foreign)}. Nothing was "
            "loaded, and no plugin that is has classes of these names. If you trust them: "
            f"--plugin {plugins[0] if plugins else 'FILE.py'}, or hsreject.load_plugins first, "
            "with the plugin as a file or installed; if not, do not use this file."
        )


def _is_trusted(type_name: str) -> bool:
    """Return whether a file may ask for a type."""
    return _is_harmless(type_name) or is_loaded(type_name)


def _is_harmless(type_name: str) -> bool:
    """Return whether a name is that of a class written in Python by hsreject or scikit-learn.

    Making one runs no code of the file. Functions, classes that a module only imports, and compiled
    classes are not trusted; trees are, because their numbers are checked after loading.
    """
    module_name, _, name = type_name.rpartition(".")
    if type_name == "sklearn.tree._tree.Tree":
        return True
    if module_name.partition(".")[0] not in {"hsreject", "sklearn"}:
        return False
    module = import_module(module_name)
    part = getattr(module, name, None)
    is_own = inspect.isclass(part) and part.__module__ == module_name
    return is_own and str(module.__file__).endswith(".py")


def _misfit(model: Any) -> str:
    """Return what in a file compiled code could not follow safely, or nothing."""
    for part in _all_parts(model, seen=set()):
        fits = _INVARIANTS.get(type(part))
        is_template = isinstance(part, BaseEstimator) and not hasattr(part, "n_features_in_")
        if fits is not None and not is_template and not fits(part):
            return f"numbers of its {type(part).__name__} do not fit each other"
    return ""


def _fault(model: Any) -> str:
    """Return what is wrong with a model that was read from a file, or nothing."""
    classifier = _fitted_classifier(model)
    if classifier is None:
        return "parts of the model are missing"
    try:
        bands = classifier.band_requirements_
        pixels = np.random.default_rng(0).uniform(0.1, 0.9, (bands.count, 8, 8))
        cube = xr.DataArray(pixels.astype(np.float32), dims=CUBE_DIMS)
        if bands.wavelength is not None:
            cube = cube.assign_coords({WAVELENGTH: (BAND, bands.wavelength, {"units": "nm"})})
        # a scene that the model refuses is not a fault of the file
        with suppress(HsrejectError), np.errstate(all="ignore"):
            classifier.predict_proba(cube).compute()
        if isinstance(model, MapModel):  # these raise where parts are missing or do not fit
            model.tree, model.halo, model.operating_points  # noqa: B018
            if model.training_scene is not None:
                model.training_scene.compare(cube, classifier, match_bands="exact")
    except Exception as error:  # noqa: BLE001  # arrays that do not fit each other raise anything
        return f"the model in it does not work ({type(error).__name__})"
    return ""


def _fitted_classifier(model: Any) -> SceneModel | None:
    classifier = vars(model).get("classifier") if isinstance(model, MapModel) else model
    is_fitted = isinstance(classifier, SceneModel) and hasattr(classifier, "hsreject_version_")
    return classifier if is_fitted else None


def _all_parts(part: Any, *, seen: set[int]) -> Iterator[Any]:
    """Yield everything inside a model, however deep."""
    if id(part) in seen or isinstance(part, str | bytes | int | float | None):
        return
    seen.add(id(part))
    yield part
    inside: Any = getattr(part, "__dict__", {})
    if isinstance(part, dict | list | tuple | set):
        inside = part
    elif isinstance(part, np.ndarray) and part.dtype == object:
        inside = part.ravel().tolist()
    for inner in inside.values() if isinstance(inside, dict) else inside:
        yield from _all_parts(inner, seen=seen)


def _nodes_fit(n_features: int, left: Any, right: Any, leaf: Any, feature: Any) -> bool:
    """Return whether nodes stay within their own table, every child behind its parent."""
    inner = np.flatnonzero(leaf == 0)
    children, features = np.stack([left, right])[:, inner], feature[inner]
    in_table = (children > inner) & (children < leaf.size)
    return bool(in_table.all() and ((features >= 0) & (features < n_features)).all())


def _tree_fits(tree: Any) -> bool:
    left, right = tree.children_left, tree.children_right
    leaf = left == -1
    ends = bool((leaf == (right == -1)).all())
    return ends and _nodes_fit(tree.n_features, left, right, leaf, tree.feature)


def _boosting_fits(model: Any) -> bool:
    tables = [tree.nodes for trees in model._predictors for tree in trees]  # noqa: SLF001
    names = ("left", "right", "is_leaf", "feature_idx")
    return all(
        _nodes_fit(model.n_features_in_, *(nodes[name].astype(np.int64) for name in names))
        and not nodes["is_categorical"].any()  # whose sets of values are other tables
        for nodes in tables
    )


def _vectors_fit(machine: Any) -> bool:
    n_classes, n_vectors = len(machine.classes_), len(machine.support_vectors_)
    n_pairs = n_classes * (n_classes - 1) // 2
    counts, slopes = np.asarray(machine._n_support), machine._probA  # noqa: SLF001
    return bool(
        machine.support_vectors_.shape == (n_vectors, machine.n_features_in_)
        and machine.support_.shape == (n_vectors,)
        and counts.shape == (n_classes,)
        and (counts >= 0).all()
        and counts.sum() == n_vectors
        and machine._dual_coef_.shape == (n_classes - 1, n_vectors)
        and machine._intercept_.shape == (n_pairs,)
        and slopes.size in {0, n_pairs}
        and slopes.shape == machine._probB.shape  # noqa: SLF001
    )


# Compiled code follows these numbers without looking: an index outside of its table reads foreign
# memory, a child before its parent runs for ever. Models that scikit-learn has fitted have neither.
def _table_fits(table: ClassTable) -> bool:
    """Return whether a class table holds what one may: checked again, as one that is made anew."""
    columns = (table.values, table.names, table.colors)
    return (
        all(isinstance(column, tuple) for column in columns)
        and all(isinstance(text, str) for text in (*table.names, *table.colors))
        and all(isinstance(n, int | np.integer) and n <= LARGEST_LABEL for n in table.values)
        and replace(table) == table
    )


_INVARIANTS: dict[type, Callable[[Any], bool]] = {
    ClassTable: _table_fits,
    Tree: _tree_fits,
    HistGradientBoostingClassifier: _boosting_fits,
    SVC: _vectors_fit,
}
