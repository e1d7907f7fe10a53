"""Reference pages written by the program itself: public names, configuration, command line.

They are made anew at every build, in `docs/reference/`, from the stub with the public names, the
registries and the typer program. Nothing on them is written by hand.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import typer
from sphinx.application import Sphinx
from sphinx.config import Config
from typer.cli import get_docs_for_click

import hsreject as hr
from hsreject.cli import app as program
from hsreject.cli.config_command import default_of
from hsreject.pipeline.parts import REGISTRIES
from hsreject.pipeline.plan import SECTIONS

MODULES = ("plot", "errors")
"""Public modules whose names have pages too."""


def public_names() -> dict[str, list[str]]:
    """Return the public names by the part of the package that they come from."""
    stub = ast.parse(Path(hr.__file__).with_suffix(".pyi").read_text("utf-8"))
    groups: dict[str, list[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            groups.setdefault(node.module.partition(".")[0], []).extend(
                alias.name for alias in node.names
            )
    for name in MODULES:
        module = importlib.import_module(f"hsreject.{name}")
        defined = [key for key, value in vars(module).items() if inspect.isclass(value)]
        groups[name] = [f"{name}.{key}" for key in getattr(module, "__all__", defined)]
    return groups


def python_page() -> Iterator[str]:
    """Yield the page of public names: a table for each part of the package."""
    yield "# Python\n"
    yield "Every public name of `import hsreject as hr`, by what it is about.\n"
    for group, names in sorted(public_names().items()):
        module = importlib.import_module(f"hsreject.{group}")
        yield f"## {group}\n"
        yield (inspect.getdoc(module) or "").partition("\n")[0] + "\n"
        yield "```{eval-rst}\n.. currentmodule:: hsreject\n"
        yield ".. autosummary::\n   :toctree: generated\n   :nosignatures:\n"
        yield from (f"   {name}" for name in sorted(names))
        yield "```\n"


def configuration_page() -> Iterator[str]:
    """Yield the page of configuration keys: those at the top, and the parts that they name."""
    yield "# Configuration\n"
    yield (
        "A TOML file describes a run; so do the same tables in Python ({func}`hsreject.run`). "
        "These are its keys and the parts that they may name. `hsreject config show NAME` prints "
        "the whole documentation of a part.\n"
    )
    yield from table(("key", "what it is"), {f"`{key}`": text for key, text in SECTIONS.items()})
    for section, registry in REGISTRIES.items():
        yield f"## [{section}]\n"
        for name in registry:
            yield f"### {name}\n"
            yield registry.summary(name) + "\n"
            options = {
                f"`{option}`": f"`{default_of(section, option, parameter.default)}`"
                for option, parameter in registry.options(name).items()
            }
            if options:
                yield from table(("option", "default"), options)


def table(headings: tuple[str, str], rows: dict[str, str]) -> Iterator[str]:
    """Yield a table of two columns."""
    yield "| " + " | ".join(headings) + " |\n|---|---|"
    for key, text in rows.items():
        yield f"| {key} | {text.replace('|', chr(92) + '|')} |"
    yield ""


def command_page() -> str:
    """Return the page of commands, as typer describes its program."""
    command = typer.main.get_command(program)
    context = typer.Context(command, info_name="hsreject")
    text = get_docs_for_click(obj=command, ctx=context, name="hsreject")
    return "# Command line\n" + text.partition("\n")[2]


def write_pages(app: Sphinx, _: Config) -> None:
    """Write the pages that have changed."""
    folder = Path(app.srcdir) / "reference"
    pages = {
        "python": "\n".join(python_page()),
        "configuration": "\n".join(configuration_page()),
        "command_line": command_page(),
    }
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
