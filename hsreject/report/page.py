"""A page that a person opens: one HTML file with its pictures inside, no other files needed."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from hsreject import __version__
from hsreject.measures.point import share


class Swatch(NamedTuple):
    """An entry of a legend; without a color it is hatched, as rejected pixels are."""

    color: str
    name: str


@dataclass(frozen=True)
class Picture:
    """A PNG file; what stands under it is the page's."""

    file: Path
    legend: tuple[Swatch, ...] = ()
    scale: tuple[float, str] | None = None  # of a map: share of its width, and how far that is
    north: float = 0.0  # of a map with a scale: degrees clockwise from up

    @property
    def encoded(self) -> str:
        """The file's bytes as base64 text."""
        return base64.b64encode(self.file.read_bytes()).decode("ascii")


def percent(value: float, digits: int = 1) -> str:
    """Return a share as a percentage; what is not known is a dash."""
    return "-" if np.isnan(value) else f"{100 * value:.{digits}f} %"


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


_FILTERS = {
    "area": area,
    "count": "{:,.0f}".format,
    "number": number,
    "percent": percent,
    "share": share,
    "with_interval": with_interval,
}


def templates(package: str) -> Environment:
    """Return the templates in the folder of a package; those of HTML escape what they show."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=select_autoescape(["html.jinja"], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(_FILTERS)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def render(template: str, **values: object) -> str:
    """Return a page of this folder's `template`, in which text is escaped."""
    environment = templates("hsreject.report")
    return environment.get_template(template).render(**values, version=__version__)


def read_source(name: str) -> str:
    """Return a style or script of this folder, which a page holds as it is."""
    return files("hsreject.report").joinpath(name).read_text(encoding="utf-8")
