"""``hsreject sample``, ``label``, ``certify`` and ``assess``: what may be promised of a map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hsreject.cli.console import Overwrite, cache_inside, check_there, result_table

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.promise.assessment import Assessment, Estimate
    from hsreject.promise.certificate import Certificate

Nodata = Annotated[int | None, typer.Option(help="One more label that means no data, such as 0.")]
Exclude = Annotated[
    Path | None,
    typer.Option(
        help="Never sampled: training pixels, or places that nobody can label. Raster, polygons, "
        "points."
    ),
]
Attribute = Annotated[
    str | None,
    typer.Option(help="Attribute with the class, if --exclude holds polygons or points."),
]
Column = Annotated[str, typer.Option(help="Column of the sample with the true class.")]
AssumeRandom = Annotated[
    bool,
    typer.Option(
        "--assume-random",
        help="Take points of unknown origin for a simple random sample of this map.",
    ),
]
SampleFile = Annotated[
    Path, typer.Option("--sample", help="Labelled points: GeoPackage, GeoJSON, CSV.")
]


def sample_command(  # noqa: PLR0913 (one argument per option)
    label: Annotated[
        Path, typer.Argument(metavar="MAP", help="Label map of any software: raster, .mat, .npy.")
    ],
    *,
    n: Annotated[
        int | None, typer.Option("--n", help="Number of points; with --for-promise, of labels.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to make: .gpkg, .geojson or .csv.")
    ] = None,
    confidence: Annotated[
        Path | None, typer.Option(help="Confidence of the labels: raster, for --for-promise.")
    ] = None,
    for_promise: Annotated[
        float | None,
        typer.Option(help="Draw where it counts for a promise of this error, such as 0.05."),
    ] = None,
    confidence_level: Annotated[float, typer.Option(help="Of the promise.")] = 0.9,
    per_class: Annotated[
        str | None,
        typer.Option(help="A promise for each class: together, or each on its own."),
    ] = None,
    predicted: Annotated[
        Path | None,
        typer.Option(help="Probability of the label, calibrated: raster. Says where to begin."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only print what to expect of so many labels.")
    ] = False,
    design: Annotated[str, typer.Option(help="random, or stratified by class.")] = "random",
    looks: Annotated[
        str, typer.Option(help="Of a random sample: when to certify, such as 200,400.")
    ] = "",
    exclude: Exclude = None,
    attribute: Attribute = None,
    seed: Annotated[int, typer.Option(help="Another one draws other points.")] = 0,
    show_label: Annotated[
        bool, typer.Option("--show-label", help="Tell what the map says to whoever labels.")
    ] = False,
    nodata: Nodata = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is already there.")
    ] = False,
) -> None:
    """Draw pixels of a map, to be labelled on a page, in QGIS or in a spreadsheet.

    Fill in the column 'reference' with class names or codes, without looking at the map, or with
    'cannot tell' ('hsreject label' makes a page for it). Then run 'hsreject certify' or
    'hsreject assess'. With --for-promise the first batch is drawn; 'certify --more' adds others.
    """
    check_there(label, exclude, confidence, predicted)
    from hsreject.errors import InputError
    from hsreject.files import check_target
    from hsreject.promise.design import draw_sample

    if confidence is None and (plan or for_promise is not None):
        raise InputError("A promise ranks the pixels of the map: give their --confidence, too.")
    if out is not None:
        check_target(out, overwrite=overwrite)
    on_map = _label_map(label, nodata)
    training = _training(exclude, on_map, attribute)
    sure = None if confidence is None else _band(confidence)
    error = None if predicted is None else 1 - _band(predicted)
    console = Console(highlight=False)
    if plan and sure is not None:
        _show_plan(console, on_map, sure, error, training, confidence_level)
        return
    if n is None or out is None:
        raise InputError("Give the number of points (--n) and the file to make (--out).")
    climb = for_promise is not None
    sample = draw_sample(
        on_map,
        n,
        design="climb" if climb else design,
        exclude=training,
        seed=seed,
        looks=[int(look) for look in looks.split(",") if look],
        confidence=sure,
        max_error=0.05 if for_promise is None else for_promise,
        confidence_level=confidence_level,
        per_class=per_class,
        predicted=error,
    )
    sample.write(out, show_label=show_label, overwrite=overwrite)
    batch = f" (of {n} labels planned)" if climb else ""
    _tell(
        console,
        f"wrote {len(sample)} points{batch} into {out}: fill in the column 'reference' with "
        f"{_listed(sample.classes.names)}, 'cannot tell', or a name of your own for anything else",
        f"on a page: hsreject label {out} --scene SCENE --labels {label} --out label.html",
    )
    certify_it = f"hsreject certify --labels {label} --confidence {confidence or '...'} "
    if climb:
        _tell(console, f"next: {certify_it}--sample {out} --out ... --more 50")
    else:
        _tell(console, f"next: hsreject assess {label} --sample {out}")
        _tell(console, f"or:   {certify_it}--sample {out} --out ...")


def _tell(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def _show_plan(
    console: Console,
    on_map: xr.DataArray,
    sure: xr.DataArray,
    error: xr.DataArray | None,
    training: xr.DataArray | None,
    confidence_level: float,
) -> None:
    """Print what coverage to expect for some numbers of labels and errors."""
    from hsreject.promise.frame import percent
    from hsreject.promise.planning import expected_coverage

    expected = expected_coverage(
        on_map, sure, error, confidence_level=confidence_level, exclude=training
    )
    rows = [
        (percent(share), *(percent(value, 0) for value in row))
        for share, row in zip(expected["max_error"].values, expected.values, strict=True)
    ]
    counts = [f"{n} labels" for n in expected["n"].values]
    title = "share of the map that can probably be promised: a prediction, not a promise"
    console.print(result_table(console, ("error", *counts), rows, title=title))


def label_command(
    sample: Annotated[Path, typer.Argument(metavar="POINTS", help="File of 'hsreject sample'.")],
    *,
    scene: Annotated[Path, typer.Option(help="Scene to show the points on.")],
    labels: Annotated[Path, typer.Option(help="The label map that the points were drawn from.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to make: .html.")],
    medians: Annotated[
        Path | None, typer.Option(help="Labels of training pixels: show class medians, too.")
    ] = None,
    show_label: Annotated[
        bool, typer.Option("--show-label", help="Tell what the map says to whoever labels.")
    ] = False,
    nodata: Nodata = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is already there.")
    ] = False,
) -> None:
    """Make a page on which the points of a sample are labelled, without a network.

    It saves a CSV file that 'hsreject certify' and 'hsreject assess' read, and goes on from one.
    """
    check_there(sample, scene, labels, medians)
    from hsreject.files import check_target
    from hsreject.io.labels import open_labels
    from hsreject.io.scene import open_scene
    from hsreject.promise.label_page import write_label_page
    from hsreject.promise.sample_file import open_sample

    check_target(out, overwrite=overwrite)
    on_map = _label_map(labels, nodata)
    cube = open_scene(scene)
    training = None if medians is None else open_labels(medians, like=on_map)
    points = open_sample(sample, on_map)
    write_label_page(
        points, cube, out, medians=training, show_label=show_label, overwrite=overwrite
    )
    _tell(
        Console(highlight=False),
        f"wrote {out}: open it in a browser, label {len(points)} points, save the CSV file",
    )


def certify_command(  # noqa: PLR0913 (one argument per option)
    *,
    labels: Annotated[
        list[Path],
        typer.Option(help="The label map; or, repeated, maps with rejection of growing coverage."),
    ],
    confidence: Annotated[
        Path | None, typer.Option(help="Confidence of the labels, larger is surer: raster.")
    ] = None,
    sample: SampleFile,
    max_error: Annotated[
        float | None,
        typer.Option(help="Share of the kept pixels that may be wrong: 0.05, or as planned."),
    ] = None,
    confidence_level: Annotated[
        float | None, typer.Option(help="How sure the promise is: 0.9, or as planned.")
    ] = None,
    more: Annotated[
        int, typer.Option(help="Add up to so many points to the sample, if its plan asks for them.")
    ] = 0,
    predicted: Annotated[
        Path | None, typer.Option(help="Probability of the label, calibrated: raster.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            callback=cache_inside,
            help="New folder for certificate, map and picture.",
        ),
    ],
    exclude: Exclude = None,
    attribute: Attribute = None,
    column: Column = "reference",
    assume_random: AssumeRandom = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the largest part of a map of which few pixels are wrong, with confidence.

    The sample is one of 'hsreject sample'. Writes certificate.json, the map with everything else
    rejected, the tests as a table and a picture of them. With --more, the sample file gets the next
    points that its plan asks for; labels stay.
    """
    check_there(*labels, confidence, sample, exclude, predicted)
    import xarray as xr

    from hsreject.errors import InputError
    from hsreject.files import check_folder
    from hsreject.promise.certifying import certify
    from hsreject.promise.design import more_points
    from hsreject.promise.sample_file import open_sample
    from hsreject.schema import OPERATING_POINT

    check_folder(out, overwrite=overwrite)
    maps = [_label_map(path, nodata) for path in labels]
    if (confidence is None) == (len(maps) == 1):
        raise InputError("Give one map of labels and its --confidence, or several maps and none.")
    sure = None if confidence is None else _band(confidence)
    points = open_sample(sample, maps[0], attribute=column)
    training = _training(exclude, maps[0], attribute)
    made = certify(
        maps[0] if sure is not None else xr.concat(maps, OPERATING_POINT, combine_attrs="override"),
        sure,
        points,
        max_error=max_error,
        confidence_level=confidence_level,
        exclude=training,
        predicted=None if predicted is None else 1 - _band(predicted),
        assume_random=assume_random,
    )
    larger = points
    if more and sure is not None:
        larger = more_points(maps[0], sure, points, more, exclude=training)
    files = _write_certificate(made, maps, sure, out, overwrite=overwrite)
    console = Console(highlight=False)
    _tell(console, made.statement)
    if made.by_class:
        headings = ("class", "promised error", "kept of the class", "labels", "wrong")
        console.print(result_table(console, headings, made.rows()))
    if made.threshold is not None:
        what = labels[int(made.threshold)].name if made.stacked else f"{made.threshold:.6g}"
        _tell(console, f"{'map' if made.stacked else 'threshold'}: {what}")
    _tell(console, f"wrote {', '.join(files)} into {out}", made.applies_to)
    if len(larger) > len(points):
        larger.write(sample, overwrite=True)
        _tell(
            console, f"added {len(larger) - len(points)} points to {sample}: label them and go on"
        )
    elif more:
        _tell(console, "no more points: the climb has ended, or its labels are used up")


