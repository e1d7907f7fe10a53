"""``hsreject sample`` and ``label``: pixels of a map to be labelled, and a page to do it on."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import print_line, print_table
from hsreject.cli.options import (
    Attribute,
    Confidence,
    Exclude,
    LabelMap,
    Nodata,
    Overwrite,
    Predicted,
    ShowLabel,
    check_there,
    new_file,
)
from hsreject.errors import InputError

if TYPE_CHECKING:
    from hsreject.mapping.map_inputs import MapInputs

_MOST_NAMES = 20  # of classes, in one line


def sample_command(  # noqa: PLR0913 (one argument per option)
    label: LabelMap,
    *,
    n: Annotated[
        int | None, typer.Option("--n", help="Number of points; with --for-promise, of labels.")
    ] = None,
    out: Annotated[Path | None, new_file("The file to make: .gpkg, .geojson or .csv.")] = None,
    confidence: Confidence = None,
    for_promise: Annotated[
        float | None,
        typer.Option(help="Draw where it counts for a promise of this error, such as 0.05."),
    ] = None,
    confidence_level: Annotated[float, typer.Option(help="Of the promise.")] = 0.9,
    per_class: Annotated[
        str | None,
        typer.Option(help="A promise for each class: together, or each on its own."),
    ] = None,
    predicted: Predicted = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Only print what coverage to expect for some numbers of labels."
        ),
    ] = False,
    design: Annotated[str, typer.Option(help="random, or stratified by class.")] = "random",
    exclude: Exclude = None,
    attribute: Attribute = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Another one draws other points: 0, or with --for-promise a new one each time."
        ),
    ] = None,
    show_label: ShowLabel = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw pixels of a map, to be labelled on a page, in QGIS or in a spreadsheet.

    Fill in the column 'reference' with class names or codes, without looking at the map, or with
    'cannot tell' ('hsreject label' makes a page for it). Then run 'hsreject certify' or
    'hsreject assess'. With --for-promise the first batch is drawn; 'certify --more' adds others.
    """
    check_there(label, exclude, confidence, predicted)
    from hsreject.certification.design import draw_sample
    from hsreject.files import check_target
    from hsreject.mapping.map_inputs import open_inputs

    sequential = for_promise is not None
    faults = {
        "A promise ranks the pixels of the map: give their --confidence, too.": (
            confidence is None and (plan or sequential)
        ),
        "--plan is about the map as a whole: leave out --per-class.": plan and per_class,
        "--per-class and --predicted are about a promise: give --for-promise.": (
            not sequential and (per_class or (predicted and not plan))
        ),
        "A promise has a design of its own: leave out --design.": sequential and design != "random",
    }
    if fault := next((sentence for sentence, holds in faults.items() if holds), ""):
        raise InputError(fault)
    if out is not None:
        check_target(out, overwrite=overwrite)
    inputs = open_inputs(label, nodata, confidence, exclude, attribute, predicted)
    if plan:
        _show_plan(inputs, confidence_level)
        return
    if n is None or out is None:
        raise InputError("Give the number of points (--n) and the file to make (--out).")
    if seed is None:  # a second design on points of the first one would not be a second chance
        seed = secrets.randbelow(2**31) if sequential else 0
    sample = draw_sample(
        **inputs._asdict(),
        n=n,
        design="sequential" if sequential else design,
        seed=seed,
        max_error=0.05 if for_promise is None else for_promise,
        confidence_level=confidence_level,
        per_class=per_class,
    )
    sample.write(out, show_label=show_label, overwrite=overwrite)
    batch = f" (of {n} labels planned, seed {seed})" if sequential else ""
    names = ", ".join(sample.classes.names[:_MOST_NAMES])
    more = ", ..." if len(sample.classes.names) > _MOST_NAMES else ""
    print_line(
        f"wrote {len(sample)} points{batch} into {out}: fill in the column 'reference' with "
        f"{names}{more}, 'cannot tell', or a name of your own for anything else"
    )
    print_line(f"on a page: hsreject label {out} --scene SCENE --labels {label} --out label.html")
    certify_it = f"hsreject certify --labels {label} --confidence {confidence or '...'} "
    if exclude is not None:
        certify_it += f"--exclude {exclude} " + (f"--attribute {attribute} " if attribute else "")
    if sequential:
        print_line(f"next: {certify_it}--sample {out} --out ... --more 50")
    else:
        print_line(f"next: hsreject assess {label} --sample {out}")
        if design != "stratified":
            print_line(f"or:   {certify_it}--sample {out} --out ...")


def _show_plan(inputs: MapInputs, confidence_level: float) -> None:
    """Print what coverage to expect for some numbers of labels and errors."""
    from hsreject.certification.planning import expected_coverage
    from hsreject.templates import percent

    expected = expected_coverage(**inputs._asdict(), confidence_level=confidence_level)
    rows = [
        (percent(share, None), *(percent(value, 0) for value in row))
        for share, row in zip(expected["max_error"].values, expected.values, strict=True)
    ]
    headings = ("error", *(f"{n} labels" for n in expected["n"].values))
    title = "share of the map that can probably be promised: a prediction, not a promise"
    print_table(headings, rows, title=title)


def label_command(
    sample: Annotated[Path, typer.Argument(metavar="POINTS", help="File of 'hsreject sample'.")],
    *,
    scene: Annotated[Path, typer.Option(help="Scene to show the points on.")],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="The label map that the points were drawn from; by default the scene's grid and "
            "the classes that a GeoPackage offers."
        ),
    ] = None,
    out: Annotated[Path, new_file("The page to make: .html.")],
    medians: Annotated[
        Path | None, typer.Option(help="Labels of training pixels: show class medians, too.")
    ] = None,
    show_label: ShowLabel = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Make a page on which the points of a sample are labelled, without a network.

    It saves a CSV file that 'hsreject certify' and 'hsreject assess' read, and continues from one.
    """
    check_there(sample, scene, labels, medians)
    from hsreject.certification.sample import open_sample
    from hsreject.files import check_target
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_label_map
    from hsreject.io.scene import open_scene
    from hsreject.report.label_page import offered_map, write_label_page

    check_target(out, overwrite=overwrite)
    cube = open_scene(scene)
    if labels is None and (show_label or medians is not None):
        raise InputError("--show-label and --medians need the map of the points: give --labels.")
    on_map = offered_map(sample, cube) if labels is None else open_label_map(labels, nodata)
    training = None if medians is None else open_labels(medians, like=on_map)
    points = open_sample(sample, on_map)
    write_label_page(
        points, cube, out, medians=training, show_label=show_label, overwrite=overwrite
    )
    print_line(f"wrote {out}: open it in a browser, label {len(points)} points, save the CSV file")
