"""Class maps, with and without rejected pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.classes import ClassTable
from hsreject.plot.categories import (
    LEGEND_WIDTH,
    OUTSIDE_TABLE,
    Category,
    category_legend,
    draw_categories,
    no_reference_color,
    present,
    rejected_color,
)
from hsreject.plot.grid import as_map, map_size, thinned
from hsreject.plot.style import print_style, shown_axes
from hsreject.schema import (
    NO_REFERENCE,
    REJECTED,
    check_labels,
    check_same_grid,
    class_table,
    nodata_label,
    zero_meaning,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_REJECTED_MEANING = "rejected"
_OTHER = -1
_NODATA = -2


@dataclass(frozen=True, eq=False)
class ClassMapDisplay:
    """A map of classes in the colours of its class table.

    What 0 means is said by `schema.zero_meaning`: pixels without reference are white, rejected ones
    black. Pixels without data are hatched.

    Parameters
    ----------
    labels : DataArray of int, dims (y, x)
        0 is no reference, `schema.nodata_label` is no data.
    classes : ClassTable
        Names and colours.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.plot.style import new_figure
    >>> display = ClassMapDisplay.from_labels(np.array([[0, 1], [2, 2]]))
    >>> ax = display.plot(new_figure().add_subplot())
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

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        taken = [*self.classes.colors, OUTSIDE_TABLE]
        meaning = zero_meaning(self.labels)
        color = rejected_color if meaning == _REJECTED_MEANING else no_reference_color
        zero = Category(NO_REFERENCE, meaning, color(taken))
        return _draw_labels(self.labels, self.classes, zero, ax, legend=legend)


@dataclass(frozen=True, eq=False)
class RejectMapDisplay:
    """A class map in which rejected pixels stand out: the map a user of rejection reads.

    Rejected pixels are black, or the first clear colour that no class comes near. Pixels without
    data are hatched, so that "does not know" and "has not seen" are never mistaken for each other.

    Parameters
    ----------
    label_with_rejection : DataArray of int, dims (y, x)
        0 is rejected, `schema.nodata_label` is no data.
    classes : ClassTable
        Names and colours.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.plot.style import new_figure
    >>> label = np.array([[1, 1], [2, 2]])
    >>> display = RejectMapDisplay.from_maps(label, np.array([[True, False], [False, False]]))
    >>> ax = display.plot(new_figure().add_subplot())
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
        gone = rejected.values.astype(bool) & (label.values != nodata_label(label.dtype))
        return cls(label.copy(data=np.where(gone, REJECTED, label.values)), table)

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

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        name = f"rejected ({100 * self.rejected_fraction:.1f} %)"
        color = rejected_color([*self.classes.colors, OUTSIDE_TABLE, "#ffffff"])
        zero = Category(REJECTED, name, color)
        return _draw_labels(self.label_with_rejection, self.classes, zero, ax, legend=legend)


def _table(labels: xr.DataArray, classes: ClassTable | None) -> ClassTable:
    if classes is not None:
        return classes
    without_nodata = labels.where(labels != nodata_label(labels.dtype), NO_REFERENCE)
    return class_table(without_nodata.astype(labels.dtype, copy=False))


def _draw_labels(
    labels: xr.DataArray, classes: ClassTable, zero: Category, ax: Axes | None, *, legend: bool
) -> Axes:
    values = labels.values.astype(np.int64)
    nodata = values == nodata_label(labels.dtype)
    codes = np.where(np.isin(values, [zero.code, *classes.values]), values, _OTHER)
    codes[nodata] = _NODATA
    named = zip(classes.values, classes.names, classes.colors, strict=True)
    categories = [Category(value, name, color) for value, name, color in named]
    categories += [Category(_OTHER, "not in the class table", OUTSIDE_TABLE), zero]
    shown = present(categories, codes)
    with print_style():
        if ax is None:
            ax = shown_axes(*map_size(labels, beside=LEGEND_WIDTH))
        draw_categories(ax, codes, shown, labels)
        if legend:
            category_legend(ax, shown, nodata=bool(nodata.any()))
    return ax
