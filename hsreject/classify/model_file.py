"""Model files: trained models on disk, in a format that runs no code when it is opened."""

from __future__ import annotations

import inspect
import json
import uuid
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import skops.io
from skops.io.exceptions import UnsupportedTypeException, UntrustedTypesFoundException

from hsreject.classes import ClassTable
from hsreject.classify.bands import BandRequirements
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.features import FEATURES
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.classify.tree_check import trees_are_sound
from hsreject.errors import FileError, InputError

FORMAT = "hsreject model"
FORMAT_VERSION = 1

# Plain holders of numbers inside scikit-learn that skops leaves to its callers to trust.
_SCIKIT_LEARN_PARTS = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.multiclass._ConstantPredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",  # checked after loading, see tree_check
)

# What reading a damaged archive may raise, from the archive itself to the arrays inside.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    json.JSONDecodeError,
    UnsupportedTypeException,
    UntrustedTypesFoundException,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def save_model(model: SceneClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model to a file: features, classifier, class table and band requirements.

    The file is a skops archive (a zip of JSON and NumPy arrays). It is written under another name
    first and then renamed, so that no half-written model is ever seen.

    Parameters
    ----------
    model : SceneClassifier
        A fitted model.
    path : str or Path
        Where to write; ``.skops`` is the usual ending.
    overwrite : bool, default False
        Whether to replace a file that is already there.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
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
    if not isinstance(model, SceneClassifier) or not hasattr(model, "classifier_"):
        raise InputError(
            f"Only a fitted SceneClassifier can be saved (got {type(model).__name__}). "
            "Call its fit method first."
        )
    if path.exists() and not overwrite:
        raise FileError(f"{path} is already there. Pass overwrite=True or choose another name.")
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "model": model}
    try:
        archive = skops.io.dumps(content, compression=zipfile.ZIP_DEFLATED)
    except UnsupportedTypeException as error:
        raise InputError(
            f"The model holds something that a model file cannot: {error} Fit it with parts that "
            "are made of numbers, strings and scikit-learn objects."
        ) from None
    _write_whole(path, archive)
    return path


def load_model(path: str | Path, *, trusted: Sequence[str] = ()) -> SceneClassifier:
    """Read a model written by :func:`save_model`, running no code that the file brings along.

    Only types of hsreject (those in its registries), scikit-learn, SciPy and NumPy are made; a file
    that asks for any other is refused and nothing in it is touched.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : sequence of str, default ()
        Names of further types that may be made, such as ``"my_package.MyClassifier"``: your own,
        never those that an unknown file asks for.
    """
    path = Path(path)
    try:
        archive = path.read_bytes()
    except OSError as error:
        raise FileError(f"The model {path} cannot be read: {error.strerror or error}.") from None
    known = {*_own_types(), *_SCIKIT_LEARN_PARTS, *trusted}
    try:
        wanted = skops.io.get_untrusted_types(data=archive)
        foreign = sorted(set(wanted) - known)
        content = None if foreign else skops.io.loads(archive, trusted=sorted(known))
    except _DAMAGE as error:
        raise FileError(
            f"{path} is no model file of hsreject, or it is damaged ({type(error).__name__}). "
            "Save the model again with hsreject.save_model."
        ) from None
    if foreign:
        raise FileError(
            f"{path} asks for types that are not trusted: {', '.join(foreign)}. Nothing was "
            "loaded. If they are your own, pass their names as trusted=[...]; if not, do not use "
            "this file."
        )
    return _checked(content, path)


def _checked(content: Any, path: Path) -> SceneClassifier:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(
            f"{path} holds a {type(content).__name__}, not a model of hsreject. "
            "Save one with hsreject.save_model."
        )
    if content.get("format_version") != FORMAT_VERSION:
        raise FileError(
            f"{path} has format version {content.get('format_version')}; this hsreject reads "
            f"version {FORMAT_VERSION}. Use the version of hsreject that wrote it, or train again."
        )
    model = content.get("model")
    if not isinstance(model, SceneClassifier) or not hasattr(model, "hsreject_version_"):
        raise FileError(f"{path} holds no fitted model. Save one with hsreject.save_model.")
    if not trees_are_sound(model):
        raise FileError(
            f"{path} is damaged: a decision tree in it points outside itself. "
            "Save the model again with hsreject.save_model."
        )
    return model


def _own_types() -> list[str]:
    """Return the names of the types that hsreject makes: the registered parts and their frame."""
    registered = [*FEATURES.values(), *CLASSIFIERS.values()]
    parts = [part for part in registered if inspect.isclass(part)]
    frame = [SceneClassifier, BandRequirements, ClassTable]
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in (*frame, *parts)]


def _write_whole(path: Path, archive: bytes) -> None:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        try:
            part.write_bytes(archive)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(
            f"The model cannot be written to {path}: {error.strerror or error}. "
            "Choose a folder that exists and may be written to."
        ) from None
