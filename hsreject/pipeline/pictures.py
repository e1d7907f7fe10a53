"""The pictures of a run: maps, curves and relative optimality, each a PNG with a caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import xarray as xr
from matplotlib.axes import Axes

from hsreject.pipeline.one_seed import REJECTOR, SeedResult
from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import INFRARED, ConfidenceMapDisplay, FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay, OutcomeMapDisplay, RejectMapDisplay
from hsreject.plot.optimality_displays import RelativeOptimalityDisplay
from hsreject.plot.style import new_figure, new_row, print_style, save_figure
from hsreject.report.page import Picture

_MAP_SIZE = (5.8, 3.6)


def draw_maps(cube: xr.DataArray, result: SeedResult, folder: Path) -> Iterator[Picture]:
    """Draw the scene, the reference, the labels and the rejections into `folder`."""
    maps = result.maps
    yield _map(
        folder / "false_color",
        "False colour",
        "Near infrared, red and green, where the scene knows its wavelengths.",
        FalseColorDisplay.from_cube(cube, wavelengths=INFRARED).plot,
    )
    yield _map(
        folder / "reference",
        "Reference",
        "What is known on the ground.",
        ClassMapDisplay.from_labels(maps["reference"]).plot,
    )
    if "context_label" in maps:
        yield _map(
            folder / "label",
            "Labels with context",
            "SegSALSA: every pixel gets a label.",
            ClassMapDisplay.from_labels(maps["context_label"]).plot,
        )
    for name in maps[REJECTOR].values:
        yield from _rejector_maps(maps.sel({REJECTOR: name}), str(name), folder)


def _rejector_maps(maps: xr.Dataset, name: str, folder: Path) -> Iterator[Picture]:
    yield _map(
        folder / f"rejected_{name}",
        f"Reject map, {name}",
        "The map to use: rejected pixels are those whose label is not sure enough.",
        RejectMapDisplay.from_labels(maps["label_with_rejection"]).plot,
    )
    yield _map(
        folder / f"confidence_{name}",
        f"Confidence, {name}",
        "Larger is surer; the rejector keeps the largest.",
        ConfidenceMapDisplay.from_confidence(maps["confidence"]).plot,
    )
    yield _map(
        folder / f"outcome_{name}",
        f"Outcome, {name}",
        "Test pixels only: what was kept and rejected, rightly and wrongly.",
        OutcomeMapDisplay.from_maps(maps["label"], maps["test"], maps["rejected"]).plot,
    )


def _map(path: Path, title: str, caption: str, draw: Callable[[Axes], object]) -> Picture:
    figure = new_figure(*_MAP_SIZE)
    draw(figure.add_subplot())
    return Picture(save_figure(figure, path, dpi=200)[0], title, caption)


def draw_overview(
    cube: xr.DataArray, result: SeedResult, curves: Mapping[str, xr.Dataset], folder: Path
) -> Picture:
    """Draw the run in one row: scene, reference, a reject map, and what rejecting brings."""
    figure, axes = new_row(4, width=9.6, height=2.5)
    name = list(curves)[-1] if "sequential" not in curves else "sequential"
    chosen = result.maps.sel({REJECTOR: name})
    rejected = RejectMapDisplay.from_labels(chosen["label_with_rejection"])
    FalseColorDisplay.from_cube(cube, wavelengths=INFRARED).plot(axes[0])
    ClassMapDisplay.from_labels(result.maps["reference"]).plot(axes[1], legend=False)
    rejected.plot(axes[2], legend=False)
    _curve_display(curves).plot(axes[3:], measures=("nonrejected_accuracy",), legend=False)
    with print_style():
        axes[3].legend(
            loc="lower right", handlelength=2.4, title="filled: largest Q", title_fontsize="small"
        )
    share = f"{100 * rejected.rejected_fraction:.0f} %"
    titles = ("scene", "reference", f"{name}, {share} rejected (black)", "what is kept")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, size="medium")
    return Picture(
        save_figure(figure, folder / "overview", dpi=200)[0],
        "In one look",
        "The scene, what is known on the ground, the map that leaves out what is not sure enough, "
        "and the accuracy of what is kept; the filled mark is the largest classification quality.",
    )


def _curve_display(curves: Mapping[str, xr.Dataset]) -> RejectionCurveDisplay:
    return RejectionCurveDisplay.from_curves(curves, isolated=_isolated(curves))


def _isolated(curves: Mapping[str, xr.Dataset]) -> list[str]:
    """Return the curves whose points are solves of their own, not thresholds: joint rejection."""
    return [name for name, curve in curves.items() if "failure_probability" in curve]


def draw_measures(curves: Mapping[str, xr.Dataset], folder: Path) -> Iterator[Picture]:
    """Draw the measures of the rejectors, and their relative optimality and costs."""
    figure, axes = new_row(3)
    _curve_display(curves).plot(axes)
    yield Picture(
        save_figure(figure, folder / "measures", dpi=200)[0],
        "The three measures",
        "Over the rejected fraction of the test pixels. The mark is the largest classification "
        "quality: the most right decisions.",
    )
    figure, axes = new_row(len(curves), height=2.6)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        RelativeOptimalityDisplay.from_curve(curve).plot(ax, colorbar=ax is axes[-1])
        ax.set_title(name, size="medium")
    yield Picture(
        save_figure(figure, folder / "relative_optimality", dpi=200)[0],
        "Relative optimality",
        "Of each operating point with respect to each reference: above 0 it makes more right "
        "decisions.",
    )
    figure, axes = new_row(1, width=5.2, height=2.8)
    BreakEvenCostDisplay.from_curves(curves, isolated=_isolated(curves)).plot(axes[0])
    yield Picture(
        save_figure(figure, folder / "break_even_cost", dpi=200)[0],
        "When not to reject",
        "The cost of a rejection from which on it is better to reject nothing.",
    )
    figure, axes = new_row(2, height=2.6)
    CostEnvelopeDisplay.from_curves(curves).plot(axes)
    yield Picture(
        save_figure(figure, folder / "cost_envelope", dpi=200)[0],
        "The cheapest operating point",
        "For each cost of a rejection (an error costs 1): the least mean cost of a pixel and the "
        "fraction to reject.",
    )
