"""Trained models on disk: files that hold numbers and names, and run no code when opened."""

from __future__ import annotations

import inspect
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import skops.io
import xarray as xr
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.svm import SVC
from sklearn.tree._tree import Tree
from skops.io.exceptions import UnsupportedTypeException

from hsreject import __version__
from hsreject.class_tree import ClassTree, Group
from hsreject.classes import ClassTable
from hsreject.classify.candidates import TwoExperts
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.pool import Pool
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.classify.scene_model import SceneModel
from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS, SegSALSA
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.features import FEATURES
from hsreject.features.spectra import BandRequirements
from hsreject.files import existing, replacing
from hsreject.mapping.foreign import TrainingScene
from hsreject.mapping.map_model import MapModel
from hsreject.mapping.plugins import is_loaded, plugin_of
from hsreject.rejection import REJECTORS, Novelty, RankedRejector
from hsreject.rejection.novelty import Space
from hsreject.schema import BAND, CUBE_DIMS, WAVELENGTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "hsreject model"
FORMAT_VERSION = 4
"""Files name the modules of what they hold, so moving a class makes a new version."""

# Plain holders of numbers inside scikit-learn that skops leaves to its callers to trust.
_SCIKIT_LEARN_PARTS = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",  # checked after loading
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.multiclass._ConstantPredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",  # checked after loading
)
_LEAF = -1
_BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)

# A model holds numbers, which deflate makes a few times smaller; zip bombs are a thousand times.
_LARGEST_RATIO = 30
_ALWAYS_ALLOWED = 50_000_000  # bytes


