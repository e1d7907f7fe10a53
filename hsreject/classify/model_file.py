"""Model files: trained models on disk, in a format that runs no code when it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hsreject.classes import ClassTable
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.model_archive import check_format, names_of, read_archive, write_archive
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.classify.tree_check import trees_are_sound
from hsreject.errors import FileError, InputError
from hsreject.features import FEATURES
from hsreject.features.spectra import BandRequirements

FORMAT = "hsreject model"
FORMAT_VERSION = 1
_MADE_BY = "hsreject.save_model"


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
    check_fitted(model)
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "model": model}
    return write_archive(content, Path(path), overwrite=overwrite)


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
    content = read_archive(path, trusted=[*classifier_types(), *trusted], made_by=_MADE_BY)
    check_format(content, path, form=FORMAT, version=FORMAT_VERSION, made_by=_MADE_BY)
    return checked_classifier(content.get("model"), path, made_by=_MADE_BY)


def check_fitted(model: object) -> None:
    """Raise unless `model` is a fitted SceneClassifier, which is what files hold."""
    if not isinstance(model, SceneClassifier) or not hasattr(model, "classifier_"):
        raise InputError(
            f"Only a fitted SceneClassifier can be saved (got {type(model).__name__}). "
            "Call its fit method first."
        )


def checked_classifier(model: object, path: Path, *, made_by: str) -> SceneClassifier:
    """Return the model read from `path` if it is whole, fitted and safe to predict with."""
    if not isinstance(model, SceneClassifier) or not hasattr(model, "hsreject_version_"):
        raise FileError(f"{path} holds no fitted model. Save one with {made_by}.")
    if not trees_are_sound(model):
        raise FileError(
            f"{path} is damaged: a decision tree in it points outside itself. "
            f"Save the model again with {made_by}."
        )
    return model


def classifier_types() -> list[str]:
    """Return the names of the types that hsreject makes: the registered parts and their frame."""
    frame = (SceneClassifier, BandRequirements, ClassTable)
    return names_of([*frame, *FEATURES.values(), *CLASSIFIERS.values()])
