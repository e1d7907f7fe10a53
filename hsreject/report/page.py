"""A page that a person opens: one HTML file with its pictures inside, no other files needed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.measures.point import share
from hsreject.templates import templates


class Swatch(NamedTuple):
    """An entry of a legend; without a color it is hatched, as rejected pixels are."""

    color: str
    name: str


@dataclass(frozen=True)
class Picture:
    """A PNG file; the page adds the caption."""

    file: Path
    legend: tuple[Swatch, ...] = ()
    scale: tuple[float, str] | None = None  # of a map: share of its width, and how far that is
    north: float = 0.0  # of a map with a scale: degrees clockwise from up

    @property
    def encoded(self) -> str:
        """The file's bytes as base64 text."""
        return base64.b64encode(self.file.read_bytes()).decode("ascii")


def number(value: str | float, times: float = 1, digits: int = 3) -> str:
    """Return a number with this many digits; text stays, and what is not known is a dash."""
    if isinstance(value, str):
        return value
    return "-" if np.isnan(value) else f"{times * value:.{digits}f}"


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """Return a share in percent, with its interval where that is known."""
    lower, upper = interval
    span = "" if np.isnan(lower) else f" ({100 * lower:.1f} to {100 * upper:.1f})"
    return number(value, 100, 1) + ("" if np.isnan(value) else span)


def area(size: float) -> str:
    """Return hectares to three digits."""
    digits = 2 - int(np.floor(np.log10(max(size, 1))))
    return f"{round(size, digits):,.{max(digits, 0)}f} ha"


def records(table: xr.Dataset) -> list[dict[Any, Any]]:
    """Return the rows of a table over one dimension, each by the names of its columns."""
    return table.to_dataframe().reset_index().to_dict("records")


FILTERS: dict[str, Callable[..., str]] = {
    "area": area,
    "number": number,
    "share": share,
    "with_interval": with_interval,
}


def render(template: str, **values: object) -> str:
    """Return a page of this folder's `template`, in which text is escaped."""
    found = templates("hsreject.report", FILTERS).get_template(template)
    return found.render(**values, version=__version__)


def read_source(name: str) -> str:
    """Return a style or script of this folder, which a page holds as it is."""
    return files("hsreject.report").joinpath(name).read_text(encoding="utf-8")