def assess_command(
    label: Annotated[
        Path,
        typer.Argument(
            metavar="MAP", help="Label map of any software; 0 is rejected, unless --nodata."
        ),
    ],
    *,
    sample: SampleFile,
    confidence_level: Annotated[
        float, typer.Option(help="Of the intervals, above 0 and below 1.")
    ] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", callback=cache_inside, help="New folder for tables and picture."
        ),
    ] = None,
    column: Column = "reference",
    assume_random: AssumeRandom = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Estimate accuracies and the area of each class from a sample, with intervals.

    The sample may be random or stratified, drawn from this map or another one of the same place.
    """
    check_there(label, sample)
    from hsreject.files import check_folder, complete_folder
    from hsreject.promise.assessment import assess
    from hsreject.promise.sample_file import open_sample

    if out is not None:
        check_folder(out, overwrite=overwrite)
    on_map = _label_map(label, nodata)
    points = open_sample(sample, on_map, attribute=column)
    found = assess(on_map, points, confidence_level=confidence_level, assume_random=assume_random)
    if out is not None:
        from hsreject.plot import AreaDisplay, new_row, save_figure
        from hsreject.plot.style import COLUMN_WIDTH

        with complete_folder(out, overwrite=overwrite) as work:
            found.write_tables(work)
            display = AreaDisplay(found)
            figure, (ax,) = new_row(1, COLUMN_WIDTH, display.height)
            display.plot(ax)
            save_figure(figure, work / "areas")
    console = Console(highlight=False)
    show_assessment(found, console)
    if out is not None:
        console.print(
            f"wrote assessment.csv, error-matrix.csv, areas.png into {out}", soft_wrap=True
        )


def show_assessment(found: Assessment, console: Console) -> None:
    """Print the accuracies and the areas, each with its interval."""
    console.print(
        f"{found.n_points} pixels with a reference, {found.drawn}; intervals of "
        f"{100 * found.confidence_level:g} %",
        soft_wrap=True,
        markup=False,
    )
    if found.n_untold:
        console.print(
            f"{found.n_untold} points that nobody could label: intervals hold all they may be",
            soft_wrap=True,
            markup=False,
        )
    estimates = found.rows()
    for name, _, value in estimates[:2]:
        console.print(f"{name} {_percent(value)} %")
    of_class = {(title, name): value for title, name, value in estimates[2:]}
    unit = found.area_unit
    counted = zip(found.classes.names, found.by_class["mapped_area"].values, strict=True)
    rows = [
        (
            name,
            _percent(of_class["user's accuracy", name], digits=0),
            _percent(of_class["producer's accuracy", name], digits=0),
            f"{mapped:.0f}",
            _interval(of_class[f"area in {unit}", name]),
        )
        for name, mapped in counted
    ]
    headings = ("class", "user's %", "producer's %", f"counted {unit}", f"estimated {unit}")
    console.print(result_table(console, headings, rows))
    if found.rejected_area:
        share = found.rejected_area / (
            found.rejected_area + float(found.by_class["mapped_area"].sum())
        )
        console.print(
            f"rejected: {found.rejected_area:.0f} {unit} ({100 * share:.1f} %), which count as "
            "not right in the overall and the producer's accuracies",
            soft_wrap=True,
            markup=False,
        )
    if found.unknown_area:
        console.print(
            f"unknown: {found.unknown_area:.1f} {found.area_unit} are rejected and no point there "
            "has a reference; the areas above are kept ones only",
            soft_wrap=True,
            markup=False,
        )


def _percent(found: Estimate, *, digits: int = 1) -> str:
    return _interval(found, scale=100, digits=digits)


def _interval(found: Estimate, *, scale: float = 1, digits: int = 0) -> str:
    if found.value != found.value:
        return ""
    numbers = (f"{scale * x:.{digits}f}" for x in (found.value, found.lower, found.upper))
    return "{} ({} to {})".format(*numbers)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _label_map(path: Path, nodata: int | None) -> xr.DataArray:
    """Open a label map of any software with its class names; 0 in it means rejected."""
    from hsreject.files import existing
    from hsreject.io.labels import label_values, open_labels
    from hsreject.io.maps import open_map
    from hsreject.io.scene import Kind, file_kind
    from hsreject.schema import nodata_label

    found = existing(path)
    label = open_map(found) if file_kind(found) is Kind.RASTER else open_labels(found)
    if label.dtype.kind == "f":
        label = label.copy(data=label_values(label.values, path=found, keep_missing=True))
    if nodata is not None:
        label = label.where(label != nodata, nodata_label(label.dtype))
    return label


def _band(path: Path) -> xr.DataArray:
    from hsreject.io.maps import open_band

    return open_band(path)


def _training(
    path: Path | None, on_map: xr.DataArray, attribute: str | None
) -> xr.DataArray | None:
    from hsreject.io.labels import open_labels

    return None if path is None else open_labels(path, like=on_map, attribute=attribute)


def _write_certificate(
    made: Certificate,
    maps: list[xr.DataArray],
    sure: xr.DataArray | None,
    folder: Path,
    *,
    overwrite: bool,
) -> list[str]:
    """Write certificate, tests, picture and, if there is one, the certified map."""
    from dataclasses import astuple, fields

    from hsreject.files import complete_folder
    from hsreject.io.maps import write_map
    from hsreject.plot import CertificateDisplay, new_row, save_figure
    from hsreject.plot.style import COLUMN_WIDTH
    from hsreject.promise.certificate import TestedPoint
    from hsreject.promise.sample import write_csv
    from hsreject.schema import ZERO_MEANING

    with complete_folder(folder, overwrite=overwrite) as work:
        made.write(work / "certificate.json")
        tests = [
            (one.class_name, *astuple(test))
            for one in (made.by_class or (made,))
            for test in one.tests
        ]
        columns = ["class", *(field.name for field in fields(TestedPoint))]
        write_csv(work / "tests.csv", columns, tests)
        if made.by_class:
            headings = ["class", "promised_error", "coverage", "labels", "wrong"]
            write_csv(work / "classes.csv", headings, made.rows())
        figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
        CertificateDisplay(made).plot(ax)
        save_figure(figure, work / "certificate")
        if made.coverage > 0:
            if sure is None:
                kept = maps[int(made.threshold or 0)].rename("label_with_rejection")
                kept = kept.assign_attrs({ZERO_MEANING: "rejected"})
            else:
                kept = made.apply(maps[0], sure)["label_with_rejection"]
            write_map(kept, work / "label_with_rejection.tif")
        return sorted(file.name for file in work.iterdir() if file.suffix != ".xml")
