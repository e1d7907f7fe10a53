"""What a page of the explorer carries: planes of bytes, a picture, spectra, and notes on them."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.image import imsave
from numpy.typing import NDArray

from hsreject.class_tree import ClassTree
from hsreject.classes import ClassTable
from hsreject.io.grid import Grid
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.report.explorer_systems import (
    MOST_SAMPLES,
    ExplorerSystem,
    MapStack,
    system_of,
    winners,
)
from hsreject.report.figures import ground
from hsreject.schema import (
    BAND,
    MAP_DIMS,
    WAVELENGTH,
    X,
    Y,
    good_bands,
)

_ARRAYS = {
    "u1": "Uint8Array",
    "u2": "Uint16Array",
    "i4": "Int32Array",
    "f4": "Float32Array",
    "f8": "Float64Array",
}
_MOST_SPECTRA = 1_500_000  # bytes before packing
_N_COMPONENTS = 12
_FEW_BANDS = 4  # false color: nothing to draw a spectrum from
_RIGHT, _WRONG = "#8cc7e8", "#c23b00"  # apart in lightness, too
_LOSSLESS_PIXELS = 500_000  # larger pictures are JPEG


def script_json(value: object) -> str:
    """Return JSON that may stand in a script element: no tag can begin or end in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(array: NDArray[Any], **how: object) -> dict[str, Any]:
    """Return an array as JSON: little-endian, deflated, in base64, with its type in JavaScript."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = base64.b64encode(zlib.compress(plain.tobytes())).decode("ascii")
    return {"packed": text, "type": _ARRAYS[array.dtype.str[1:]], **how}


def _as_planes(planes: NDArray[Any]) -> dict[str, Any]:
    """Return planes, each but the first as what changes (xor) from the one before."""
    changes = planes.copy()
    changes[1:] ^= planes[:-1]
    return packed(changes, planes=len(planes))


def _as_steps(numbers: NDArray[Any], dtype: type = np.int32) -> dict[str, Any]:
    """Return numbers as the steps from one to the next."""
    return packed(np.diff(numbers, prepend=0).astype(dtype), steps=True)


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything that a page shows, on the full grid."""

    stacks: Mapping[str, MapStack]
    references: Mapping[str, xr.DataArray]  # `reference`, what is known, and `test`, or nothing
    classes: ClassTable
    scene: xr.DataArray | None
    certified: float | None  # threshold of the first system
    grid: xr.DataArray  # of the whole map
    spacing: int = 1  # every how many of its rows and columns were taken
    group: NDArray[np.integer] | None = None  # (y, x): what errs together, instead of blocks
    note: str = ""  # by the author of the maps

    @cached_property
    def _known(self) -> dict[str, NDArray[np.uint8]]:
        """The references (y, x) as codes: 1 + place in the class table."""
        return {name: _codes(array.values, self.classes) for name, array in self.references.items()}

    @cached_property
    def _decided(self) -> dict[str, NDArray[np.uint8]]:
        """The labels (plane, y, x) of each system as codes, 0 where there is no data."""
        return {
            name: np.where(stack.has_data, _codes(stack.label, self.classes), np.uint8(0))
            for name, stack in self.stacks.items()
        }

    @cached_property
    def _relation(self) -> NDArray[np.bool_]:
        """Whether a class (column) lies below an answer (row), both as codes."""
        relation = np.eye(len(self.classes) + 1, dtype=bool)
        tree = ClassTree.from_attrs(self.grid.attrs)
        if tree is not None:
            values = np.array(self.classes.values)
            relation[1:, 1:] |= tree.holds(values[:, None], values[None])
        return relation

    @property
    def _below(self) -> dict[str, list[int]]:
        """The classes below each group, as codes; none where all answers are classes."""
        groups = np.flatnonzero(self._relation.sum(axis=1) > 1)
        groups = np.union1d(groups, np.flatnonzero(~self._relation.diagonal()))
        return {str(code): np.flatnonzero(self._relation[code]).tolist() for code in groups}

    def at(self, step: int) -> dict[str, Any]:
        """Return what the page carries when it shows every `step`-th row and column."""
        systems = [self._system(name, step) for name in self.stacks]
        height, width = systems[0].codes.shape[1:]
        spectra, note = (None, "") if self.scene is None else _spectra(self.scene, step)
        place = Grid.of(self.grid)
        notes = [str(place)] if place.georeferenced else []
        notes += _notes(systems, step * self.spacing, self.grid)
        notes += [words for words in (note, self.note) if words]
        every_nth = slice(None, None, step)
        references = {
            name: packed(codes[every_nth, every_nth]) for name, codes in self._known.items()
        }
        layers = ("labels", *(["outcome"] if references else []), "confidence")
        return {
            "height": height,
            "width": width,
            "step": step * self.spacing,
            "place": _place(self.grid, step * self.spacing),
            "layers": [*layers, *(["reference"] if references else [])],
            "classes": self.classes.names,
            "below": self._below,
            "colors": {
                "labels": self.classes.colors,
                "reference": self.classes.colors,
                "outcome": [_RIGHT, _WRONG],
                "confidence": _ramp(),
            },
            "systems": [_entry(system) for system in systems],
            "areas": _areas(place, height, step * self.spacing),
            "ground": _ground(place, step * self.spacing),
            "reference": references.get("reference"),
            "test": references.get("test"),
            "picture": self._picture,
            "spectra": spectra,
            "notes": notes,
        }

    @cached_property
    def _picture(self) -> str | None:
        return None if self.scene is None else _picture(self.scene)

    def _system(self, name: str, step: int) -> ExplorerSystem:
        stack, codes = self.stacks[name], self._decided[name]
        truth = self._known.get("test", np.zeros_like(codes[0]))
        return system_of(
            name,
            stack,
            codes,
            truth,
            step=step,
            group=self.group,
            relation=self._relation,
            certified=self.certified if name == next(iter(self.stacks)) else None,
        )


