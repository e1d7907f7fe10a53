"""Indian Pines: the AVIRIS scene that ships with the `tensorly` wheel, so that it loads offline."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import FileError
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Corn in warm colours, soybean in blues, grass and woods in greens; apart for every eye, also from
# the black of rejected pixels and the white of those without reference.
_COLOR_OF_CLASS = {
    "Alfalfa": "#ff99cc",
    "Corn-notill": "#ee7700",
    "Corn-mintill": "#cc0011",
    "Corn": "#660000",
    "Grass-pasture": "#bbff77",
    "Grass-trees": "#77ff11",
    "Grass-pasture-mowed": "#551144",
    "Hay-windrowed": "#665544",
    "Oats": "#ee22cc",
    "Soybean-notill": "#55aaff",
    "Soybean-mintill": "#004488",
    "Soybean-clean": "#1100ff",
    "Wheat": "#ddccaa",
    "Woods": "#559955",
    "Buildings-Grass-Trees-Drives": "#8800cc",
    "Stone-Steel-Towers": "#000066",
}
CLASS_NAMES = tuple(_COLOR_OF_CLASS)
CLASS_COLORS = tuple(_COLOR_OF_CLASS.values())

# Water absorption and noise: the published 200-band scene leaves these bands of the 220 out.
_DROPPED = (*range(104, 109), *range(150, 164), 220)
_SHAPE = (145, 145, 200)

_SOURCE = {
    "title": "AVIRIS Indian Pines, 12 June 1992, 200 bands",
    "references": "https://doi.org/10.4231/R7RX991C",
    "license": "CC BY 3.0",
}


def load_indian_pines() -> tuple[xr.DataArray, xr.DataArray]:
    """Load the Indian Pines scene and its reference labels.

    145 x 145 pixels of 20 m, 200 bands of AVIRIS at-sensor values (scaled radiance, as published),
    16 classes, 10,249 labelled pixels. The scene has no georeference. Nothing is downloaded: both
    arrays ship with the wheel of `tensorly`, the extra ``hsreject[datasets]``.

    Returns
    -------
    cube : DataArray of uint16, dims (band, y, x)
        With the coordinates `wavelength` and `fwhm` in nm, from the band list published with the
        scene, and `band_number`, the number of each band among the original 220. Wavelengths step
        back where the instrument's spectrometers overlap.
    labels : DataArray of uint8, dims (y, x)
        0 where there is no reference, 1 to 16 with the class table in the attributes.

    See Also
    --------
    hsreject.load_scene : other scenes, by download.
    hsreject.synthetic_scene : a scene of any size.

    References
    ----------
    M. F. Baumgardner, L. L. Biehl, D. A. Landgrebe, "220 Band AVIRIS Hyperspectral Image Data Set:
    June 12, 1992 Indian Pine Test Site 3", Purdue University, 2015, doi:10.4231/R7RX991C.

    Examples
    --------
    >>> from hsreject import load_indian_pines
    >>> cube, labels = load_indian_pines()
    >>> dict(cube.sizes), cube.dtype
    ({'band': 200, 'y': 145, 'x': 145}, dtype('uint16'))
    >>> labels.attrs["class_names"][13], int((labels == 14).sum())
    ('Woods', 1265)
    """
    pixels = _read("Indian_pines_corrected.npy", _SHAPE)  # (y, x, band) in Fortran order
    cube = xr.DataArray(
        np.ascontiguousarray(pixels.transpose(2, 0, 1)),  # the only copy: the file is mapped
        dims=schema.CUBE_DIMS,
        coords=corrected_bands(),
        name="cube",
        attrs=_SOURCE,
    )
    labels = xr.DataArray(
        np.array(_read("Indian_pines_gt.npy", _SHAPE[:2])),
        dims=schema.MAP_DIMS,
        name="labels",
        attrs=_SOURCE,
    )
    return cube, schema.attach_classes(
        labels, ClassTable.from_names(CLASS_NAMES, colors=CLASS_COLORS)
    )


def corrected_bands() -> dict[str, Any]:
    """Return the coordinates along `band` of the 200-band scene."""
    lines = files("hsreject.datasets").joinpath("aviris_92av3c.csv").read_text("utf-8").splitlines()
    table = np.loadtxt(lines, delimiter=",")
    number, _, wavelength, fwhm = table[~np.isin(table[:, 0], _DROPPED)].T
    return {
        schema.BAND: np.arange(1, number.size + 1),
        "band_number": (schema.BAND, number.astype(int)),
        schema.WAVELENGTH: (schema.BAND, wavelength, {"units": "nm"}),
        schema.FWHM: (schema.BAND, fwhm, {"units": "nm"}),
    }


def _read(name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    # finding the package runs none of its code; importing it would take seconds and print
    package = find_spec("tensorly")
    folders = package.submodule_search_locations if package else None
    path = Path(folders[0] if folders else "", "datasets", "data", name)
    if not folders or not path.is_file():
        raise FileError(
            f"Indian Pines ({name}) ships with the package 'tensorly', which is not installed, or "
            "is too old to have it. Install it with: pip install --upgrade tensorly."
        )
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    if array.shape != shape:
        raise FileError(f"{path} must hold an array of shape {shape} (got {array.shape}).")
    return array
