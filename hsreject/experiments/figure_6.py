"""Figure 6 of the paper: Indian Pines, its reference and the reject maps of both rejectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Patch

from hsreject.experiments.indian_pines import (
    JOINT,
    SEQUENTIAL,
    IndianPinesExperiment,
    differences,
)
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.measures.point import operating_point
from hsreject.measures.samples import evaluation_samples
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay, RejectMapDisplay
from hsreject.plot.style import PAGE_WIDTH, new_figure, print_style
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from hsreject.classes import ClassTable


def scene_figure(
    rejected_fraction: float = 0.1, seed: int = 0, progress: ProgressCallback = no_progress
) -> PaperFigure:
    """Indian Pines: false colour, reference, and the reject maps of both rejectors.

    Parameters
    ----------
    rejected_fraction : float
        The share of the scene that both maps reject.
    seed : int
        Of the training pixels.
    progress : callable
        Called with (stage, done, total).
    """
    experiment = IndianPinesExperiment.learn(seed=seed, progress=progress)
    maps = experiment.maps(rejected_fraction, progress=progress)
    return draw_scene(experiment, maps, seed=seed)


def draw_scene(
    experiment: IndianPinesExperiment, maps: dict[str, xr.Dataset], *, seed: int
) -> PaperFigure:
    """Draw the figure from the maps of both rejectors."""
    figure = new_figure(PAGE_WIDTH, 5.4)
    with print_style():
        axes = figure.subplots(2, 2).ravel()
        reference = ClassMapDisplay.from_labels(experiment.labels)
        FalseColorDisplay.from_cube(experiment.cube, wavelengths=INFRARED).plot(axes[0])
        reference.plot(axes[1], legend=False)
        for ax, name in zip(axes[2:], (JOINT, SEQUENTIAL), strict=True):
            shown = RejectMapDisplay.from_labels(maps[name].label_with_rejection)
            shown.plot(ax, legend=False)
        titles = ("(a) false colour", "(b) reference", f"(c) {JOINT}", f"(d) {SEQUENTIAL}")
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(title, loc="left")
            ax.set_anchor("C")
        _legend(figure, reference.classes)
    said = [_said(name, maps[name], experiment.test) for name in (JOINT, SEQUENTIAL)]
    return PaperFigure(
        6,
        figure,
        "Indian Pines. (a) Near infrared, red and green as red, green and blue; (b) the reference; "
        f"labels with context, rejected pixels black: (c) {said[0]}, and (d) {said[1]}. Accuracies "
        "are those of the kept test pixels. Sequential rejection gives up the borders between "
        "fields, joint rejection whole regions.",
        f"The paper does not state the rejected fractions of its maps. {differences(seed)} The "
        "class colours are other ones.",
    )


def _said(name: str, maps: xr.Dataset, test: xr.DataArray) -> str:
    samples = evaluation_samples(test, maps.label)
    point = operating_point(samples.correct, samples.at(maps.rejected).astype(bool))
    return (
        f"{name}, {100 * maps.attrs['rejected_fraction']:.1f} % of the scene rejected, accuracy "
        f"{point.nonrejected_accuracy:.3f} (nothing rejected: {point.overall_accuracy:.3f})"
    )


def _legend(figure: Figure, classes: ClassTable) -> None:
    """Write one legend for all maps to their right."""
    entries = [*zip(classes.names, classes.colors, strict=True), ("no reference", "white")]
    handles = [
        Patch(facecolor=color, edgecolor="0.4", linewidth=0.4, label=name)
        for name, color in [*entries, ("rejected", "black")]
    ]
    figure.legend(handles=handles, loc="outside right center", handlelength=1.3, handleheight=1.0)