def _codes(labels: NDArray[Any], classes: ClassTable) -> NDArray[np.uint8]:
    """Return 1 + the place of each label in the class table, 0 where it is not in it."""
    values = np.array(classes.values)
    order = np.argsort(values)
    place = order[np.minimum(np.searchsorted(values[order], labels), values.size - 1)]
    return np.where(values[place] == labels, place + 1, 0).astype(np.uint8)


def _entry(system: ExplorerSystem) -> dict[str, Any]:
    """Return the JSON of a system."""
    n_ranks = 1 if system.thresholds is None else system.thresholds.size
    cells = system.n_cells
    ranks = system.ranks.astype(np.uint32) * cells // n_ranks if cells < n_ranks else system.ranks
    thresholds: Any = system.thresholds
    n_pixels = int(np.count_nonzero(system.codes[0]))
    certified = None if system.certified is None else system.table[0, system.certified] / n_pixels
    *counts, squares = system.table
    columns = zip(("gone", "an", "mn", "ar", "mr"), counts, strict=True)
    blocks = system.sample_blocks
    return {
        "name": system.name,
        "points": system.table.shape[1],
        "cells": cells,
        "pixels": n_pixels,
        **{name: _as_steps(column) for name, column in columns},
        "squares": _as_steps(squares, np.float64),
        "correlation": [clumps.correlation for clumps in system.clumps],
        "critical": next((c.critical for c in system.clumps if np.isfinite(c.critical)), None),
        "blocks": int(blocks.max(initial=-1)) + 1,
        "sampleBlocks": packed(blocks.astype(np.int32)),
        "thresholds": None if thresholds is None else packed(thresholds),
        "labels": _as_planes(system.codes),
        "ranks": _as_planes(ranks.astype(np.uint8 if cells <= 256 else np.uint16)),
        "truth": packed(system.truth),
        "sampleLabels": _as_planes(system.sample_codes),
        "sampleRanks": _as_planes(system.sample_ranks),
        "certified": certified,
        "winners": winners(system),
    }


def _notes(systems: list[ExplorerSystem], step: int, grid: xr.DataArray) -> list[str]:
    """Return what a reader must know of how the page was made small."""
    notes = []
    if step > 1:
        rows, columns = grid.sizes[Y], grid.sizes[X]
        notes.append(
            f"The map has {rows:,} x {columns:,} pixels; the page shows one in {step} rows and "
            "columns. Shares of the map are those of the pixels shown."
        )
    if any(
        system.n_cells < system.table.shape[1] - 1
        for system in systems
        if system.thresholds is not None
    ):
        notes.append(
            "The map shows 256 steps of rejection, the nearest to the one chosen; accuracies and "
            "shares of the whole are exact."
        )
    if step > 1 and any(system.truth.size for system in systems):
        notes.append("Accuracies are those of all test pixels, shown or not.")
    n_samples = max(system.table[1:5, 0].sum() for system in systems)
    if n_samples > MOST_SAMPLES:
        notes.append(
            f"The accuracy of single classes is that of {systems[0].truth.size:,} of the "
            f"{n_samples:,} test pixels; the others are of all."
        )
    return notes


