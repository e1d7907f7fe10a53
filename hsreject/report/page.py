"""A page that a person opens: one HTML file with its pictures inside, no other files needed."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from hsreject import __version__


@dataclass(frozen=True)
class Picture:
    """A PNG file with the words that go under it."""

    file: Path
    title: str
    caption: str = ""

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


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, a few words, then tables, pictures and foldable listings."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    listings: tuple[tuple[str, str], ...] = ()
    wide: bool = False


def write_page(path: Path, *, title: str, lead: str, sections: Sequence[Section]) -> None:
    """Write the page to `path`; all text is escaped, so class names and paths are safe to show."""
    page = render("page.html.jinja", title=title, lead=lead, sections=sections)
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
