"""The parts that a configuration may name: scenes, samplings, baselines, and all registries."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import xarray as xr

from hsreject.classify.classifiers import CLASSIFIERS, SupportVectorMachine
from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS
from hsreject.datasets.indian_pines import load_indian_pines
from hsreject.datasets.scenes import load_scene
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import GuessWarning
from hsreject.features import FEATURES
from hsreject.features.windows import in_windows
from hsreject.io.describe import note_on_zeros
from hsreject.io.labels import open_labels
from hsreject.io.scene import open_scene
from hsreject.registry import Registry
from hsreject.rejection import REJECTORS
from hsreject.schema import X, Y, pixels_of, without_pixels_of
from hsreject.splits.draws import given_split, sample_blocks, sample_fraction, sample_per_class
from hsreject.splits.polygons import sample_polygons

Pair = tuple[xr.DataArray, xr.DataArray]
Sections = Mapping[str, Any]


@dataclass(frozen=True)
class Files:
    """Open a scene of your own (a product, ENVI, GeoTIFF, .mat, .npy) and its reference labels.

    Parameters
    ----------
    path : str or list of str
        The scene; of a list, the bands of all scenes, which lie on one grid.
    labels : str
        Reference labels: a raster, an array, or a vector file.
    attribute : str, optional
        Of a vector file: the attribute that holds the class.
    variable, labels_variable : str, optional
        Of a .mat file: the name of the array.
    band_axis : int, optional
        Of a .mat or .npy array: which axis holds the bands, where the file does not say.
    masks : bool
        Whether pixels that the quality masks of a product flag have no data.
    nodata : float, optional
        Pixels that have this value in all bands have no data.
    labels_nodata : int, optional
        One more value of the labels that means no reference.
    names : list or table of str, optional
        Class names in the order of the label values 1, 2, ..., or by value: {1 = "corn"}.
    align : {"exact", "nearest"}
        Labels on another grid than the scene are an error, or are reprojected to the nearest
        pixel.
    """

    path: str | Sequence[str]
    labels: str
    _: KW_ONLY
    attribute: str | None = None
    variable: str | None = None
    labels_variable: str | None = None
    band_axis: int | None = None
    masks: bool = True
    nodata: float | None = None
    labels_nodata: int | None = None
    names: Sequence[str] | Mapping[str, str] | None = None
    align: Literal["exact", "nearest"] = "exact"

    def load(self) -> Pair:
        """Return cube and labels."""
        lazy = self.open_scene()
        cube = in_windows(lazy)
        if self.nodata is not None:
            cube = without_pixels_of(cube, self.nodata)
        elif n_zeros := int(pixels_of(cube, 0).sum()):
            note = note_on_zeros(n_zeros, cube.sizes[Y] * cube.sizes[X])
            warnings.warn(note, GuessWarning, stacklevel=2)
        return cube, self.open_labels(cube)

    def open_scene(self) -> xr.DataArray:
        """Return the cube, lazily."""
        return open_scene(
            self.path,
            chunks="auto",
            variable=self.variable,
            band_axis=self.band_axis,
            masks=self.masks,
        )

    def open_labels(self, cube: xr.DataArray) -> xr.DataArray:
        """Return the labels on the grid of the cube."""
        by_value = self.names
        if not isinstance(by_value, Mapping):
            by_value = {str(value): name for value, name in enumerate(by_value or (), 1)}
        return open_labels(
            self.labels,
            like=cube,
            attribute=self.attribute,
            variable=self.labels_variable,
            align=self.align,
            names={int(value): name for value, name in by_value.items()} or None,
            nodata=self.labels_nodata,
        )


def _fetched(scene: str, *, folder: str | None = None) -> Pair:
    """Load a well-known scene by its name (see `hsreject fetch`), downloaded on first use."""
    return load_scene(scene, folder=folder)


def _given(labels: xr.DataArray, train: str, test: str, *, seed: int = 0) -> Pair:
    """Open a split that was published as two label files on the grid of the scene."""
    del seed  # every sampler gets one; here nothing is drawn
    return given_split(open_labels(train, like=labels), open_labels(test, like=labels))


def _coordinates() -> Sections:
    """Classify by place alone: a system that is not better may owe its accuracy to the place."""
    return {"features": ["coordinates"], "classifier": "nearest_neighbor"}


def _svm() -> Sections:
    """Classify scaled bands with support vector machines tuned by cross-validation."""
    machines = SupportVectorMachine(C=[1.0, 10.0, 100.0, 1e3], gamma=[1e-4, 1e-3, 1e-2, 0.1])
    return {"features": ["scale"], "classifier": machines}


def _paper() -> Sections:
    """Classify and reject as the paper does: sparse regression on MNF, vector TV, sequential."""
    return {
        "features": [{"name": "mnf", "n_components": 15}],
        "classifier": "smlr",
        "context": {"prior": "vector_tv", "weight": 2.0},
        "rejectors": ["sequential"],
    }


SCENES: Registry[Pair | Files] = Registry(
    "scene",
    {
        "files": Files,
        "indian_pines": load_indian_pines,
        "synthetic": synthetic_scene,
        "fetched": _fetched,
    },
)
SAMPLERS: Registry[Pair] = Registry(
    "sampling",
    {
        "per_class": sample_per_class,
        "fraction": sample_fraction,
        "blocks": sample_blocks,
        "polygons": sample_polygons,
        "given": _given,
    },
    supplied=("labels", "seed"),
)
BASELINES: Registry[Sections] = Registry(
    "baseline", {"coordinates": _coordinates, "svm": _svm, "paper": _paper}
)
"""What to compare with: the sections of the configuration in which a baseline differs."""

REGISTRIES: dict[str, Registry[Any]] = {
    "scene": SCENES,
    "sampling": SAMPLERS,
    "features": FEATURES,
    "classifier": CLASSIFIERS,
    "context": PRIORS,
    "context solver": SOLVERS,
    "rejectors": REJECTORS,
    "rejectors confidence": CONFIDENCES,
    "baselines": BASELINES,
}
"""Everything that a configuration may name, by the section that names it."""
