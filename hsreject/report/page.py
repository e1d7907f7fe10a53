"""A page that a person opens: one HTML file with its pictures inside, no other files needed."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from hsreject import __version__


class Fact(NamedTuple):
    """A number that people quote, what it is, and what is to be known of it."""

    value: str
    name: str
    note: str = ""


class Swatch(NamedTuple):
    """An entry of a legend; without a color it is hatched, as rejected pixels are."""

    color: str
    name: str


@dataclass(frozen=True)
class Headline:
    """The answer, before everything else."""

    statement: str
    facts: tuple[Fact, ...] = ()
    promise: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    link: tuple[str, str] | None = None  # file beside the page, and what one finds there
    place: str = ""  # scene, reference system, date
    table: Table | None = None  # what a goal that is out of reach would cost
    files: tuple[str, ...] = ()  # beside the page


@dataclass(frozen=True)
class Picture:
    """A PNG file with the words that go under it."""

    file: Path
    title: str
    caption: str = ""
    legend: tuple[Swatch, ...] = ()
    is_map: bool = False  # it fills its column
    scale: tuple[float, str] | None = None  # of a map: share of its width, and how far that is
    north: float = 0.0  # of a map with a scale: degrees clockwise from up

    @property
    def encoded(self) -> str:
        """The file's bytes as base64 text."""
        return base64.b64encode(self.file.read_bytes()).decode("ascii")


@dataclass(frozen=True)
class Table:
    """A table of text cells; the first column names the rows."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    title: str = ""
    colors: tuple[str, ...] = ()  # a swatch before the name of each row
    wordy: bool = False  # the last column holds words
    shades: tuple[tuple[float, ...], ...] = ()  # of a matrix: how dark each cell is, in [0, 1]
    folded: bool = False  # behind its title


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, a few words, then tables, pictures and foldable listings."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    legend: tuple[Swatch, ...] = ()  # of all pictures
    pictures: tuple[Picture, ...] = ()
    listings: tuple[tuple[str, str], ...] = ()
    wide: bool = False  # a picture takes the whole width
    beside: bool = False  # pictures stand beside the tables


def write_page(
    path: Path,
    *,
    title: str,
    headline: Headline,
    sections: Sequence[Section],
    details: Sequence[Section] = (),
) -> None:
    """Write the page to `path`; `details` are folded at its end.

    All text is escaped, so class names and paths are safe to show.
    """
    page = render(
        "page.html.jinja",
        title=title,
        headline=headline,
        sections=sections,
        details=details,
        style=read_source("page.css"),
    )
    path.write_text(page, encoding="utf-8")


def render(template: str, **values: object) -> str:
    """Return a page of this folder's `template`, in which text is escaped."""
    environment = Environment(
        loader=PackageLoader("hsreject.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values, version=__version__)


def read_source(name: str) -> str:
    """Return a style or script of this folder, which a page holds as it is."""
    return files("hsreject.report").joinpath(name).read_text(encoding="utf-8")