def _place(grid: xr.DataArray, step: int) -> list[float] | None:
    """Return x and y of the first pixel shown and the step between two, if the map knows them."""
    if not all(dim in grid.coords and grid.sizes[dim] > 1 for dim in MAP_DIMS):
        return None
    place = []
    for dim in (X, Y):
        centers = np.asarray(grid.coords[dim].values, dtype=np.float64)
        place += [float(centers[0]), float(centers[-1] - centers[0]) / (centers.size - 1) * step]
    return place


def _areas(grid: Grid, height: int, step: int) -> dict[str, Any] | None:
    """Return how many hectares a shown pixel of each row stands for, if the map knows."""
    areas = grid.pixel_areas()
    if areas is None:
        return None
    of_rows = np.broadcast_to(areas, (grid.height, grid.width))[::step].mean(axis=1)
    return packed(of_rows[:height] * float(step) ** 2)


def _ground(grid: Grid, step: int) -> list[float] | None:
    """Return the metres across a shown pixel and where north is, if the map knows."""
    place = ground(grid)
    return None if place is None else [place[0] / grid.width * step, place[1]]


def _ramp() -> list[str]:
    """Return 255 colors from uncertain, dark, to certain, bright; readable without color vision."""
    colors = mpl.colormaps["cividis"](np.linspace(0, 1, 255))
    return [to_hex(color) for color in colors]


def _picture(cube: xr.DataArray) -> str:
    """Return a false-color picture of a scene as a data URL."""
    bands = (0, 1, 2) if cube.sizes[BAND] == 3 else None
    pixels = FalseColorDisplay.from_cube(cube, wavelengths=INFRARED, bands=bands).picture.values
    kind = "png" if pixels[..., 0].size <= _LOSSLESS_PIXELS else "jpeg"
    stream = io.BytesIO()
    imsave(stream, pixels if kind == "png" else pixels[..., :3], format=kind)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"


def _spectra(cube: xr.DataArray, step: int) -> tuple[dict[str, Any] | None, str]:
    """Return the spectra of the shown pixels as principal components, or why there are none."""
    good = np.flatnonzero(good_bands(cube))
    if good.size < _FEW_BANDS:
        return None, ""
    shown = cube.isel({BAND: good, Y: slice(None, None, step), X: slice(None, None, step)})
    n_pixels, n_components = shown.sizes[Y] * shown.sizes[X], min(_N_COMPONENTS, good.size)
    if n_pixels * n_components > _MOST_SPECTRA:
        return None, f"Spectra are left out: those of {n_pixels:,} pixels would not fit."
    spectra = shown.values.reshape(good.size, -1).T.astype(np.float32)
    has_data = np.isfinite(spectra).all(axis=1)
    if not has_data.any():
        return None, ""
    pixels = spectra[has_data]
    mean = pixels.mean(axis=0)
    _, basis = np.linalg.eigh(np.cov(pixels, rowvar=False))
    basis = basis[:, : -n_components - 1 : -1]
    scores = (pixels - mean) @ basis
    low, high = scores.min(axis=0), scores.max(axis=0)
    scale = np.where(high > low, (high - low) / 255, 1)
    coded = np.zeros((spectra.shape[0], n_components), dtype=np.uint8)
    coded[has_data] = np.round((scores - low) / scale)
    again = (coded[has_data] * scale + low) @ basis.T + mean
    error = np.sqrt(np.mean((again - pixels) ** 2)) / np.abs(pixels).mean()
    note = (
        f"Spectra are drawn from {n_components} principal components of 8 bits: a root mean square "
        f"error of {100 * error:.1f} % of the mean value."
    )
    return {
        **_spectral_axis(cube, good),
        "components": n_components,
        "mean": packed((mean + low @ basis.T).astype(np.float32)),
        "basis": packed((basis * scale).T.astype(np.float32)),
        "scores": packed(coded.T),
    }, note


def _spectral_axis(cube: xr.DataArray, good: NDArray[np.intp]) -> dict[str, Any]:
    """Return where each band is drawn, and whether it is joined to the one before."""
    knows = WAVELENGTH in cube.coords
    centers = np.asarray(cube.coords[WAVELENGTH].values[good] if knows else good, dtype=np.float64)
    steps = np.abs(np.diff(centers))
    joined = np.append(False, steps < 4 * np.median(steps))
    span = np.ptp(centers) or 1.0
    x = 8 + 384 * (centers - centers.min()) / span
    return {
        "places": [[round(float(a), 1), int(b)] for a, b in zip(x, joined, strict=True)],
        "unit": "wavelength, nm" if knows else "band",
        "first": f"{centers.min():.0f}",
        "last": f"{centers.max():.0f}",
    }
