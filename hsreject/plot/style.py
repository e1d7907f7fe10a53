"""The look of every picture: print sizes, colors safe for color-blind readers, and saving.

Pictures are drawn for print first: 8 point text at the width of one journal column (3.5 inches) or
of two (7.16 inches). Series differ by line style and marker as well as by color.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from hsreject.errors import InputError
from hsreject.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar

COLUMN_WIDTH = 3.5
PAGE_WIDTH = 7.16

BETTER = "#009e73"
WORSE = "#e69f00"
REFERENCE = "#000000"

# matplotlib types the keys as a list of literals that differs between its versions
_PRINT: dict[Any, Any] = {
    "axes.grid": False,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "figure.dpi": 150,
    "font.size": 8,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # embedded as TrueType, so that journals accept and editors can edit it
    "savefig.dpi": 300,
    "svg.hashsalt": "hsreject",  # otherwise every SVG gets new identifiers
    "xtick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 7,
    "ytick.major.width": 0.6,
}

# metadata by format: a date would make each file differ
_WITHOUT_DATE: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "ps": {"CreationDate": None},
    "svg": {"Date": None},
}


@dataclass(frozen=True)
class LineLook:
    """How one series is drawn: distinct by color, by dashes and by marker."""

    color: str
    dashes: str | tuple[int, tuple[float, ...]]
    marker: str


# Okabe and Ito (2008), the two that differ most first
_LOOKS = (
    LineLook("#0072b2", "-", "o"),
    LineLook("#d55e00", (0, (5.0, 1.6)), "s"),
    LineLook("#009e73", (0, (5.0, 1.4, 1.0, 1.4)), "^"),
    LineLook("#cc79a7", (0, (1.2, 1.2)), "D"),
    LineLook("#56b4e9", (0, (8.0, 2.0)), "v"),
    LineLook("#332288", (0, (3.0, 1.2, 1.0, 1.2, 1.0, 1.2)), "P"),
)


def line_looks(count: int) -> list[LineLook]:
    """Return the looks of `count` series, in a fixed order; after six they begin again."""
    return list(islice(cycle(_LOOKS), count))


@contextmanager
def print_style() -> Iterator[None]:
    """Draw in the style of hsreject inside a ``with`` block.

    Unlike ``matplotlib.rc_context`` it restores only what it sets. The first figure of a session
    makes matplotlib load its backend and turn on "interactive"; undoing that, too, would keep
    notebooks from showing any further figure.

    See Also
    --------
    hsreject.plot.save_figure : saves in it.

    Examples
    --------
    >>> import hsreject as hr
    >>> import matplotlib as mpl
    >>> with hr.plot.print_style():
    ...     mpl.rcParams["font.size"]
    8.0
    """
    before = {key: mpl.rcParams[key] for key in _PRINT}
    mpl.rcParams.update(_PRINT)
    try:
        yield
    finally:
        mpl.rcParams.update(before)


def new_figure(width: float = COLUMN_WIDTH, height: float = 2.6) -> Figure:
    """Return an empty figure (sizes in inches) that pyplot does not keep track of.

    Made for saving: it works without a screen and needs no closing. Draw into it with
    ``display.plot(figure.add_subplot())``.

    See Also
    --------
    hsreject.plot.save_figure : saves it.
    hsreject.plot.new_row : several axes.

    Examples
    --------
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> figure = hr.plot.new_figure()
    >>> display = hr.plot.RejectionCurveDisplay({"mine": curve}).plot(figure.subplots(1, 3))
    >>> len(figure.axes)
    3
    """
    with print_style():
        return Figure(figsize=(width, height), layout="constrained")


def new_row(
    count: int, width: float = PAGE_WIDTH, height: float = 2.3
) -> tuple[Figure, list[Axes]]:
    """Return a new figure for saving and `count` axes side by side in it, in print style.

    See Also
    --------
    hsreject.plot.new_figure : one empty figure.
    hsreject.plot.save_figure : saves it.

    Examples
    --------
    >>> import hsreject as hr
    >>> figure, axes = hr.plot.new_row(3)
    >>> len(axes), figure.get_size_inches()
    (3, array([7.16, 2.3 ]))
    """
    figure = new_figure(width, height)
    with print_style():
        return figure, list(figure.subplots(1, count, squeeze=False)[0])


def shown_axes(width: float, height: float) -> Axes:
    """Return new axes of a pyplot figure: what a display without given axes draws on."""
    return row_of(1, None, width, height)[0]


def row_of(count: int, axes: Sequence[Axes] | None, width: float, height: float) -> list[Axes]:
    """Return `axes`, or `count` new ones side by side in a pyplot figure."""
    if axes is not None:
        if len(axes) != count:
            raise InputError(f"This display draws on {count} axes (got {len(axes)}).")
        return list(axes)
    from matplotlib import pyplot as plt  # noqa: PLC0415 (it picks a backend; savers need none)

    with print_style():
        _, rows = plt.subplots(
            1, count, figsize=(width, height), layout="constrained", squeeze=False
        )
    return list(rows[0])


def legend_above(ax: Axes, handles: Sequence[Artist]) -> None:
    """Write one legend for all axes of a figure above them, in as few rows as have room."""
    figure = ax.figure
    most = int(1.2 * figure.bbox.width / figure.dpi)  # an entry takes 0.8 inches
    n_rows = max(-(-len(handles) // most), 1)
    # only the constrained layout makes room outside the axes
    constrained = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    figure.legend(
        handles=handles,
        loc="outside upper center" if constrained else "upper center",
        ncols=-(-len(handles) // n_rows),
        columnspacing=1.4,
        handlelength=1.8,
        borderaxespad=0.2,
    )


def color_bar(ax: Axes, drawn: ScalarMappable, label: str, *, extend: str, gap: float) -> Colorbar:
    """Draw a color bar exactly as high as the axes, a `gap` (share of their width) beside them."""
    beside = ax.inset_axes((1 + gap, 0.0, 0.05, 1.0))
    bar = ax.figure.colorbar(drawn, cax=beside, extend=extend)
    bar.set_label(label)
    bar.outline.set_linewidth(0.5)
    return bar


def save_figure(
    figure: Figure, path: str | Path, *, formats: Sequence[str] = ("png",), dpi: float = 300
) -> list[Path]:
    """Save a figure, byte for byte the same each time, and return the files.

    Parameters
    ----------
    figure : Figure
        Any matplotlib figure.
    path : path
        Where to; its suffix is replaced by each of the formats.
    formats : sequence of str
        File formats, of those that matplotlib writes ("png", "pdf", "svg").
    dpi : float
        Dots per inch of the raster formats and of maps inside the others.

    Returns
    -------
    list of Path
        The written files, one per format.

    See Also
    --------
    hsreject.plot.new_figure : makes one.

    Examples
    --------
    >>> import tempfile
    >>> import hsreject as hr
    >>> figure, _ = hr.plot.new_row(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = hr.plot.save_figure(figure, f"{folder}/pair", formats=["png", "svg"], dpi=50)
    >>> [path.name for path in paths]
    ['pair.png', 'pair.svg']
    """
    files = []
    for name in formats:
        # drawn completely before the file is opened: drawing can fail, and files come last
        drawn = io.BytesIO()
        with print_style():
            figure.savefig(drawn, format=name, dpi=dpi, metadata=_WITHOUT_DATE.get(name))
        file = Path(path).with_suffix(f".{name}")
        with replacing(file, overwrite=True) as work:
            work.write_bytes(drawn.getvalue())
        files.append(file)
    return files
