"""``hsreject init`` and ``groups``: a first configuration, and groups of classes for the next."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from hsreject.cli.console import print_line, progress_on
from hsreject.cli.options import (
    Attribute,
    BandAxis,
    Goals,
    Nodata,
    Overwrite,
    Variable,
    check_there,
    goal_table,
    new_file,
)
from hsreject.errors import HsrejectError, InputError
from hsreject.io.remote import as_path

# An option as Python messages write it: nodata=255, align='nearest', names={255: 'NAME'}
_KEYWORD = re.compile(
    r"\b(nodata|align|attribute|variable|names|band_axis)=(?:\{(\d+): '(\w+)'\}|'?([\w-]+)'?)"
)
_HEAD = """\
# Proposed by 'hsreject groups' from {n} test pixels: classes of which at least {share:g} % are
# confused with each other. Rename and regroup them, and copy this section into the configuration.
# A group may hold other groups, by their names. The classes are: {classes}.
"""


def init_command(  # noqa: PLR0913 (all but two are options)
    scene: Annotated[
        Path,
        typer.Argument(metavar="SCENE", help="A product, ENVI, GeoTIFF, Zarr, .mat, .npy or URL."),
    ],
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS", help="Reference: raster, .mat, .npy, polygons or points; 0 is none."
        ),
    ],
    *,
    out: Annotated[
        Path | None, new_file("The file to write; by default the name of SCENE, .toml.")
    ] = None,
    attribute: Attribute = None,
    variable: Variable = None,
    labels_variable: Annotated[
        str | None, typer.Option(help="Of LABELS: the array of a .mat file, or the layer.")
    ] = None,
    band_axis: BandAxis = None,
    nodata: Nodata = None,
    scene_nodata: Annotated[
        float | None, typer.Option(help="Of SCENE: the value of pixels without data in all bands.")
    ] = None,
    align: Annotated[
        str | None, typer.Option(help="Labels on another grid: exact (refused) or nearest.")
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the classes: corn,soil or 1=corn,4=soil.")
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(help="per_class, fraction, blocks or polygons; by default what suits LABELS."),
    ] = None,
    goal: Goals = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a configuration for a scene and its labels, ready for 'hsreject run'.

    Without --goal it asks for an accuracy of 0.95.
    """
    check_there(scene, labels)
    from hsreject.files import check_target, replacing

    named = as_path(scene)  # of a URL without its query
    target = Path(f"{named.stem}.toml") if out is None else out
    check_target(target, overwrite=overwrite)

    from hsreject.measures.choosing import Goal
    from hsreject.pipeline.drafting import draft_configuration
    from hsreject.pipeline.parts import Files

    try:
        with progress_on(log=False) as progress:
            files = Files(
                str(scene),
                str(labels),
                attribute=attribute,
                variable=variable,
                labels_variable=labels_variable,
                band_axis=band_axis,
                nodata=scene_nodata,
                labels_nodata=nodata,
                names=_parsed_names(names),
            )
            draft = draft_configuration(
                files,
                align=align,  # type: ignore[arg-type]  # open_labels checks it
                sampling=sampling,
                goal=Goal.from_table(goal_table(goal or ["accuracy=0.95"])),
                progress=progress,
            )
    except HsrejectError as error:
        raise type(error)(_in_options(str(error), labels)) from error
    with replacing(target, overwrite=overwrite) as work:
        work.write_text(draft.text, encoding="utf-8")
    print_line(f"{named.name}: {draft.summary}")
    for note in draft.notes:
        print_line(f"- {note}")
    print_line(f"wrote {target}; next: hsreject run {target}")


def _in_options(message: str, labels: Path) -> str:
    """Return a message with advice such as nodata=255 as an option of init, --nodata 255."""

    def as_option(keyword: re.Match[str]) -> str:
        name, value, text, plain = keyword.groups()
        of_labels = name == "variable" and str(labels) in message
        flag = "labels-variable" if of_labels else name.replace("_", "-")
        return f"--{flag} " + (plain or f"{value}={text}")

    return _KEYWORD.sub(as_option, message)


def _parsed_names(text: str | None) -> dict[str, str] | list[str] | None:
    """Return the class names of --names: by value, or in the order of the values 1, 2, ..."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if not any("=" in part for part in parts):
        return parts or None
    pairs = [part.partition("=") for part in parts]
    if not all(value.strip().isdigit() and name.strip() for value, _, name in pairs):
        raise InputError(f"--names must look like corn,soil or 1=corn,4=soil (got '{text}').")
    return {str(int(value)): name.strip() for value, _, name in pairs}


def groups_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of 'hsreject run'.")],
    *,
    out: Annotated[Path, new_file("The file to write, for you to edit.")] = Path("groups.toml"),
    least: Annotated[
        float, typer.Option(help="Join two classes if this share of them is confused.")
    ] = 0.05,
    overwrite: Overwrite = False,
) -> None:
    """Propose groups of classes that the map confuses with each other, as a file to edit.

    They come from the test pixels of the run, which the classifier has not learned from. Rename and
    regroup them as the land cover asks for, and copy [groups] into the configuration: the map then
    answers with a group where the class is unclear. Nothing is grouped without that.
    """
    result = run / "result.nc"
    check_there(run, result)
    import tomli_w

    from hsreject.files import check_target, replacing
    from hsreject.io.netcdf import open_tree
    from hsreject.measures.levels import propose_groups
    from hsreject.registry import check_number
    from hsreject.schema import REJECTOR, class_table, nodata_label

    check_number("least", least, above=0, most=1)
    check_target(out, overwrite=overwrite)
    maps = open_tree(result).to_dataset()
    label, test = maps["label"].isel({REJECTOR: 0}), maps["test"]
    used = (test.values > 0) & (label.values != nodata_label(label.dtype))
    if not used.any():
        raise InputError(
            f"{run} has no test pixels: all labels were for training. Run with a [sampling] "
            "that leaves some, or write [groups] by hand."
        )
    classes = class_table(test)
    groups = propose_groups(label.values[used], test.values[used], classes, least=least)
    if not groups:
        raise InputError(
            f"No two classes of {run} are confused as often as --least {least:g}. Ask for less, or "
            "write [groups] by hand."
        )
    head = _HEAD.format(n=int(used.sum()), share=100 * least, classes=", ".join(classes.names))
    with replacing(out, overwrite=overwrite) as work:
        work.write_text(head + tomli_w.dumps({"groups": groups}), encoding="utf-8")
    for name, members in groups.items():
        print_line(f"{name}: {len(members)} classes")
    print_line(f"{out} is a proposal: edit it, and copy [groups] into the configuration.")
