"""``hsreject groups``: groups of classes proposed from the confusions of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hsreject.cli.options import Overwrite, check_there, new_file
from hsreject.errors import InputError

_HEAD = """\
# Proposed by 'hsreject groups' from {n} test pixels: classes of which at least {share:g} % are
# confused with each other. Rename and regroup them, and copy this section into the configuration.
# A group may hold other groups, by their names. The classes are: {classes}.
"""


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
        typer.echo(f"{name}: {len(members)} classes")
    typer.echo(f"{out} is a proposal: edit it, and copy [groups] into the configuration.")
