"""Points in files, vector or CSV, and the pixels of a grid that they lie in."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from hsreject.errors import FileError, GuessWarning, InputError
from hsreject.io.grid import transformed
from hsreject.io.vectors.spreadsheet import number_in
from hsreject.io.vectors.vector import (
    COORDINATES,
    DEGREES,
    Features,
    onto_grid,
    points_in_csv,
    read_columns,
)
from hsreject.registry import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.grid import PixelGrid

    Places = tuple[NDArray[np.int64], NDArray[np.int64]]

_POINTS = {shapely.GeometryType.POINT, shapely.GeometryType.MULTIPOINT}


class PointTable:
    """The columns of a file of points, by lower-case names, and where the points lie on a grid."""

    def __init__(self, path: Path, grid: PixelGrid) -> None:
        self.path, self.grid, self.crs = path, grid, grid.crs
        self.points: NDArray[Any] | None = None
        if path.suffix.lower() == ".csv":
            pairs = list(DEGREES if grid.crs is not None else ())
            pairs += [COORDINATES] * grid.georeferenced
            self.points, columns, crs = points_in_csv(path, pairs)
            self.columns = {name.lower(): cells for name, cells in columns.items()}
            self.crs = grid.crs if crs is None else crs
            if self.points is None and not self.has("row", "column"):
                raise FileError(
                    f"{path} must have the columns longitude and latitude, x and y, or row and "
                    f"column, to say where its points lie. It has: {', '.join(self.columns)}."
                )
        else:
            geometries, columns, crs = read_columns(path)
            if not set(shapely.get_type_id(geometries).tolist()) <= _POINTS:
                raise InputError(
                    f"{path} must hold points, but has polygons, lines or rows without a place. "
                    "The pixels of one polygon are not separate draws: take one random pixel of "
                    "each polygon, or draw points with 'hsreject sample'."
                )
            parts, of = shapely.get_parts(geometries, return_index=True)
            self.columns = {name.lower(): values[of] for name, values in columns.items()}
            if grid.georeferenced:
                self.points, self.crs = parts, crs
        if not len(next(iter(self.columns.values()), ())):
            raise FileError(f"{path} has no points, or no column with them.")

    def has(self, *names: str) -> bool:
        """Tell whether the file has all of these columns."""
        return set(names) <= self.columns.keys()

    def column(self, name: str) -> NDArray[Any]:
        """Look a column up, or say which ones there are."""
        if name.lower() not in self.columns:
            raise InputError(
                f"{self.path} has no column '{name}'. It has: {', '.join(self.columns) or 'none'}."
                f"{nearest(name, list(self.columns))}"
            )
        return self.columns[name.lower()]

    def numbers(self, name: str, *, whole: bool = False) -> NDArray[Any]:
        """Read a column of numbers; some programs write a comma for the decimal point."""
        try:
            numbers = np.array([number_in(cell) for cell in self.column(name)])
            broken = numbers[(np.floor(numbers) != numbers) | np.isinf(numbers)]
            if whole and broken.size:
                raise ValueError(f"not {broken[0]:g}")
            return numbers.astype(np.int64) if whole else numbers
        except ValueError as error:
            raise FileError(
                f"{self.path}: the column '{name}' must hold {'whole ' * whole}numbers ({error})."
            ) from None

    def pixels(self, *, drawn_here: bool) -> Places:
        """Find row and column of the points: by their coordinates, or as the file numbers them.

        Spreadsheets round degrees, which may lead to the next pixel of a fine map: where a sample
        was drawn from exactly this map and the numbers are near, they count.
        """
        places = self._by_number() if self.points is None else self._by_place(self.points)
        if drawn_here and self.has("row", "column"):
            drawn = self._by_number()
            places = np.where((np.abs(drawn - places) <= 2).all(axis=0), drawn, places)
        row, column = places
        off = (row < 0) | (row >= self.grid.height) | (column < 0) | (column >= self.grid.width)
        n_off, n_twice = int(off.sum()), row.size - np.unique(places, axis=1).shape[1]
        if n_off:
            raise InputError(
                f"{n_off} of the {row.size} points of {self.path} lie off the map, which has "
                f"{self.grid}. Give the map that they belong to, or correct their reference system."
            )
        if n_twice:
            raise InputError(
                f"{n_twice} of the {row.size} points of {self.path} lie in the pixel of another "
                "point. Keep one row per pixel."
            )
        return row, column

    def _by_number(self) -> NDArray[np.int64]:
        return np.array([self.numbers(name, whole=True) for name in ("row", "column")])

    def _by_place(self, points: NDArray[Any]) -> NDArray[np.int64]:
        grid, crs = self.grid, self.crs
        numbers = np.arange(len(points))
        stated = Features(points, numbers, numbers, grid.crs if crs is None else crs)
        n_nowhere = int(np.count_nonzero(~np.isfinite(shapely.get_coordinates(points)).all(axis=1)))
        if n_nowhere:
            raise FileError(
                f"{n_nowhere} of the {len(points)} points of {self.path} have no place."
            )
        near, moved, notes = onto_grid(stated, grid, path=self.path)
        if crs is None and grid.crs is not None:
            notes += (f"{self.path.name} has no reference system: taken for that of the map.",)
        for note in notes:
            warnings.warn(note, GuessWarning, stacklevel=5)
        pixel = np.floor(transformed(~grid.transform, (shapely.get_x(moved), shapely.get_y(moved))))
        off = ~(np.abs(pixel) <= np.iinfo(np.int32).max)  # or not finite
        places = np.full((2, len(points)), -1, dtype=np.int64)  # off the map
        places[:, near] = np.where(off, -1, pixel)
        return places[::-1]
