"""Maps of categories: classes, classes with rejected pixels, and the four outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import Patch
from skimage.color import rgb2lab

from hsreject.measures.point import COUNTS
from hsreject.plot.image_displays import draw_raster, map_size, thinned
from hsreject.plot.style import print_style, shown_axes
from hsreject.schema import (
    NO_REFERENCE,
    REJECTED,
    as_map,
    check_labels,
    check_same_grid,
    class_table,
    nodata_label,
    zero_meaning,
)
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

LEGEND_WIDTH = 2.1  # inches, for the longest entries that are usual

# Tried in this order. Black is what the paper draws rejected pixels in.
_REJECTED_COLORS = ("#000000", "#ff00ff", "#ffffff", "#ff0000", "#00ffff", "#7f7f7f")
_NO_REFERENCE_COLORS = ("#ffffff", "#e0e0e0", "#bfbfbf", "#7f7f7f")
_CLEARLY_APART = 25.0
_OUTSIDE_TABLE = "#7f7f7f"
_NODATA, _OTHER = -1, -2  # codes besides the labels


@dataclass(frozen=True)
class Category:
    """One kind of pixel: its code in the image, its name in the legend and its color."""

    code: int
    name: str
    color: str


class Painted(NamedTuple):
    """A map as colors, and what they mean."""

    pixels: NDArray[np.uint8]  # (y, x, channel); transparent where there is no data
    categories: tuple[Category, ...]  # those that occur
    place: xr.DataArray  # whose coordinates say where it lies

    @property
    def has_gaps(self) -> bool:
        """Whether some pixel has no data."""
        return not self.pixels[..., 3].all()


# The four counts have the codes 1 to 4. Their colors differ in lightness too, so that the map
# survives a gray printer.
OUTCOMES = (
    *(
        Category(code, count.replace("_", ", "), color)
        for code, count, color in zip(
            (1, 2, 3, 4), COUNTS, ("#8ccfb5", "#d55e00", "#2f5fb3", "#14142b"), strict=True
        )
    ),
    Category(NO_REFERENCE, "no reference", "#ffffff"),
)


class PaintedMap(ABC):
    """A display that paints its map: how all of them are drawn."""

    @abstractmethod
    def paint(self) -> Painted:
        """Return the map as colors, without axes."""

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        painted = self.paint()
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(painted.place, beside=LEGEND_WIDTH))
            draw_raster(ax, painted.pixels, painted.place)
            if legend:
                _draw_legend(ax, painted.categories, nodata=painted.has_gaps)
        return ax


@dataclass(frozen=True, eq=False)
class ClassMapDisplay(PaintedMap):
    """A map of classes in the colors of its class table.

    Label 0 means no reference, drawn white, or rejected, drawn black: `schema.zero_meaning` says
    which. Pixels without data are hatched.

    Parameters
    ----------
    labels : DataArray of int, dims (y, x)
        0 is no reference, `schema.nodata_label` is no data.
    classes : ClassTable
        Names and colors.

    See Also
    --------
    hsreject.plot.RejectMapDisplay : with rejected pixels.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> display = hr.plot.ClassMapDisplay.from_labels(np.array([[0, 1], [2, 2]]))
    >>> ax = display.plot(hr.plot.new_figure().add_subplot())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class 1', 'class 2', 'no reference']
    """

    labels: xr.DataArray
    classes: ClassTable

    @classmethod
    def from_labels(
        cls, labels: xr.DataArray | NDArray[Any], *, classes: ClassTable | None = None
    ) -> ClassMapDisplay:
        """Return the display of a label map; its own class table serves unless one is given."""
        labels = thinned(check_labels(as_map(labels, name="labels")))
        return cls(labels, _table(labels, classes))

    def paint(self) -> Painted:
        """Return the map as colors, without axes."""
        taken = [*self.classes.colors, _OUTSIDE_TABLE]
        meaning = zero_meaning(self.labels)
        candidates = _REJECTED_COLORS if meaning == "rejected" else _NO_REFERENCE_COLORS
        zero = Category(NO_REFERENCE, meaning, _clear_color(candidates, taken))
        return _paint_labels(self.labels, self.classes, zero)


@dataclass(frozen=True, eq=False)
class RejectMapDisplay(PaintedMap):
    """A class map in which rejected pixels stand out.

    Rejected pixels are black, or the first color that differs clearly from every class. Pixels
    without data are hatched, so that "rejected" and "no data" cannot be mistaken.

    Parameters
    ----------
    label_with_rejection : DataArray of int, dims (y, x)
        0 is rejected, `schema.nodata_label` is no data.
    classes : ClassTable
        Names and colors.

    See Also
    --------
    hsreject.plot.ClassMapDisplay : without rejection.
    hsreject.plot.OutcomeMapDisplay : right and wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> label, rejected = np.array([[1, 1], [2, 2]]), np.array([[True, False], [False, False]])
    >>> display = hr.plot.RejectMapDisplay.from_maps(label, rejected)
    >>> ax = display.plot(hr.plot.new_figure().add_subplot())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class 1', 'class 2', 'rejected (25.0 %)']
    """

    label_with_rejection: xr.DataArray
    classes: ClassTable

    @classmethod
    def from_maps(
        cls,
        label: xr.DataArray | NDArray[Any],
        rejected: xr.DataArray | NDArray[np.bool_],
        *,
        classes: ClassTable | None = None,
    ) -> RejectMapDisplay:
        """Return the display of a label map and the mask of what is rejected from it."""
        label = check_labels(as_map(label, name="label"), name="label")
        rejected = as_map(rejected, name="rejected")
        check_same_grid(label, rejected, names=("label", "rejected"))
        label, rejected = thinned(label), thinned(rejected)
        table = _table(label, classes)
        hidden = rejected.values.astype(bool) & (label.values != nodata_label(label.dtype))
        return cls(label.copy(data=np.where(hidden, REJECTED, label.values)), table)

    @classmethod
    def from_labels(
        cls,
        label_with_rejection: xr.DataArray | NDArray[Any],
        *,
        classes: ClassTable | None = None,
    ) -> RejectMapDisplay:
        """Return the display of a label map in which 0 is rejected already."""
        labels = as_map(label_with_rejection, name="label_with_rejection")
        labels = thinned(check_labels(labels, name="label_with_rejection"))
        return cls(labels, _table(labels, classes))

    @property
    def rejected_fraction(self) -> float:
        """Rejected pixels over pixels with data, as drawn."""
        values = self.label_with_rejection.values
        with_data = values != nodata_label(values.dtype)
        return float((values[with_data] == REJECTED).mean()) if with_data.any() else 0.0

    def paint(self) -> Painted:
        """Return the map as colors, without axes."""
        name = f"rejected ({100 * self.rejected_fraction:.1f} %)"
        color = _clear_color(_REJECTED_COLORS, [*self.classes.colors, _OUTSIDE_TABLE, "#ffffff"])
        zero = Category(REJECTED, name, color)
        return _paint_labels(self.label_with_rejection, self.classes, zero)


@dataclass(frozen=True, eq=False)
class OutcomeMapDisplay(PaintedMap):
    """A map of the four outcomes: accurate or misclassified, kept or rejected.

    The four counts of an operating point as a map. The best rejector leaves only
    "accurate, kept" and "misclassified, rejected".

    Parameters
    ----------
    outcome : DataArray of int, dims (y, x)
        1 accurate and kept, 2 misclassified and kept, 3 accurate and rejected, 4 misclassified and
        rejected, 0 no reference, -1 no data.

    See Also
    --------
    hsreject.plot.RejectMapDisplay : without a reference.
    hsreject.operating_point : counts the four outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> display = hr.plot.OutcomeMapDisplay.from_maps(
    ...     np.array([[1, 2]]), np.array([[1, 1]]), np.array([[False, True]])
    ... )
    >>> display.outcome.values.tolist()
    [[1, 4]]
    """

    outcome: xr.DataArray

    @classmethod
    def from_maps(
        cls,
        label: xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        rejected: xr.DataArray | NDArray[np.bool_],
    ) -> OutcomeMapDisplay:
        """Return the display of a classification, its reference and what it rejects."""
        label = check_labels(as_map(label, name="label"), name="label")
        reference = check_labels(as_map(reference, name="reference"), name="reference")
        rejected = as_map(rejected, name="rejected")
        check_same_grid(label, reference, names=("label", "reference"))
        check_same_grid(label, rejected, names=("label", "rejected"))
        label, reference, rejected = thinned(label), thinned(reference), thinned(rejected)
        misclassified = label.values != reference.values
        codes = (1 + misclassified + 2 * rejected.values.astype(bool)).astype(
            np.int8
        )  # the places in COUNTS, from 1
        unknown = np.isin(reference.values, [NO_REFERENCE, nodata_label(reference.dtype)])
        codes[unknown] = NO_REFERENCE
        codes[label.values == nodata_label(label.dtype)] = _NODATA
        return cls(xr.DataArray(codes, dims=label.dims, coords=label.coords, name="outcome"))

    def paint(self) -> Painted:
        """Return the map as colors, without axes."""
        codes = self.outcome.values
        judged = max(int((codes > 0).sum()), 1)
        *outcomes, no_reference = OUTCOMES
        named = [
            replace(one, name=f"{one.name} ({100 * (codes == one.code).sum() / judged:.1f} %)")
            for one in outcomes
        ]
        return _paint(self.outcome, [*named, no_reference])


def _table(labels: xr.DataArray, classes: ClassTable | None) -> ClassTable:
    if classes is not None:
        return classes
    without_nodata = labels.where(labels != nodata_label(labels.dtype), NO_REFERENCE)
    return class_table(without_nodata.astype(labels.dtype, copy=False))


def _paint_labels(labels: xr.DataArray, classes: ClassTable, zero: Category) -> Painted:
    """Paint a label map in the colors of its table; `zero` says what label 0 is."""
    # From labels to codes of categories: a label outside the table has one code, no data another,
    # so that each of them is painted and listed in the legend as what it is.
    values = labels.values.astype(np.int64)
    codes = np.where(np.isin(values, [zero.code, *classes.values]), values, _OTHER)
    codes[values == nodata_label(labels.dtype)] = _NODATA
    named = zip(classes.values, classes.names, classes.colors, strict=True)
    categories = [Category(value, name, color) for value, name, color in named]
    categories += [Category(_OTHER, "not in the class table", _OUTSIDE_TABLE), zero]
    return _paint(labels.copy(data=codes), categories)


def _paint(codes: xr.DataArray, categories: Sequence[Category]) -> Painted:
    """Paint a map of codes; a pixel whose code is in no category has no data."""
    codes_present = set(np.unique(codes.values).tolist())
    shown = tuple(category for category in categories if category.code in codes_present)
    pixels = np.zeros((*codes.shape, 4), dtype=np.uint8)
    for category in shown:
        rgba = [round(255 * channel) for channel in to_rgba(category.color)]
        pixels[codes.values == category.code] = rgba
    return Painted(pixels, shown, codes)


def _draw_legend(ax: Axes, categories: Sequence[Category], *, nodata: bool) -> None:
    """Write the legend to the right of a map; `nodata` adds what the hatching means."""
    handles = [
        Patch(facecolor=category.color, edgecolor="0.4", linewidth=0.4, label=category.name)
        for category in categories
    ]
    if nodata:
        hatched = Patch(facecolor="white", edgecolor="0.6", hatch="//////", linewidth=0.4)
        hatched.set_label("no data")
        handles.append(hatched)
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        borderaxespad=0.2,
        handlelength=1.3,
        handleheight=1.0,
        labelspacing=0.35,
        frameon=False,
        fontsize=7,
    )


def _clear_color(candidates: Sequence[str], taken: Sequence[str]) -> str:
    """Return the first candidate far from all taken colors, or the one that is farthest."""
    room = [min(color_distance(c, other) for other in taken) for c in candidates]
    clear = [c for c, distance in zip(candidates, room, strict=True) if distance >= _CLEARLY_APART]
    return clear[0] if clear else candidates[int(np.argmax(room))]


def color_distance(first: str, second: str) -> float:
    """Return how far two colors lie apart for the eye (CIE 1976, 100 is black against white)."""
    lab = rgb2lab(np.array([[to_rgb(first), to_rgb(second)]]))[0]
    return float(np.linalg.norm(lab[0] - lab[1]))
