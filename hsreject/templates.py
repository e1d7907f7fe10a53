"""Templates of texts and pages: one way to fill them; a value that is missing is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def percent(share: float, digits: int | None = 1) -> str:
    """Write a share as a percentage; None for the digits that it has, NaN is a dash."""
    if math.isnan(share):
        return "-"
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


def templates(package: str, filters: Mapping[str, Callable[..., str]] | None = None) -> Environment:
    """Return the templates in the folder of a package; HTML and XML escape what they show."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=select_autoescape(["html.jinja", "qml.jinja"], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"count": "{:,.0f}".format, "percent": percent, **(filters or {})}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def sentences(
    package: str, filters: Mapping[str, Callable[..., str]] | None = None
) -> Callable[..., str]:
    """Return `sentence(name, **values)`, which fills a macro of the package's ``words.jinja``.

    Blanks and line breaks in it count as one blank.
    """

    @cache
    def words() -> Any:
        environment = templates(package, filters).overlay(trim_blocks=False, lstrip_blocks=False)
        return environment.get_template("words.jinja").module

    def sentence(name: str, **values: object) -> str:
        return " ".join(str(getattr(words(), name)(**values)).split())

    return sentence
