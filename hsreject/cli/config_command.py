"""``hsreject config``: what a configuration may name, and what each part takes."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hsreject.errors import ConfigError
from hsreject.registry import Registry, nearest

config_app = typer.Typer(
    no_args_is_help=True, help="Explain what a configuration may name.", add_completion=False
)


def _registries() -> dict[str, Registry[object]]:
    """Return the registries by the section of a configuration that uses them."""
    from hsreject.pipeline.plan import REGISTRIES

    return REGISTRIES


@config_app.command("list")
def list_parts() -> None:
    """List the keys of a configuration, and the parts that they may name."""
    from hsreject.pipeline.plan import SECTIONS

    console = Console()
    table = Table(title="[bold]a configuration[/bold]", title_justify="left")
    table.add_column("key", no_wrap=True)
    table.add_column("what it is")
    for key, meaning in SECTIONS.items():
        table.add_row(key, escape(meaning))
    console.print(table)
    for section, registry in _registries().items():
        table = Table(title=f"[bold]{escape(f'[{section}]')}[/bold]", title_justify="left")
        table.add_column("name", no_wrap=True)
        table.add_column("what it is")
        for name in registry:
            table.add_row(name, registry.summary(name))
        console.print(table)
    console.print("'hsreject config show NAME' explains one of them.", highlight=False)


@config_app.command("show")
def show_part(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name from 'hsreject config list'.")
    ],
) -> None:
    """Explain one part: its options, their defaults and its documentation."""
    console = Console()
    found = {s: registry for s, registry in _registries().items() if name in registry}
    if not found:
        names = [known for registry in _registries().values() for known in registry]
        raise ConfigError(
            f"There is no part named '{name}'.{nearest(name, names)} "
            "'hsreject config list' names them all."
        )
    for section, registry in found.items():
        table = Table(title=f"{escape(f'[{section}]')} {name}", title_justify="left")
        table.add_column("option", no_wrap=True)
        table.add_column("default")
        for option, parameter in registry.options(name).items():
            table.add_row(option, escape(_default(section, option, parameter.default)))
        console.print(table)
        console.print(escape(inspect.getdoc(registry[name]) or ""), highlight=False, soft_wrap=True)


def _default(section: str, option: str, value: object) -> str:
    """Return what stands for an option that a configuration does not give."""
    if section == "rejectors" and option == "context":
        return "that of [context]"
    if section == "rejectors" and option == "novelty_exponent":
        return "not in a run"
    if value is inspect.Parameter.empty:
        return "needed"
    if repr(value) == "<factory>":  # of a dataclass: made anew for each
        return "see below"
    return format(value, ".6g") if isinstance(value, float) else repr(value)
