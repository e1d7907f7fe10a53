"""Figure 8 of the paper: relative optimality and break-even costs on Indian Pines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.experiments.indian_pines import (
    JOINT,
    N_POINTS,
    SEQUENTIAL,
    both_curves,
    differences,
)
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.plot.cost_displays import BreakEvenCostDisplay
from hsreject.plot.optimality_displays import RelativeOptimalityDisplay
from hsreject.plot.style import PAGE_WIDTH, new_figure, print_style
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    import xarray as xr


def scene_optimality_figure(
    n_points: int = N_POINTS, seed: int = 0, progress: ProgressCallback = no_progress
) -> PaperFigure:
    """Indian Pines: relative optimality, and the cost from which on not rejecting is better.

    Parameters
    ----------
    n_points : int
        Solves of the joint sweep: its operating points.
    seed : int
        Of the training pixels.
    progress : callable
        Called with (stage, done, total).
    """
    curves = both_curves(n_points=n_points, seed=seed, progress=progress)
    return draw_scene_optimality(curves, seed=seed)


def draw_scene_optimality(curves: dict[str, xr.Dataset], *, seed: int) -> PaperFigure:
    """Draw the figure from the operating points of both rejectors."""
    figure = new_figure(PAGE_WIDTH, 5.4)
    with print_style():
        axes = figure.subplots(2, 2, height_ratios=(1.25, 1))
    best = []
    for column, (name, letters) in enumerate(zip((JOINT, SEQUENTIAL), ("ac", "bd"), strict=True)):
        above, below = axes[:, column]
        display = RelativeOptimalityDisplay.from_curve(curves[name])
        display.plot(above, colorbar=name == SEQUENTIAL)
        above.set_title(f"({letters[0]}) {name}", fontsize=8)
        isolated = [name] if name == JOINT else []
        BreakEvenCostDisplay.from_curves({name: curves[name]}, isolated=isolated).plot(below)
        below.set_title(f"({letters[1]}) {name}", fontsize=8)
        best.append(f"r = {display.best:.2f} ({name})")
    return PaperFigure(
        8,
        figure,
        "Indian Pines, on the test pixels. (a, b) Relative optimality of the point that rejects r1 "
        "with respect to the point that rejects r0; dashed: the point of largest classification "
        f"quality, {' and '.join(best)}. (c, d) For each rejected fraction the smallest cost of a "
        "rejection, an error costing 1, from which on it is better to reject nothing.",
        f"{differences(seed)} The operating points of {JOINT} are few, so its map (a) has large "
        "cells; its labels change from point to point, so all are compared with its own point "
        "that rejects nothing.",
    )
