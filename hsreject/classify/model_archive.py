"""Archives of trained parts: files that hold numbers and names, and run no code when opened."""

from __future__ import annotations

import inspect
import json
import uuid
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import skops.io
from skops.io.exceptions import UnsupportedTypeException, UntrustedTypesFoundException

from hsreject.errors import FileError, InputError

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


def write_archive(content: dict[str, Any], path: Path, *, overwrite: bool) -> Path:
    """Write `content` as a skops archive (a zip of JSON and NumPy arrays).

    It is written under another name first and then renamed: no half-written file is ever seen.
    """
    if path.exists() and not overwrite:
        raise FileError(f"{path} is already there. Pass overwrite=True or choose another name.")
    try:
        archive = skops.io.dumps(content, compression=zipfile.ZIP_DEFLATED)
    except UnsupportedTypeException as error:
        raise InputError(
            f"The model holds something that a model file cannot: {error} Fit it with parts that "
            "are made of numbers, strings and scikit-learn objects."
        ) from None
    _write_whole(path, archive)
    return path


def read_archive(path: Path, *, trusted: Iterable[str], made_by: str) -> Any:
    """Read what :func:`write_archive` wrote, making objects of known types only.

    Parameters
    ----------
    path : Path
        The file.
    trusted : iterable of str
        Names of the types that may be made, beside those of scikit-learn, SciPy and NumPy. A file
        that asks for any other is refused and nothing in it is touched.
    made_by : str
        What writes such files, for messages.
    """
    try:
        archive = path.read_bytes()
    except OSError as error:
        raise FileError(f"The model {path} cannot be read: {error.strerror or error}.") from None
    known = {*_SCIKIT_LEARN_PARTS, *trusted}
    try:
        wanted = skops.io.get_untrusted_types(data=archive)
        foreign = sorted(set(wanted) - known)
        content = None if foreign else skops.io.loads(archive, trusted=sorted(known))
    except _DAMAGE as error:
        raise FileError(
            f"{path} is no model file of hsreject, or it is damaged ({type(error).__name__}). "
            f"Save the model again with {made_by}."
        ) from None
    if foreign and all(name.startswith("hsreject.") for name in foreign):
        raise FileError(
            f"{path} is another kind of file of hsreject, or of another version (it holds "
            f"{', '.join(foreign)}). Nothing was loaded. Make one with {made_by}."
        )
    if foreign:
        raise FileError(
            f"{path} asks for types that are not trusted: {', '.join(foreign)}. Nothing was "
            "loaded. If they are your own, pass their names as trusted=[...]; if not, do not use "
            "this file."
        )
    return content


def check_format(content: Any, path: Path, *, form: str, version: int, made_by: str) -> None:
    """Raise unless an archive holds what it should, in a version that can be read."""
    if not isinstance(content, dict) or content.get("format") != form:
        raise FileError(
            f"{path} holds {_what(content)}, not {_with_article(form)}. Make one with {made_by}."
        )
    if content.get("format_version") != version:
        raise FileError(
            f"{path} has format version {content.get('format_version')}; this hsreject reads "
            f"version {version}. Use the version of hsreject that wrote it, or train again."
        )


def names_of(parts: Iterable[object]) -> list[str]:
    """Return the names under which an archive stores the types among `parts`."""
    return [f"{part.__module__}.{part.__qualname__}" for part in parts if inspect.isclass(part)]


def _what(content: Any) -> str:
    if isinstance(content, dict) and isinstance(content.get("format"), str):
        return _with_article(content["format"])
    return f"a {type(content).__name__}"


def _with_article(form: str) -> str:
    return f"a {form.removeprefix('hsreject ')} of hsreject"


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
