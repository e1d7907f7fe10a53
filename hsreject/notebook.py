"""How results look at the end of a notebook cell, and in a terminal."""

from abc import ABC, abstractmethod
from html import escape


class Shown(ABC):
    """A result that is shown by a few facts: one line in a terminal, a table in a notebook."""

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what to show, by its name, in words."""

    def __repr__(self) -> str:
        """Return the facts in one line."""
        facts = "; ".join(f"{name}: {text}" for name, text in self._facts().items())
        return f"<{type(self).__name__}> {facts}"

    def _repr_html_(self) -> str:
        """Return the facts as a table."""
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(text)}</td></tr>'
            for name, text in self._facts().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"
