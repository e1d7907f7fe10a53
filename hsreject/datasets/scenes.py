"""Scenes by name: the collection of the University of the Basque Country, checked by SHA-256."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.io import loadmat

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.datasets.download import RemoteFile, fetch_file
from hsreject.datasets.indian_pines import corrected_bands
from hsreject.errors import FileError, InputError
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = "https://www.ehu.eus/ccwintco/index.php/Hyperspectral_Remote_Sensing_Scenes"
_UPLOADS = "https://www.ehu.eus/ccwintco/uploads"


@dataclass(frozen=True)
class Scene:
    """A scene with reference labels that can be fetched.

    Parameters
    ----------
    title : str
        What it is, with the sensor.
    cube, labels : RemoteFile
        MATLAB files, each with one array.
    classes : ClassTable
        The classes of the reference.
    """

    title: str
    cube: RemoteFile
    labels: RemoteFile
    classes: ClassTable


@cache
def scenes() -> dict[str, Scene]:
    """Return the scenes that can be fetched, by name.

    Examples
    --------
    >>> list(scenes())
    ['indian-pines', 'pavia-university', 'pavia-centre', 'salinas', 'salinas-a', 'ksc', 'botswana']
    """
    text = files("hsreject.datasets").joinpath("ehu_scenes.toml").read_text("utf-8")
    return {
        name: Scene(
            title=entry["title"],
            cube=_remote(entry["cube"]),
            labels=_remote(entry["labels"]),
            classes=ClassTable.from_names(entry["classes"], values=entry.get("values")),
        )
        for name, entry in tomllib.loads(text).items()
    }


def fetch_scene(
    name: str,
    *,
    folder: str | PathLike[str] | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[Path, Path]:
    """Return the files of a scene, downloaded unless they are there already.

    Parameters
    ----------
    name : str
        One of :func:`scenes`.
    folder : path, optional
        Where files are kept: the folder in the environment variable HSREJECT_DATA, or the user's
        cache, unless given. Files that were put there by hand are used; every file is checked
        against its SHA-256.
    progress : ProgressCallback
        Called as bytes arrive.

    Returns
    -------
    cube, labels : Path
        Two MATLAB files.
    """
    scene = _scene(name)
    cube, labels = (
        fetch_file(file, page=PAGE, folder=folder, progress=progress)
        for file in (scene.cube, scene.labels)
    )
    return cube, labels


def load_scene(
    name: str,
    *,
    folder: str | PathLike[str] | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return a scene and its reference labels, downloaded on first use.

    The files say nothing about wavelengths or place. Indian Pines gets the wavelengths published
    with it; the others have none.

    Parameters
    ----------
    name : str
        One of :func:`scenes`, for example ``"pavia-university"``.
    folder, progress
        As for :func:`fetch_scene`.

    Returns
    -------
    cube : DataArray, dims (band, y, x)
        In the integer type of the file.
    labels : DataArray of uint8, dims (y, x)
        0 where there is no reference; the class table is in the attributes.
    """
    scene = _scene(name)
    cube_path, labels_path = fetch_scene(name, folder=folder, progress=progress)
    attrs = {"title": scene.title, "references": PAGE}
    cube = xr.DataArray(
        np.ascontiguousarray(_only_array(cube_path, 3).transpose(2, 0, 1)),
        dims=schema.CUBE_DIMS,
        coords=corrected_bands() if scene is scenes()["indian-pines"] else None,
        name="cube",
        attrs=attrs,
    )
    labels = xr.DataArray(
        _only_array(labels_path, 2).astype(np.uint8),
        dims=schema.MAP_DIMS,
        name="labels",
        attrs=attrs,
    )
    schema.check_same_grid(cube, labels, names=("the cube", "the labels"))
    return cube, schema.attach_classes(labels, scene.classes)


def _scene(name: str) -> Scene:
    known = scenes()
    plain = name.lower().replace("_", "-").replace(" ", "-")
    if plain not in known:
        raise InputError(
            f"Unknown scene '{name}'. There are: {', '.join(known)}.{nearest(plain, list(known))}"
        )
    return known[plain]


def _remote(entry: dict[str, Any]) -> RemoteFile:
    return RemoteFile(f"{_UPLOADS}/{entry['path']}", entry["sha256"], entry["bytes"])


def _only_array(path: Path, ndim: int) -> NDArray[Any]:
    arrays = [value for key, value in loadmat(path).items() if not key.startswith("__")]
    if len(arrays) != 1 or arrays[0].ndim != ndim:
        found = ", ".join(str(array.shape) for array in arrays) or "none"
        raise FileError(f"{path} must hold one array with {ndim} dimensions (found: {found}).")
    array: NDArray[Any] = arrays[0]
    return array
