"""Map models on disk, in a format that runs no code when it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from hsreject.classify.model_archive import check_format, names_of, read_archive, write_archive
from hsreject.classify.model_file import check_fitted, checked_classifier, classifier_types
from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS, SegSALSA
from hsreject.errors import FileError, InputError
from hsreject.mapping.map_model import MapModel
from hsreject.rejection import REJECTORS, RankedRejector

FORMAT = "hsreject map model"
FORMAT_VERSION = 1
_MADE_BY = "'hsreject train'"


def save_map_model(model: MapModel, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a map model to a file: classifier, context, confidence, classes and calibration.

    The file is a skops archive (a zip of JSON and NumPy arrays). It appears complete or not at all.

    Parameters
    ----------
    model : MapModel
        Of :func:`hsreject.train`.
    path : path
        Where to write; ``.skops`` is the usual ending.
    overwrite : bool
        Replace a file that is already there.
    """
    if not isinstance(model, MapModel):
        raise InputError(
            f"Only a MapModel can be saved here (got {type(model).__name__}). "
            "Train one with hsreject.train, or save a classifier with hsreject.save_model."
        )
    check_fitted(model.classifier)
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "classifier": model.classifier,
        "rejector": model.rejector,
        "calibration": dict(model.calibration),
        "title": model.title,
        "configuration": model.configuration,
    }
    return write_archive(content, Path(path), overwrite=overwrite)


def load_map_model(path: str | PathLike[str], *, trusted: Sequence[str] = ()) -> MapModel:
    """Read a map model, running no code that the file brings along.

    Only types of hsreject (those in its registries), scikit-learn, SciPy and NumPy are made; a file
    that asks for any other is refused and nothing in it is touched.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Names of further types that may be made, such as ``"my_package.MyPrior"``: your own, never
        those that an unknown file asks for.
    """
    path = Path(path)
    content = read_archive(path, trusted=[*_map_types(), *trusted], made_by=_MADE_BY)
    check_format(content, path, form=FORMAT, version=FORMAT_VERSION, made_by=_MADE_BY)
    rejector, calibration = content.get("rejector"), content.get("calibration")
    texts = [content.get("title"), content.get("configuration")]
    if (
        not isinstance(rejector, RankedRejector)
        or not _is_curve(calibration)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise FileError(f"{path} is damaged: parts of the map model are missing. Train again.")
    return MapModel(
        checked_classifier(content.get("classifier"), path, made_by=_MADE_BY),
        rejector,
        calibration=calibration,
        title=content["title"],
        configuration=content["configuration"],
    )


def _is_curve(calibration: object) -> bool:
    if not isinstance(calibration, Mapping):
        return False
    arrays = list(calibration.values())
    return all(isinstance(values, np.ndarray) and values.ndim == 1 for values in arrays) and (
        len({values.size for values in arrays}) <= 1
    )


def _map_types() -> list[str]:
    registries = (PRIORS, SOLVERS, CONFIDENCES, REJECTORS)
    parts = [part for registry in registries for part in registry.values()]
    return [*classifier_types(), *names_of([SegSALSA, *parts])]
