"""Sentences about guarantees, for people: nothing is decided by them."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def in_percent(share: float, digits: int | None = None) -> str:
    """Write a share as text, such as 5 %."""
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


_TEMPLATES = Environment(  # noqa: S701 (plain sentences)
    loader=PackageLoader("hsreject.certification", "."), undefined=StrictUndefined
)
_TEMPLATES.filters |= {"percent": in_percent, "count": "{:,}".format}


def sentence(name: str, **values: object) -> str:
    """Fill a sentence of ``words.jinja`` with these values."""
    template: Any = _TEMPLATES.get_template("words.jinja").module
    return " ".join(str(getattr(template, name)(**values)).split())
