"""``hsreject config``: what a configuration may name, and what each part takes."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from hsreject.cli.console import print_line, print_table
from hsreject.errors import ConfigError
from hsreject.registry import nearest

config_app = typer.Typer(
    no_args_is_help=True, help="Explain what a configuration may name.", add_completion=False
)


@config_app.command("list")
def list_parts() -> None:
    """List the keys of a configuration, and the parts that they may name."""
    from hsreject.pipeline.parts import REGISTRIES
    from hsreject.pipeline.plan import SECTIONS

    keys = SECTIONS.items()
    print_table(("key", "what it is"), keys, title="a configuration", justify="left")
    for section, registry in REGISTRIES.items():
        print_line()
        parts = [(name, registry.summary(name)) for name in registry]
        print_table(("name", "what it is"), parts, title=f"[{section}]", justify="left")
    print_line("\n'hsreject config show NAME' explains one of them.")


@config_app.command("show")
def show_part(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name from 'hsreject config list'.")
    ],
) -> None:
    """Explain one part: its options, their defaults and its documentation."""
    from hsreject.measures.choosing import Goal
    from hsreject.pipeline.parts import REGISTRIES
    from hsreject.pipeline.plan import SECTIONS

    sections = {section: parts for section, parts in REGISTRIES.items() if name in parts}
    if not sections and name in SECTIONS:
        print_line(f"{name}: {SECTIONS[name]}")
        if name == "goal":
            print_line(inspect.getdoc(Goal))
        return
    if not sections:
        names = [*SECTIONS, *(part for parts in REGISTRIES.values() for part in parts)]
        raise ConfigError(
            f"There is no part named '{name}'.{nearest(name, names)} "
            "'hsreject config list' lists them all."
        )
    for section, registry in sections.items():
        options = [
            (option, default_of(section, option, parameter.default))
            for option, parameter in registry.options(name).items()
        ]
        print_table(("option", "default"), options, title=f"[{section}] {name}", justify="left")
        print_line(inspect.getdoc(registry[name]))


def default_of(section: str, option: str, value: object) -> str:
    """Return the default of an option, in words."""
    if section == "rejectors" and option == "context":
        return "that of [context]"
    if value is inspect.Parameter.empty:
        return "needed"
    if repr(value) == "<factory>":  # of a dataclass: a new one for each part
        return "see below"
    return format(value, ".6g") if isinstance(value, float) else repr(value)
