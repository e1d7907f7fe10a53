"""Templates of texts and pages: one way to fill them, in which nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


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
    environment.filters.update(filters or {})
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment
