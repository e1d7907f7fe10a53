"""The labelling page: one HTML file on which the points of a sample are labelled, blind."""

from __future__ import annotations

import base64
import io
import sqlite3
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from PIL import Image

from hsreject.certification.sample import (
    CANNOT_TELL_TEXT,
    NONE_OF_THESE_TEXT,
    Sample,
    file_columns,
)
from hsreject.errors import FileError, InputError
from hsreject.files import replacing
from hsreject.io.grid import PixelGrid, crs_name
from hsreject.io.vectors.vector import read_columns
from hsreject.report.page import read_source, render
from hsreject.schema import (
    BAND,
    CUBE_DIMS,
    MAP_DIMS,
    NO_REFERENCE,
    WAVELENGTH,
    X,
    Y,
    as_label_map,
    attach_classes,
    check_dims,
    good_bands,
)
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHIP = 64  # pixels of the scene around a point; its own is number 32
_ACROSS = 64  # chips in a row of the picture
_TRUE_COLOR = (650.0, 550.0, 470.0)
_KEYS = "123456789abcdefghijklmopqrstuvwxyz"  # n is "none of these", 0 "cannot tell"


def write_label_page(
    sample: Sample,
    scene: xr.DataArray,
    path: str | PathLike[str],
    *,
    medians: xr.DataArray | NDArray[Any] | None = None,
    show_label: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file for labelling the points of a sample.

    It needs no server and no network, keeps the labels in the browser meanwhile, and saves
    the CSV file that :func:`hsreject.certify` and :func:`hsreject.assess` read. Another page of the
    same draw goes on from what the browser has kept; where the labels of `sample` were changed
    since, they count. What the map says is not in the file unless it is asked for.

    Parameters
    ----------
    sample : Sample
        Of :func:`hsreject.draw_sample`; labels that it has are kept.
    scene : DataArray (band, y, x)
        On the grid of the map: shown in true color where it has wavelengths, at two zooms.
    path : path
        The file to make: ``.html``. The CSV file that the page saves is named like it.
    medians : map (y, x) of int, optional
        Labels of training pixels, 0 elsewhere: the median spectrum of each class is shown, too.
    show_label : bool
        Show what the map says. People who see it tend to agree with it.
    overwrite : bool
        Replace a file that is already there.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from hsreject.report.label_page import write_label_page
    >>> import tempfile
    >>> import hsreject as hr
    >>> cube, labels = hr.synthetic_scene()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_label_page(hr.draw_sample(labels, 5), cube, f"{folder}/label.html")
    ...     "cannot tell" in page.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise InputError(f"The page is opened in a browser: '{target.name}' must end in .html.")
    cube = check_dims(scene, CUBE_DIMS, name="scene")
    if not PixelGrid.of(cube).fits(sample.grid):
        raise InputError(
            f"The scene has {PixelGrid.of(cube)}, and the map of the sample {sample.grid}. Give "
            "the scene on its grid."
        )
    columns = file_columns(sample, show_label=show_label)[0]
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    spectra = _spectra(cube, sample)
    contents = {
        "columns": list(columns),
        "rows": [["" if cell is None else cell for cell in row] for row in rows],
        "classes": [
            {"name": name, "color": color, "key": _KEYS[i] if i < len(_KEYS) else ""}
            for i, (name, color) in enumerate(
                zip(sample.classes.names, sample.classes.colors, strict=True)
            )
        ],
        "untold": CANNOT_TELL_TEXT,
        "none": NONE_OF_THESE_TEXT,
        "store": f"hsreject {sample.design or sample.grid}",  # one for a draw, however it grows
        "file": f"{target.stem}.csv",
        "chip": _CHIP,
        "across": _ACROSS,
        **spectra,
        "medians": [] if medians is None else _medians(cube, medians, sample, spectra),
    }
    page = render(
        "label_page.html.jinja",
        page=contents,
        n_points=len(sample),
        picture=_picture(cube, sample),
        style=read_source("label_page.css"),
        script=read_source("label_page.js"),
        payload=contents,
    )
    with replacing(target, overwrite=overwrite) as work:
        work.write_text(page, encoding="utf-8")
    return target


def _picture(cube: xr.DataArray, sample: Sample) -> str:
    """Return the surroundings of all points, one beside the other, as the URL of a JPEG."""
    good = np.flatnonzero(good_bands(cube))
    bands = good[np.linspace(good.size - 1, 0, 3).astype(int)]
    if WAVELENGTH in cube.coords:
        length = cube[WAVELENGTH].values[good]
        if length[0] < 650 < length[-1] or length.min() < 560:
            bands = good[[int(np.argmin(np.abs(length - target))) for target in _TRUE_COLOR]]
    color = np.moveaxis(np.asarray(cube.isel({BAND: bands}).values, dtype=np.float32), 0, -1)
    low, high = np.nanpercentile(color, [2, 98], axis=(0, 1))
    scaled = (color - low) / np.maximum(high - low, 1e-12)
    bytes_ = (255 * np.clip(np.nan_to_num(scaled, nan=0.5), 0, 1)).astype(np.uint8)
    half = _CHIP // 2
    padded = np.pad(bytes_, ((half, half), (half, half), (0, 0)), constant_values=128)
    shape = (-(-len(sample) // _ACROSS) * _CHIP, min(len(sample), _ACROSS) * _CHIP, 3)
    atlas = np.full(shape, 128, dtype=np.uint8)
    for i, (row, column) in enumerate(zip(sample.row, sample.column, strict=True)):
        down, across = _CHIP * (i // _ACROSS), _CHIP * (i % _ACROSS)
        chip = padded[row : row + _CHIP, column : column + _CHIP]
        atlas[down : down + _CHIP, across : across + _CHIP] = chip
    stream = io.BytesIO()
    Image.fromarray(atlas).save(stream, "JPEG", quality=92, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"


def _spectra(cube: xr.DataArray, sample: Sample) -> dict[str, Any]:
    """Return the spectra of the points as bytes in base64, and what they are drawn over."""
    place = {Y: xr.DataArray(sample.row, dims="p"), X: xr.DataArray(sample.column, dims="p")}
    used = cube.isel({BAND: np.flatnonzero(good_bands(cube))})
    values = np.asarray(used.isel(place).transpose("p", BAND).values, dtype=np.float64)
    top = float(np.nanpercentile(values, 99.5)) if np.isfinite(values).any() else 1.0
    scaled = np.clip(np.nan_to_num(values) / max(top, 1e-12), 0, 1)
    ends = used[WAVELENGTH].values[[0, -1]].tolist() if WAVELENGTH in used.coords else None
    return {
        "bands": values.shape[1],
        "top": top,
        "ends": ends,
        "spectra": base64.b64encode((255 * scaled).astype(np.uint8).tobytes()).decode("ascii"),
    }


def _medians(
    cube: xr.DataArray,
    labels: xr.DataArray | NDArray[Any],
    sample: Sample,
    spectra: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return name, color and median spectrum, from 0 to 1, of each class of some pixels."""
    training = as_label_map(labels, name="medians").values
    used = cube.isel({BAND: np.flatnonzero(good_bands(cube))}).values
    table, lines = sample.classes, []
    for value, name, color in zip(table.values, table.names, table.colors, strict=True):
        mask = (training == value) & (training != NO_REFERENCE)
        if mask.any():
            middle = np.nan_to_num(np.nanmedian(used[:, mask], axis=1)) / max(spectra["top"], 1e-12)
            line = np.round(np.clip(middle, 0, 1), 3).tolist()
            lines.append({"name": name, "color": color, "line": line})
    return lines


def offered_map(path: Path, scene: xr.DataArray) -> xr.DataArray:
    """Return a map without labels on the grid of a scene, with the classes that a file offers.

    Blind labelling needs no more of the map: places, and the names in the GeoPackage of a sample.
    """
    query = (
        "SELECT value FROM gpkg_data_column_constraints WHERE constraint_name = 'classes' "
        "ORDER BY rowid"
    )
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            offered = [value for (value,) in file.execute(query)]
    except sqlite3.Error:  # another format, or a GeoPackage of other software
        offered = []
    names = [name for name in offered if name not in {NONE_OF_THESE_TEXT, CANNOT_TELL_TEXT}]
    if not names:
        raise FileError(
            f"{path} does not say which classes there are, as a GeoPackage of 'hsreject sample' "
            "does. Give the map that the points were drawn from with --labels."
        )
    _, columns, crs = read_columns(path)
    if not PixelGrid.of(scene).georeferenced and (crs is not None or "x" in columns):
        raise InputError(
            f"The points of {path} have a place on a map ({crs_name(crs)}), and the scene has "
            "none. Give a scene that has one, or, if its pixels are those of the map that the "
            "points were drawn from, that map with --labels."
        )
    blank = xr.DataArray(np.zeros(scene.shape[1:], dtype=np.uint8), dims=MAP_DIMS)
    return PixelGrid.of(scene).attach(attach_classes(blank, ClassTable.from_names(names)))
