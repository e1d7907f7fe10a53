"""How a scene is opened for mapping, and what is taken for granted of it."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import xarray as xr

from hsreject import schema
from hsreject.io.remote import as_path
from hsreject.io.scene import open_scene
from hsreject.registry import check_choice


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How :func:`hsreject.map_scene` reads a scene, and what it takes for granted of another one.

    Parameters
    ----------
    variable, band_axis : optional
        Of a .mat or .npy file, as for :func:`hsreject.open_scene`.
    match_bands : {"exact", "nearest", "interpolate"}
        What to do with a scene that has other bands than the training scene.
    foreign : {"refuse", "allow"}
        Whether to map a scene that is unlike the training scene: more than half of some 4,000
        pixels all over it, which are read first, are unlike all training pixels, or all values are
        a hundredth of those. Where pixels are novel on average, or the experts of a pool agree on
        few labels, there is a warning (:class:`hsreject.errors.DriftWarning`).
    assume_alike : bool
        Take the threshold that the test pixels of the training scene ask for, though this is
        another scene: from half a scene to the other, it kept .90 within 3 points in 43 of 113
        trials. All files of the map say that it is an assumption.

    See Also
    --------
    hsreject.map_scene : takes it.

    Examples
    --------
    >>> import hsreject as hr
    >>> hr.Reading(match_bands="nearest").foreign
    'refuse'
    """

    variable: str | None = None
    band_axis: int | None = None
    match_bands: str = "exact"
    foreign: str = "refuse"
    assume_alike: bool = False

    def __post_init__(self) -> None:
        check_choice("foreign", self.foreign, ("refuse", "allow"))

    def open(self, scene: xr.DataArray | str | PathLike[str], chunks: Any) -> xr.DataArray:
        """Open a scene, lazily in chunks (y, x) if it comes from a file."""
        if isinstance(scene, xr.DataArray):
            return schema.check_dims(scene, schema.CUBE_DIMS, name="scene")
        path = as_path(scene).absolute()  # workers of a cluster have folders of their own
        return open_scene(path, chunks=chunks, variable=self.variable, band_axis=self.band_axis)
