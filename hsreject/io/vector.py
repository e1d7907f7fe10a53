"""Vector features: polygons and points with a class, burnt onto the grid of a scene."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyogrio
import shapely
from rasterio._err import CPLE_BaseError  # rasterio raises it here and exports it nowhere
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rasterio.features import rasterize
from rasterio.warp import transform as transform_coordinates

from hsreject.errors import FileError, InputError
from hsreject.io.grid import Grid, crs_name, same_crs
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a layer and their classes."""

    geometries: NDArray[Any]  # of shapely, none missing or empty
    classes: NDArray[Any]  # one per feature, as its attribute says: whole numbers or text
    crs: CRS | None  # of the coordinates


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
            f"{path} holds features. Pass the attribute with their class: attribute=NAME, one of "
            f"{', '.join(attributes) or 'none'}."
        )
    if attribute not in attributes:
        raise InputError(
            f"{path} has no attribute '{attribute}'. It has: {', '.join(attributes) or 'none'}."
            f"{nearest(attribute, attributes)}"
        )
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

    Whole numbers stay what they are, even if written as text. Other text is numbered as in `names`,
    or else alphabetically from 1.
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


def burn(
    features: Features,
    numbers: NDArray[np.int64],
    grid: Grid,
    *,
    path: Path,
    guesses: list[str],
) -> NDArray[np.int64]:
    """Return the map of class numbers on a grid: a polygon fills the pixels whose centre it holds.

    A point fills the pixel it lies in. Where features overlap, the last one in the file counts.
    """
    geometries = _onto(features, grid, path=path, guesses=guesses)
    shape = (grid.height, grid.width)
    burnt: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
    if len(geometries):
        pairs = list(zip(geometries, numbers.tolist(), strict=True))
        burnt = rasterize(
            pairs, out_shape=shape, transform=grid.transform, fill=NO_REFERENCE, dtype=np.int64
        )
    if not burnt.any():
        west, south, east, north = shapely.total_bounds(geometries)
        raise InputError(
            f"No feature of {path} meets a pixel of the scene: the features reach from "
            f"({west:.10g}, {south:.10g}) to ({east:.10g}, {north:.10g}); the scene has {grid}."
        )
    _note_losses(geometries, numbers, burnt, grid, guesses)
    return burnt


def _onto(features: Features, grid: Grid, *, path: Path, guesses: list[str]) -> NDArray[Any]:
    if not grid.georeferenced:
        raise InputError(
            f"{path} cannot be put onto a scene without a place on a map. Give the scene a "
            "reference system and a transform (.rio.write_crs, .rio.write_transform)."
        )
    if features.crs is None or grid.crs is None:
        if features.crs is not None:
            raise InputError(
                f"{path} is in {crs_name(features.crs)}, but the scene does not say what it is in. "
                "Set it with scene.rio.write_crs(...)."
            )
        guesses.append(f"{path.name} has no reference system: taken for that of the scene.")
        return features.geometries
    if same_crs(features.crs, grid.crs):
        return features.geometries
    source, target = features.crs, grid.crs

    def move(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(
            transform_coordinates(source, target, points[:, 0], points[:, 1])[:2]
        )

    try:
        moved: NDArray[Any] = shapely.transform(features.geometries, move)
    except CPLE_BaseError as error:
        west, south, east, north = shapely.total_bounds(features.geometries)
        raise InputError(
            f"The coordinates of {path}, from ({west:.10g}, {south:.10g}) to ({east:.10g}, "
            f"{north:.10g}), are not in {crs_name(source)}, as it says, and cannot be brought into "
            f"{crs_name(target)}: {error.errmsg}. Correct its reference system."
        ) from error
    return moved


def _note_losses(
    geometries: NDArray[Any],
    numbers: NDArray[np.int64],
    burnt: NDArray[np.int64],
    grid: Grid,
    guesses: list[str],
) -> None:
    """Note where classes overlap, and classes whose features have no pixel centre."""
    covered = np.zeros(burnt.shape, dtype=np.int32)
    for number in np.unique(numbers):
        own = list(geometries[numbers == number])
        covered += rasterize(
            own, out_shape=burnt.shape, transform=grid.transform, default_value=1, dtype=np.uint8
        )
    if (shared := int((covered > 1).sum())) > 0:
        guesses.append(
            f"{shared} pixels lie in features of several classes: the last feature counts."
        )
    lost = sorted(set(numbers.tolist()) - set(np.unique(burnt).tolist()))
    if lost:
        guesses.append(
            f"The features of class {', '.join(map(str, lost))} have no pixel centre: not burnt."
        )


def _crs(text: str | None, path: Path) -> CRS | None:
    try:
        return CRS.from_user_input(text) if text else None
    except CRSError as error:
        raise FileError(f"{path} has a reference system that GDAL does not know: {error}") from None