def save_model(
    model: SceneModel | MapModel, path: str | PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a trained model to a file that appears complete or not at all.

    The file is a skops archive: a zip of JSON and NumPy arrays.

    Parameters
    ----------
    model : SceneModel or MapModel
        A fitted classifier of scenes, or a map model of :func:`hsreject.train`.
    path : path
        Where to write; ``.skops`` is the usual ending.
    overwrite : bool, default False
        Replace a file that is already there.

    Returns
    -------
    Path
        The path of the file.

    See Also
    --------
    hsreject.load_model : its inverse.
    hsreject.train : makes a model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hsreject import SceneClassifier, load_model, save_model
    >>> import tempfile
    >>> from hsreject.datasets.synthetic import synthetic_scene
    >>> cube, labels = synthetic_scene(rows=16, columns=16, n_bands=4)
    >>> model = SceneClassifier("lda", features=["scale"]).fit(cube, labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_model(save_model(model, Path(folder, "model.skops")))
    >>> again.predict_proba(cube).identical(model.predict_proba(cube))
    True
    """
    path = Path(path)
    classifier = model.classifier if isinstance(model, MapModel) else model
    if not _is_fitted(classifier):
        raise InputError(
            "Only a fitted model of scenes or a MapModel can be saved "
            f"(got {type(model).__name__}). Call its fit method first, or hsreject.train."
        )
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "model": model}
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


def load_model(path: str | PathLike[str], *, trusted: Sequence[str] = ()) -> SceneModel | MapModel:
    """Read a model written by :func:`save_model` without running code from the file.

    Only types of hsreject, scikit-learn, SciPy and NumPy are made; a file that asks for any other
    is refused as a whole.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default ()
        Names of further types that may be made, such as ``"my_package.MyPrior"``. Name your own
        types, never what an unknown file asks for.

    See Also
    --------
    hsreject.save_model : its inverse.
    hsreject.map_scene : maps with it.
    hsreject.load_plugins : first, where the model needs one.
    """
    path = existing(path)
    try:
        archive = path.read_bytes()
    except OSError as error:
        raise FileError(f"The model {path} cannot be read: {error.strerror or error}.") from None
    model = _content(archive, path, {*_SCIKIT_LEARN_PARTS, *_own_types(), *trusted}).get("model")
    if not _is_whole(model):
        raise FileError(f"{path} is damaged: parts of the model are missing. Train again.")
    for part in _compiled_parts(model, seen=set()):
        if not _is_sound(part):
            raise FileError(
                f"{path} is damaged: numbers of its {type(part).__name__} do not fit each other. "
                "Train again."
            )
    try:
        if isinstance(model, MapModel):
            model.tree  # noqa: B018 (raises where groups are not those of the classes)
        _try_out(model.classifier if isinstance(model, MapModel) else model)
    except Exception as error:  # noqa: BLE001  # arrays that do not fit each other raise anything
        raise FileError(
            f"{path} is damaged: the model in it cannot classify pixels ({type(error).__name__}). "
            "Train again."
        ) from None
    return model


def _content(archive: bytes, path: Path, known: set[str]) -> dict[str, Any]:
    """Return what an archive holds if it is a model of this version that asks for known types."""
    try:
        archive = _unpacked(archive, path)
        _check_version(archive, path)
        asked = set(skops.io.get_untrusted_types(data=archive))
        known |= {name for name in asked if is_loaded(name)}
        foreign = sorted(asked - known)
        if not foreign:
            content: dict[str, Any] = skops.io.loads(archive, trusted=sorted(known))
            return content
    except FileError:
        raise
    except Exception as error:  # noqa: BLE001  # a damaged archive may raise anything
        raise FileError(
            f"{path} is not a model file of hsreject, or it is damaged ({type(error).__name__}). "
            "Train again, or save the model again with hsreject.save_model."
        ) from None
    if needed := sorted({plugin for plugin in map(plugin_of, foreign) if plugin}):
        raise FileError(
            f"{path} needs the plugin {', '.join(needed)} (for {', '.join(foreign)}). Nothing was "
            f"loaded. If you trust it: --plugin {needed[0]}, or hsreject.load_plugins first."
        )
    raise FileError(
        f"{path} asks for types that are not trusted: {', '.join(foreign)}. Nothing was "
        "loaded. If they are your own, pass their names as trusted=[...]; if not, do not use "
        "this file."
    )


def _check_version(archive: bytes, path: Path) -> None:
    """Raise unless an archive says that this version has written it; no part of it is made."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        schema = json.loads(packed.read("schema.json"))
    parts = schema["content"] if isinstance(schema["content"], dict) else {}
    form = json.loads(parts["format"]["content"]) if "format" in parts else None
    if form != FORMAT:
        raise FileError(f"{path} is not a model of hsreject. Make one with 'hsreject train'.")
    version = int(parts["format_version"]["content"])
    formats = f"its format is {version}, this one reads {FORMAT_VERSION}"
    if version > FORMAT_VERSION:
        raise FileError(
            f"{path} was made by a newer version of hsreject ({formats}). Upgrade hsreject "
            f"(this is {__version__}), or train it again."
        )
    if version < FORMAT_VERSION:
        raise FileError(
            f"{path} was made by an older version of hsreject ({formats}): it knows neither "
            "unknown land cover nor on which scene it was tested. Train it again with 'hsreject "
            "train'."
        )


def _unpacked(archive: bytes, path: Path) -> bytes:
    """Return an archive without compression, unless it would be far larger than a model can be.

    What its directory says is checked first, and no more than that is ever unpacked.
    """
    plain = io.BytesIO()
    most = max(_LARGEST_RATIO * len(archive), _ALWAYS_ALLOWED)
    with zipfile.ZipFile(io.BytesIO(archive)) as packed, zipfile.ZipFile(plain, "w") as stored:
        members = packed.infolist()
        size = sum(member.file_size for member in members)
        if size > most:
            raise FileError(
                f"{path} would unpack to {size / 1e6:.0f} MB from {len(archive) / 1e6:.1f} MB, "
                "which no model does. Nothing was loaded. Do not use this file."
            )
        for name, member in {member.filename: member for member in members}.items():
            with packed.open(member) as stream:  # in pieces: at once, it might unpack any amount
                stored.writestr(name, b"".join(iter(lambda: stream.read(1 << 20), b"")))
    return plain.getvalue()


def _try_out(classifier: SceneModel) -> None:
    """Classify a few made-up pixels; a scene that the model does not like is not its fault."""
    wanted = classifier.band_requirements_
    values = np.random.default_rng(0).uniform(0.1, 0.9, (wanted.count, 8, 8)).astype(np.float32)
    cube = xr.DataArray(values, dims=CUBE_DIMS)
    if wanted.wavelength is not None:
        cube = cube.assign_coords({WAVELENGTH: (BAND, wanted.wavelength, {"units": "nm"})})
    with suppress(HsrejectError), np.errstate(all="ignore"):
        classifier.predict_proba(cube).compute()


def _own_types() -> list[str]:
    """Return the names of the types that models of hsreject are made of."""
    registries = (FEATURES, CLASSIFIERS, PRIORS, SOLVERS, CONFIDENCES, REJECTORS)
    parts = [part for registry in registries for part in registry.values()]
    frame = (
        *(MapModel, SceneClassifier, Pool, TwoExperts, BandRequirements, ClassTable, SegSALSA),
        *(TrainingScene, Novelty, Space, ClassTree, Group),
    )
    return [
        f"{part.__module__}.{part.__qualname__}"
        for part in (*frame, *parts)
        if inspect.isclass(part)
    ]


def _is_whole(model: object) -> TypeGuard[SceneModel | MapModel]:
    """Return whether a model read from a file has all its parts."""
    if isinstance(model, MapModel):
        state = vars(model)
        texts = (state.get("title"), state.get("configuration"))
        return (
            _is_whole(state.get("classifier"))
            and isinstance(state.get("rejector"), RankedRejector)
            and _is_curve(state.get("calibration"))
            and isinstance(state.get("training_scene"), TrainingScene | None)
            and all(isinstance(text, str) for text in texts)
        )
    return _is_fitted(model)


def _is_fitted(classifier: object) -> bool:
    """Return whether something is a model of scenes that has been fitted."""
    return isinstance(classifier, SceneModel) and hasattr(classifier, "hsreject_version_")


def _is_curve(calibration: object) -> bool:
    """Return whether something is a table of equally long columns of numbers."""
    if not isinstance(calibration, Mapping):
        return False
    columns = list(calibration.values())
    return (
        all(isinstance(column, np.ndarray) and column.ndim == 1 for column in columns)
        and len({column.size for column in columns}) <= 1
    )


def _is_sound(part: Any) -> bool:
    """Return whether a part that compiled code follows without looking stays within itself."""
    if isinstance(part, Tree):
        return _is_tree(
            part.children_left,
            part.children_right,
            part.feature,
            leaf=part.children_left == _LEAF,
            n_features=part.n_features,
        ) and bool(((part.children_left == _LEAF) == (part.children_right == _LEAF)).all())
    if isinstance(part, _BOOSTED):
        trees = (tree.nodes for round_ in part._predictors for tree in round_)  # noqa: SLF001
        return all(
            _is_tree(
                nodes["left"].astype(np.int64),
                nodes["right"].astype(np.int64),
                nodes["feature_idx"],
                leaf=nodes["is_leaf"].astype(bool),
                n_features=part.n_features_in_,
            )
            and not nodes["is_categorical"].any()  # whose sets of values are other tables
            for nodes in trees
        )
    vectors, counts = part.support_vectors_, np.asarray(part._n_support)  # noqa: SLF001
    n_classes = len(part.classes_)
    return bool(
        (counts >= 0).all()
        and counts.size == n_classes
        and counts.sum() == len(vectors) == len(part.support_)
        and part._dual_coef_.shape == (n_classes - 1, len(vectors))
        and part._intercept_.size == n_classes * (n_classes - 1) // 2
        and part._probA.size in {0, part._intercept_.size}  # noqa: SLF001
        and part._probB.size == part._probA.size  # noqa: SLF001
        and vectors.shape[1:] == (part.n_features_in_,)
    )


def _is_tree(
    left: NDArray[Any],
    right: NDArray[Any],
    feature: NDArray[Any],
    *,
    leaf: NDArray[np.bool_],
    n_features: int,
) -> bool:
    """Return whether nodes stay within their own table, every child behind its parent.

    An index outside the table reads foreign memory, a child before its parent runs for ever. Trees
    that scikit-learn has grown have neither.
    """
    inner = np.flatnonzero(~leaf)
    children = np.stack([left, right])[:, inner]
    return bool(
        (children > inner).all()
        and (children < leaf.size).all()
        and (feature[inner] >= 0).all()
        and (feature[inner] < n_features).all()
    )


def _compiled_parts(part: Any, *, seen: set[int]) -> Iterator[Any]:
    """Yield the decision trees and support vector machines inside a model, however deep."""
    fitted = not isinstance(part, BaseEstimator) or hasattr(part, "n_features_in_")
    if isinstance(part, (Tree, SVC, *_BOOSTED)) and fitted and id(part) not in seen:
        yield part
    if id(part) in seen or isinstance(part, str | bytes | int | float | None):
        return
    seen.add(id(part))
    if isinstance(part, dict):
        inside = list(part.values())
    elif isinstance(part, list | tuple | set):
        inside = list(part)
    elif isinstance(part, np.ndarray):
        inside = list(part.ravel()) if part.dtype == object else []
    else:
        inside = list(getattr(part, "__dict__", {}).values())
    for inner in inside:
        yield from _compiled_parts(inner, seen=seen)
