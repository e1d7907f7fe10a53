"""Where a run's scene and labels come from: a known dataset, a synthetic scene, or files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import xarray as xr

from hsreject.datasets.indian_pines import load_indian_pines
from hsreject.datasets.scenes import load_scene
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import ConfigError
from hsreject.io.labels import open_labels
from hsreject.io.scene import open_scene
from hsreject.registry import Registry


class SceneSource(ABC):
    """Something that gives a scene and its reference labels."""

    @abstractmethod
    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the cube (band, y, x) and the labels (y, x) on the same grid."""


@dataclass(frozen=True)
class IndianPines(SceneSource):
    """The AVIRIS Indian Pines scene of 1992 with its 16 classes, offline."""

    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return :func:`hsreject.load_indian_pines`."""
        return load_indian_pines()


@dataclass(frozen=True)
class Synthetic(SceneSource):
    """A synthetic georeferenced scene whose truth is known; see `synthetic_scene`."""

    rows: int = 96
    columns: int = 96
    n_classes: int = 5
    n_bands: int = 60
    noise: float = 0.25
    seed: int = 0
    hole: bool = True

    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return :func:`hsreject.datasets.synthetic.synthetic_scene` with these options."""
        return synthetic_scene(
            rows=self.rows,
            columns=self.columns,
            n_classes=self.n_classes,
            n_bands=self.n_bands,
            noise=self.noise,
            seed=self.seed,
            hole=self.hole,
        )


@dataclass(frozen=True)
class Files(SceneSource):
    """A scene file of your own (ENVI, GeoTIFF, .mat, .npy) and a label raster or polygons.

    Parameters
    ----------
    path : str
        The scene.
    labels : str
        Reference labels: a raster, an array, or a vector file.
    attribute : str, optional
        Of a vector file: the attribute that holds the class.
    variable, labels_variable : str, optional
        Of a .mat file: the name of the array.
    band_axis : int, optional
        Of a .mat or .npy array: which axis holds the bands, where the file does not say.
    names : list of str, optional
        Class names in the order of the label values, where the file has none.
    align : {"exact", "nearest"}
        Labels on another grid than the scene are an error, or are reprojected to the nearest
        pixel.
    """

    path: str
    labels: str
    attribute: str | None = None
    variable: str | None = None
    labels_variable: str | None = None
    band_axis: int | None = None
    names: Sequence[str] | None = None
    align: Literal["exact", "nearest"] = "exact"

    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the opened files."""
        cube = open_scene(self.path, variable=self.variable, band_axis=self.band_axis)
        labels = open_labels(
            self.labels,
            like=cube,
            attribute=self.attribute,
            variable=self.labels_variable,
            align=self.align,
            names=self.names,
        )
        return cube, labels


@dataclass(frozen=True)
class Fetched(SceneSource):
    """A well-known scene by its name (`hsreject fetch` lists them), downloaded on first use."""

    scene: str
    folder: str | None = None

    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return :func:`hsreject.load_scene`."""
        return load_scene(self.scene, folder=self.folder)


@dataclass(frozen=True)
class InMemory(SceneSource):
    """A cube and labels that are already open: what Python users pass as ``scene``."""

    cube: xr.DataArray
    labels: xr.DataArray

    def load(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return both as they are."""
        return self.cube, self.labels


SCENES: Registry[SceneSource] = Registry(
    "scene",
    {"files": Files, "indian_pines": IndianPines, "synthetic": Synthetic, "fetched": Fetched},
)


def scene_of(given: object) -> object:
    """Return what a configuration may give as ``scene``: ``(cube, labels)`` becomes a source."""
    if isinstance(given, tuple) and len(given) == 2:
        return InMemory(*given)
    if isinstance(given, str | Mapping | SceneSource):
        return given
    raise ConfigError(
        "[scene] must be a name, a table with a name, or a tuple (cube, labels) "
        f"(got {type(given).__name__})."
    )
