"""How good a map with rejection is: in words, and as the maps, tables and curves of a page.

Everything is taken from one :class:`Evaluation` of the map as it is delivered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.evaluation.tables import (
    area_table,
    class_accuracies,
    goal_costs,
    hectares,
    write_tables,
)
from hsreject.files import complete_folder
from hsreject.io.grid import PixelGrid, crs_name
from hsreject.io.netcdf import write_dataset
from hsreject.measures.cost import break_even_cost
from hsreject.measures.curve import nearest_points
from hsreject.measures.point import added_measures
from hsreject.plot.map_displays import ClassMapDisplay, OutcomeMapDisplay, Painted
from hsreject.progress import ProgressCallback, no_progress
from hsreject.report import figures
from hsreject.report.page import (
    FILTERS,
    Picture,
    Swatch,
    area,
    read_source,
    records,
    render,
)
from hsreject.schema import OPERATING_POINT
from hsreject.templates import percent, templates

if TYPE_CHECKING:
    from hsreject.evaluation.evaluation import Evaluation

_LONGEST_TABLE = 10_001
_NAMED_CONFUSIONS = 3
_DATE = re.compile(r"((?:19|20)\d\d)-?([01]\d)-?([0-3]\d)[Tt_ ]\d\d")  # a day, before the hour


def statement(evaluation: Evaluation) -> str:
    """Return how good the map is, in the words of its users."""
    template = templates("hsreject.report", FILTERS).get_template("statement.jinja")
    words = template.render(evaluation=evaluation, kept_of_scene=_kept_of_scene(evaluation))
    return " ".join(words.split())


def _kept_of_scene(evaluation: Evaluation) -> str:
    size = hectares(evaluation, evaluation.has_data & ~evaluation.rejected)
    words = f"{percent(evaluation.kept_share)} of the scene"
    return words if size is None else f"{words}, {area(size)}"


def about_scene(scene: xr.DataArray) -> str:
    """Return file, size, reference system and date of a map or scene, as far as it knows them.

    The date is what an ENVI header states, or part of the file's name, as in products.
    """
    grid, name = PixelGrid.of(scene), str(scene.attrs.get("source", ""))
    stamp = _DATE.search(str(scene.attrs.get("acquisition_time", ""))) or _DATE.search(name)
    size = f"{grid.height:,} x {grid.width:,} pixels"
    date = "-".join(stamp.groups()) if stamp else ""
    return " · ".join(filter(None, (name, size, crs_name(grid.crs) if grid.crs else "", date)))


def write_evaluation(
    evaluation: Evaluation,
    folder: str | PathLike[str],
    *,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> list[Path]:
    """Write report, tables and curve into a folder, all or nothing, and return the files.

    :meth:`hsreject.Evaluation.write` does the same.

    Parameters
    ----------
    evaluation : Evaluation
        Of :func:`hsreject.evaluate`.
    folder : path
        A new or empty folder.
    overwrite : bool
        Write into a folder that is not empty, replacing files of the same names.
    progress : ProgressCallback
        Called after each picture.

    Returns
    -------
    list of Path
        ``report.html`` with its pictures in ``figures``, ``points.csv`` (the chosen operating
        points), ``classes.csv`` (accuracies), ``confusion.csv`` and ``areas.csv``; with a
        confidence ``curve.nc`` (every operating point) and ``curve.csv`` (the same, or of a
        longer curve 10,001 points evenly spaced in rejected fraction).

    See Also
    --------
    hsreject.evaluate : makes the evaluation.
    hsreject.write_explorer : writes the interactive page.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hsreject as hr
    >>> reference, label = np.array([[1, 1, 2, 2]]), np.array([[1, 2, 2, 2]])
    >>> evaluation = hr.evaluate(reference, label, rejected=label == 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = hr.write_evaluation(evaluation, folder)
    >>> [path.name for path in paths if path.suffix == ".csv"]
    ['areas.csv', 'classes.csv', 'confusion.csv', 'points.csv']
    """
    folder = Path(folder)
    with complete_folder(folder, overwrite=overwrite) as work:
        evaluation.table().to_dataframe().to_csv(work / "points.csv")
        write_tables(evaluation, work)
        if evaluation.curve is not None:
            curve = evaluation.curve.assign_attrs(
                title="operating points of a classifier with rejection",
                source=f"hsreject {__version__}",
            )
            write_dataset(curve, work / "curve.nc")
            if curve.sizes[OPERATING_POINT] > _LONGEST_TABLE:
                spaced = nearest_points(curve["rejected_fraction"].values, _LONGEST_TABLE)
                curve = curve.isel({OPERATING_POINT: spaced})
            curve.to_dataframe().to_csv(work / "curve.csv", index=False)
        progress("report", 0, 1)
        evaluation_page(evaluation, work)
        progress("report", 1, 1)
        names = sorted(p.relative_to(work) for p in work.rglob("*") if p.is_file())
    return [folder / name for name in names]


def evaluation_page(evaluation: Evaluation, folder: Path) -> None:
    """Write the page that a run has, too, as far as maps and a reference tell it."""
    drawn = figures.Pictures(folder / "figures", evaluation.grid)
    curves = {} if evaluation.curve is None else {"": evaluation.curve}
    write_report(
        folder,
        title="Evaluation of a map with rejection",
        place=about_scene(evaluation.maps["label"]),
        statement=statement(evaluation),
        promise=None,
        warnings=evaluation.warnings,
        notes=(),
        files=("points.csv", "classes.csv", "areas.csv", "confusion.csv"),
        goal_reached=True,
        tried={},
        **evaluation_values(evaluation, curves, drawn),
    )


def write_report(folder: Path, **values: object) -> None:
    """Write ``report.html``; its template says which values a page may have."""
    page = render("report.html.jinja", style=read_source("page.css"), **values)
    (folder / "report.html").write_text(page, encoding="utf-8")


def evaluation_values(
    evaluation: Evaluation,
    curves: figures.Curves,
    drawn: figures.Pictures,
    *,
    name: str = "map",
    isolated: Sequence[str] = (),
) -> dict[str, Any]:
    """Collect what a page shows of an evaluation.

    The first of `curves` is that of the evaluation; of those that are `isolated` there are no
    operating points between the ones drawn.
    """
    point, nothing = evaluation.shown.point, evaluation.points[0].point
    legend, maps = _maps(evaluation, drawn, name)
    charts = {}
    if curves:
        with_bands = {} if evaluation.curve is None else {next(iter(curves)): evaluation.curve}
        points = {"this map": point}
        points |= {p.name: p.point for p in evaluation.points[1:] if p is not evaluation.shown}
        charts = figures.draw_curves(
            drawn, {**curves, **with_bands}, points, evaluation.measured_on, isolated
        )
    return {
        "evaluation": evaluation,
        "pixels": evaluation.measured_on,
        "kept_of_scene": _kept_of_scene(evaluation),
        "rejected_share": 1 - evaluation.kept_share,
        "map_legend": legend,
        "maps": maps,
        "classes": _classes(evaluation),
        "areas": records(area_table(evaluation)),
        "matrix": evaluation.confusion.values.tolist(),
        "added": _added(evaluation),
        "goals": goal_costs(evaluation),
        "break_even": break_even_cost(
            point.nonrejected_accuracy,
            point.rejected_fraction,
            nothing.nonrejected_accuracy,
            nothing.rejected_fraction,
        ),
        "charts": charts,
    }


def _added(evaluation: Evaluation) -> dict[str, Any]:
    """Return the columns that measures of plugins add to the table of operating points."""
    added = added_measures()
    return {
        "labels": [measure.label for measure in added.values()],
        "words": " ".join(f"{one.label}: {one.meaning}." for one in added.values()),
        "rows": [
            [f"{getattr(named.point, name):.4g}" for name in added] for named in evaluation.points
        ],
    }


def _classes(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the accuracies of each class, its color, and what its kept pixels are taken for."""
    rows, names = records(class_accuracies(evaluation)), evaluation.classes.names
    wrong = evaluation.confusion.values[:, : len(names)].copy()
    np.fill_diagonal(wrong, 0)
    for row, color, counts in zip(rows, evaluation.classes.colors, wrong, strict=True):
        order = np.argsort(-counts, kind="stable")[:_NAMED_CONFUSIONS]
        confused = ", ".join(
            f"{names[other]} ({counts[other]:,})" for other in order if counts[other]
        )
        row |= {"color": color, "confused_with": confused}
    return rows


def _maps(
    evaluation: Evaluation, drawn: figures.Pictures, name: str
) -> tuple[list[Swatch], dict[str, Picture]]:
    """Return the maps of an evaluation, and one legend for those of classes."""
    maps = evaluation.maps
    decided = ClassMapDisplay.from_labels(
        evaluation.answers, classes=evaluation.answer_classes
    ).paint()
    reference = ClassMapDisplay.from_labels(maps["reference"], classes=evaluation.classes).paint()
    outcome = OutcomeMapDisplay.from_maps(
        maps["label"], maps["reference"], evaluation.rejected
    ).paint()
    pictures = {
        "map": drawn.map(f"rejected_{name}", decided.pixels, rejected=evaluation.rejected),
        "outcome": drawn.map(
            f"outcome_{name}",
            outcome.pixels,
            legend=[Swatch(c.color, c.name) for c in outcome.categories if c.code],
        ),
        "reference": drawn.map("reference", reference.pixels),
    }
    if "confidence" in maps:
        colors, ramp = figures.paint_confidence(maps["confidence"])
        pictures["confidence"] = drawn.map(f"confidence_{name}", colors, legend=ramp)
    return class_legend(decided, reference), pictures


def class_legend(*painted: Painted) -> list[Swatch]:
    """Return the classes of painted maps, and what else such a map shows."""
    entries = dict.fromkeys(Swatch(c.color, c.name) for one in painted for c in one.categories)
    gaps = [Swatch("var(--line)", "no data")] if any(one.has_gaps for one in painted) else []
    return [*entries, Swatch("", "rejected"), *gaps]
