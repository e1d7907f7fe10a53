"""The typer application and the list of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from hsreject import __version__
from hsreject.cli.config import config_app
from hsreject.cli.evaluate import evaluate
from hsreject.cli.fetch import fetch
from hsreject.cli.info import info
from hsreject.cli.map import map_command
from hsreject.cli.run import run_command
from hsreject.cli.train import train_command

app = typer.Typer(
    name="hsreject",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Land-cover maps from hyperspectral images that say where they do not know.",
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"hsreject {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=lambda wanted: _show_version(wanted=wanted),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Land-cover maps from hyperspectral images that say where they do not know."""


# in the order in which a newcomer needs them
app.command("run")(run_command)
app.command()(info)
app.command("train")(train_command)
app.command("map")(map_command)
app.command()(evaluate)
app.command()(fetch)
app.add_typer(config_app, name="config")
