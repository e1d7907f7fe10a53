"""Vector features: polygons and points with a class, from any file that GDAL's OGR reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyogrio
import pyogrio.errors
import shapely
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hsreject.errors import FileError, InputError
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a layer and their classes.

    Parameters
    ----------
    geometries : array of shapely geometries
        Without missing and empty ones.
    classes : array
        The class of each, as the attribute says it: whole numbers or text.
    crs : CRS or None
        Reference system of the coordinates.
    """

    geometries: NDArray[Any]
    classes: NDArray[Any]
    crs: CRS | None


@dataclass(frozen=True)
class LayerInfo:
    """What a layer holds, before its features are read."""

    layer: str
    geometry_type: str
    n_features: int
    attributes: tuple[str, ...]
    crs: CRS | None


def layer_info(path: Path, *, layer: str | None) -> LayerInfo:
    """Return what the layer of a vector file holds; the only one, or the one that was named."""
    with _vector_errors(path):
        layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
        if layer is None and len(layers) != 1:
            raise FileError(
                f"{path} has {len(layers)} layers with geometries: "
                f"{', '.join(layers) or 'none'}. Choose one with variable=NAME."
            )
        chosen = layers[0] if layer is None else layer
        if chosen not in layers:
            raise FileError(f"{path} has no layer '{chosen}'. It has: {', '.join(layers)}.")
        info = pyogrio.read_info(path, layer=chosen, force_feature_count=True)
    fields = tuple(str(name) for name in info["fields"])
    return LayerInfo(
        chosen, str(info["geometry_type"]), int(info["features"]), fields, _crs(info["crs"], path)
    )


def read_features(
    path: Path, *, attribute: str | None, layer: str | None, guesses: list[str]
) -> Features:
    """Return the features of a vector file with the class that `attribute` gives them."""
    info = layer_info(path, layer=layer)
    attributes = list(info.attributes)
    if attribute is None:
        raise InputError(
            f"{path} holds features; name the attribute with their class: attribute=NAME, one of "
            f"{', '.join(attributes) or 'none'}."
        )
    if attribute not in attributes:
        raise InputError(
            f"{path} has no attribute '{attribute}'. It has: {', '.join(attributes) or 'none'}."
            f"{nearest(attribute, attributes)}"
        )
    with _vector_errors(path):
        _, _, stored, columns = pyogrio.raw.read(path, layer=info.layer, columns=[attribute])
        geometries, classes = shapely.from_wkb(stored), columns[0]
    there = ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))
    known = np.array([_is_known(value) for value in classes], dtype=bool)
    for keep, lack in ((there, "geometry"), (known, f"value of '{attribute}'")):
        if not keep.all():
            guesses.append(f"{int((~keep).sum())} features without a {lack} were left out.")
    if not (there & known).any():
        raise FileError(
            f"{path} has no feature with a geometry and a value of '{attribute}' "
            f"(layer '{info.layer}' has {len(classes)} features)."
        )
    return Features(geometries[there & known], classes[there & known], info.crs)


def _is_known(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and bool(value == value)  # noqa: PLR0124  NaN is not itself


def number_classes(
    classes: NDArray[Any], names: Mapping[int, str], *, path: Path, guesses: list[str]
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the class of each feature as a number, and the names of the numbers.

    Whole numbers stay what they are, also those that are written as text. Other text is numbered as
    in `names`, or else alphabetically from 1.
    """
    if classes.dtype.kind in "iufb":
        numbers = classes.astype(np.int64)
        if not np.array_equal(numbers, classes):
            raise FileError(
                f"{path}: classes must be whole numbers or text (found {classes.dtype})."
            )
        if (numbers == NO_REFERENCE).any():
            guesses.append("Features of class 0 give no reference.")
        return numbers, dict(names)
    texts = [str(text).strip() for text in classes]
    if not set(texts) <= set(names.values()) and all(_WHOLE.fullmatch(text) for text in texts):
        guesses.append("The classes are whole numbers written as text: they keep these numbers.")
        return number_classes(np.array(texts, np.int64), names, path=path, guesses=guesses)
    if not names:
        names = dict(enumerate(sorted(set(texts)), start=1))
        guesses.append("The classes were numbered from 1 in alphabetical order of their names.")
    number_of = {name: number for number, name in names.items()}
    strange = sorted(set(texts) - set(number_of))
    if strange:
        raise FileError(
            f"{path} has the classes {', '.join(strange)}, which names does not list "
            f"(it lists {', '.join(number_of)})."
        )
    return np.array([number_of[text] for text in texts], dtype=np.int64), dict(names)


def _crs(text: str | None, path: Path) -> CRS | None:
    try:
        return CRS.from_user_input(text) if text else None
    except CRSError as error:
        raise FileError(f"{path} has a reference system that GDAL does not know: {error}") from None


@contextmanager
def _vector_errors(path: Path) -> Iterator[None]:
    """Turn what OGR has to say into one line about the file."""
    try:
        yield
    except FileError:
        raise
    except (
        pyogrio.errors.DataSourceError,
        pyogrio.errors.DataLayerError,
        pyogrio.errors.FieldError,
        pyogrio.errors.FeatureError,
        pyogrio.errors.GeometryError,
        shapely.errors.ShapelyError,
        UnicodeDecodeError,
    ) as error:
        said = " ".join(str(error).split()).partition("; It might help")[0]
        raise FileError(f"{path} cannot be read: {said}") from error
