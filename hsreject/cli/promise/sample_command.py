"""``hsreject sample``: pixels of a map, to be labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hsreject.cli.console import ReplaceFile, check_there, print_lines, result_table
from hsreject.cli.promise.promise_options import (
    Attribute,
    Confidence,
    Exclude,
    Inputs,
    Nodata,
    Predicted,
    ShowLabel,
    open_inputs,
)


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
    looks: Annotated[
        str, typer.Option(help="Of a random sample: when to certify, such as 200,400.")
    ] = "",
    exclude: Exclude = None,
    attribute: Attribute = None,
    seed: Annotated[int, typer.Option(help="Another one draws other points.")] = 0,
    show_label: ShowLabel = False,
    nodata: Nodata = None,
    overwrite: ReplaceFile = False,
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
    inputs = open_inputs(label, nodata, confidence, exclude, attribute, predicted)
    console = Console(highlight=False)
    if plan:
        _show_plan(console, inputs, confidence_level)
        return
    if n is None or out is None:
        raise InputError("Give the number of points (--n) and the file to make (--out).")
    climb = for_promise is not None
    sample = draw_sample(
        inputs.label,
        n,
        design="climb" if climb else design,
        exclude=inputs.excluded,
        seed=seed,
        looks=_whole_numbers(looks),
        confidence=inputs.confidence,
        max_error=0.05 if for_promise is None else for_promise,
        confidence_level=confidence_level,
        per_class=per_class,
        predicted=inputs.predicted,
    )
    sample.write(out, show_label=show_label, overwrite=overwrite)
    batch = f" (of {n} labels planned)" if climb else ""
    print_lines(
        console,
        f"wrote {len(sample)} points{batch} into {out}: fill in the column 'reference' with "
        f"{_listed(sample.classes.names)}, 'cannot tell', or a name of your own for anything else",
        f"on a page: hsreject label {out} --scene SCENE --labels {label} --out label.html",
    )
    certify_it = f"hsreject certify --labels {label} --confidence {confidence or '...'} "
    if exclude is not None:
        certify_it += f"--exclude {exclude} " + (f"--attribute {attribute} " if attribute else "")
    if climb:
        print_lines(console, f"next: {certify_it}--sample {out} --out ... --more 50")
    else:
        print_lines(console, f"next: hsreject assess {label} --sample {out}")
        print_lines(console, f"or:   {certify_it}--sample {out} --out ...")


def _show_plan(console: Console, inputs: Inputs, confidence_level: float) -> None:
    """Print what coverage to expect for some numbers of labels and errors."""
    from hsreject.promise.design import expected_coverage
    from hsreject.promise.frame import percent

    assert inputs.confidence is not None  # noqa: S101 (asked for before)
    expected = expected_coverage(
        inputs.label,
        inputs.confidence,
        inputs.predicted,
        confidence_level=confidence_level,
        exclude=inputs.excluded,
    )
    rows = [
        (percent(share), *(percent(value, 0) for value in row))
        for share, row in zip(expected["max_error"].values, expected.values, strict=True)
    ]
    counts = [f"{n} labels" for n in expected["n"].values]
    title = "share of the map that can probably be promised: a prediction, not a promise"
    console.print(result_table(console, ("error", *counts), rows, title=title))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _whole_numbers(text: str) -> list[int]:
    """Return the numbers of a list such as 200,400."""
    from hsreject.errors import InputError

    try:
        return [int(number) for number in text.split(",") if number]
    except ValueError:
        raise InputError(
            f"--looks are numbers of labels with commas between, such as 200,400 (got '{text}')."
        ) from None
