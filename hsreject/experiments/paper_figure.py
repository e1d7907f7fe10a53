"""A figure of the paper, made again: the drawing and what is to be said about it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hsreject.files import complete_folder
from hsreject.plot.style import save_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class PaperFigure:
    r"""A figure of the paper, made again.

    Parameters
    ----------
    number : int
        Its number in the paper.
    figure : Figure
        The drawing.
    caption : str
        What it shows, with the numbers a reader would ask for.
    differences : str
        What differs from the printed figure and why.

    Examples
    --------
    >>> from hsreject.plot.style import new_figure
    >>> PaperFigure(9, new_figure(), "A blank.", "There is no figure 9.").text()
    'Figure 9. A blank.\n\nDifferences from the paper. There is no figure 9.\n'
    """

    number: int
    figure: Figure
    caption: str
    differences: str

    def text(self, *, width: int = 80) -> str:
        """Return caption and differences as two paragraphs."""
        paragraphs = (
            f"Figure {self.number}. {self.caption}",
            f"Differences from the paper. {self.differences}",
        )
        return "\n\n".join(textwrap.fill(paragraph, width) for paragraph in paragraphs) + "\n"

    def save(
        self, folder: str | Path, *, formats: Sequence[str] = ("png", "pdf"), dpi: float = 300
    ) -> list[Path]:
        """Write ``figure-N`` in each format and its text, all or none, and return the files."""
        folder, name = Path(folder), f"figure-{self.number}"
        with complete_folder(folder, overwrite=True) as work:
            save_figure(self.figure, work / name, formats=formats, dpi=dpi)
            (work / f"{name}.txt").write_text(self.text(), encoding="utf-8")
        return [folder / f"{name}.{suffix}" for suffix in (*formats, "txt")]
