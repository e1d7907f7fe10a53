"""Scenes by name: the collection of the University of the Basque Country, checked by SHA-256."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pooch
import xarray as xr
from scipy.io import loadmat

from hsreject import schema
from hsreject.datasets.indian_pines import corrected_bands
from hsreject.errors import FileError, InputError
from hsreject.files import reason, replacing
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import nearest
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = "https://www.ehu.eus/ccwintco/index.php/Hyperspectral_Remote_Sensing_Scenes"
_UPLOADS = "https://www.ehu.eus/ccwintco/uploads"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class RemoteFile:
    """A file on the web and how to recognise it: its SHA-256 (hexadecimal) and size in bytes."""

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The name of the file: the last part of its address."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Scene:
    """A scene with reference labels that can be fetched: two MATLAB files with one array each."""

    title: str
    cube: RemoteFile
    labels: RemoteFile
    classes: ClassTable


@cache
def scenes() -> dict[str, Scene]:
    """Return the scenes that can be fetched, by name."""
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
    """Return the files of a scene (cube, labels), downloaded unless they are there already."""
    scene, place = _scene(name), data_folder(folder)
    return _fetch(scene.cube, place, progress), _fetch(scene.labels, place, progress)


def data_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Return the folder that keeps downloads: as given, HSREJECT_DATA, or the user's cache."""
    return Path(folder or os.environ.get("HSREJECT_DATA") or pooch.os_cache("hsreject"))


def _fetch(file: RemoteFile, folder: Path, progress: ProgressCallback) -> Path:
    """Return the path of a file in `folder`, downloaded unless it is there already."""
    path = folder / file.name
    if path.is_dir():
        raise FileError(f"{path} is a folder, where the file {file.name} should be. Remove it.")
    if path.exists():
        digest = pooch.file_hash(str(path))
        if digest == file.sha256:
            return path
        raise FileError(
            f"{path} is not the published {file.name}: it has {path.stat().st_size} bytes and the "
            f"SHA-256 {digest}, not {file.size} bytes and {file.sha256}. "
            "Remove it and fetch it again."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {folder}: {reason(error)}.") from error
    # pooch checks the digest: what is there is complete
    with replacing(path, overwrite=False) as part:
        failure = _download(file, part.parent, progress)
    if failure:
        raise FileError(
            f"Could not download {file.name}: {failure}.\n"
            f"Download it by hand from {file.url}\n"
            f"(see {PAGE})\n"
            f"and put it into the folder {folder}\n"
            f"It has {file.size} bytes and the SHA-256 {file.sha256}."
        )
    return path


def _download(file: RemoteFile, folder: Path, progress: ProgressCallback) -> str | None:
    """Download a file; return in words what went wrong, or None.

    An error of requests keeps the connection open as long as it lives, so none is passed on.
    """
    progress(file.name, 0, file.size)
    pooch.get_logger().setLevel("WARNING")  # what it would print goes to the callback
    host = urlsplit(file.url).netloc
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=folder,
            downloader=pooch.HTTPDownloader(
                progressbar=_ByteCount(file, progress), timeout=_TIMEOUT_SECONDS
            ),
        )
    except ValueError:  # what pooch raises for another checksum
        return f"{host} has another file under this name, with another SHA-256"
    except OSError as error:  # every error of requests is one; those of the disk have a number
        return reason(error) if error.errno else f"{host} did not send it ({error!s:.120})"
    return None


class _ByteCount:
    """The progress bar that pooch asks for: passes bytes on to our callback."""

    def __init__(self, file: RemoteFile, progress: ProgressCallback) -> None:
        self.total, self._done = file.size, 0
        self._name, self._progress = file.name, progress

    def update(self, count: int) -> None:
        """Count bytes that have arrived; the last chunk is shorter than pooch counts it."""
        self._done = min(self._done + count, self.total)
        self._progress(self._name, self._done, self.total)

    def reset(self) -> None:
        """Start from nothing."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: the caller owns the bar."""


def load_scene(
    name: str,
    *,
    folder: str | PathLike[str] | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Load a scene and its reference labels, downloaded on first use.

    The files say nothing about wavelengths or place. Indian Pines gets the wavelengths published
    with it; the others have none.

    Parameters
    ----------
    name : str
        One of indian-pines, pavia-university, pavia-centre, salinas, salinas-a, ksc, botswana.
    folder : path, optional
        Where files are kept: the folder in the environment variable HSREJECT_DATA, or the user's
        cache, unless given. Files that were put there by hand are used; every file is checked
        against its SHA-256.
    progress : ProgressCallback
        Called as bytes arrive.

    Returns
    -------
    cube : DataArray, dims (band, y, x)
        In the integer type of the file.
    labels : DataArray of uint8, dims (y, x)
        0 where there is no reference; the class table is in the attributes.

    See Also
    --------
    hsreject.load_indian_pines : comes with the package.
    hsreject.open_scene : your own files.

    Examples
    --------
    >>> import hsreject as hr
    >>> cube, labels = hr.load_scene("pavia-university")  # doctest: +SKIP
    >>> cube.sizes  # doctest: +SKIP
    Frozen({'band': 103, 'y': 610, 'x': 340})
    """
    scene = _scene(name)
    cube_path, labels_path = fetch_scene(name, folder=folder, progress=progress)
    attrs = {"title": scene.title, "references": PAGE}
    pixels = np.ascontiguousarray(_only_array(cube_path, 3).transpose(2, 0, 1))
    bands = corrected_bands() if scene is scenes()["indian-pines"] else None
    cube = xr.DataArray(pixels, bands, schema.CUBE_DIMS, name="cube", attrs=attrs)
    values = _only_array(labels_path, 2).astype(np.uint8)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name="labels", attrs=attrs)
    schema.check_same_grid(cube, labels, names=("the cube", "the labels"))
    return cube, schema.attach_classes(labels, scene.classes)


def _scene(name: str) -> Scene:
    available = scenes()
    plain = name.lower().replace("_", "-").replace(" ", "-")
    if plain not in available:
        raise InputError(
            f"Unknown scene '{name}'. There are: {', '.join(available)}."
            f"{nearest(plain, list(available))}"
        )
    return available[plain]


def _remote(entry: dict[str, Any]) -> RemoteFile:
    return RemoteFile(f"{_UPLOADS}/{entry['path']}", entry["sha256"], entry["bytes"])


def _only_array(path: Path, ndim: int) -> NDArray[Any]:
    arrays = [value for key, value in loadmat(path).items() if not key.startswith("__")]
    if len(arrays) != 1 or arrays[0].ndim != ndim:
        shapes = ", ".join(str(array.shape) for array in arrays) or "none"
        raise FileError(f"{path} must hold one array with {ndim} dimensions (found: {shapes}).")
    array: NDArray[Any] = arrays[0]
    return array
